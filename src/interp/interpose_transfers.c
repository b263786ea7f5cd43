/* With wall-clock time our signal ends calls that send or receive, too. The kernel goes on with
 * them afterwards, except in two cases, in which programs that never get a signal see what they
 * have not seen before:
 *
 *     a part has been sent, or received with MSG_WAITALL      they give less than was wanted
 *     the socket has a time limit (SO_RCVTIMEO, SO_SNDTIMEO)  they give EINTR
 *
 * So the rest is sent or received by further calls, which end where the first one would have: with
 * the last byte, with an error, with the time limit, or with a signal of the program's own
 * (wait.c). What was done up to there is what the program gets.
 *
 * Where nobody interrupts waits all of this only passes on, by a jump: stacks are those of the
 * program. */
#include "interp/interpose.h"
#include "interp/sampler.h"
#include "interp/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORT INTERPOSE_EXPORT

static struct {
    ssize_t (*read)(int, void *, size_t);
    ssize_t (*__read_chk)(int, void *, size_t, size_t);
    ssize_t (*readv)(int, const struct iovec *, int);
    ssize_t (*__recv_chk)(int, void *, size_t, size_t, int);
    ssize_t (*recvfrom)(int, void *, size_t, int, __SOCKADDR_ARG, socklen_t *);
    ssize_t (*__recvfrom_chk)(int, void *, size_t, size_t, int, __SOCKADDR_ARG, socklen_t *);
    ssize_t (*recvmsg)(int, struct msghdr *, int);
    ssize_t (*write)(int, const void *, size_t);
    ssize_t (*writev)(int, const struct iovec *, int);
    ssize_t (*sendto)(int, const void *, size_t, int, __CONST_SOCKADDR_ARG, socklen_t);
    ssize_t (*sendmsg)(int, const struct msghdr *, int);
    int (*accept)(int, __SOCKADDR_ARG, socklen_t *);
    int (*accept4)(int, __SOCKADDR_ARG, socklen_t *, int);
    int (*connect)(int, __CONST_SOCKADDR_ARG, socklen_t);
} found;

__attribute__((constructor)) static void find(void)
{
    static const struct interpose_name NAMES[] = {
        {"__read_chk", &found.__read_chk},
        {"readv", &found.readv},
        {"__recv_chk", &found.__recv_chk},
        {"recvfrom", &found.recvfrom},
        {"__recvfrom_chk", &found.__recvfrom_chk},
        {"recvmsg", &found.recvmsg},
        {"write", &found.write},
        {"writev", &found.writev},
        {"sendto", &found.sendto},
        {"sendmsg", &found.sendmsg},
        {"accept", &found.accept},
        {"accept4", &found.accept4},
        {"connect", &found.connect},
        {"read", &found.read},
    };
    interpose_find(NAMES, sizeof NAMES / sizeof *NAMES);
}

#define REAL(name) (find(), found.name)

/* --- one transfer, in as many calls as it takes ---------------------------------------------- */

struct direction {
    short events; /* that it waits for */
    int limit;    /* the socket's option with its time limit */
    int late;     /* the error when that is over */
};

static const struct direction RECEIVING = {POLLIN, SO_RCVTIMEO, EAGAIN},
                              SENDING = {POLLOUT, SO_SNDTIMEO, EAGAIN},
                              CONNECTING = {POLLOUT, SO_SNDTIMEO, EINPROGRESS};

struct transfer {
    const struct direction *direction;
    int fd;
    struct wait wait;
    size_t wanted, done; /* bytes; less than `wanted` is not all */
    int flags;           /* MSG_... */
};

static struct transfer begin(const struct direction *direction, int fd, size_t wanted, int flags)
{
    return (struct transfer){
        .direction = direction, .fd = fd, .wait = wait_begin(0), .wanted = wanted, .flags = flags};
}

static bool never_waits(const struct transfer *transfer)
{
    return transfer->flags & MSG_DONTWAIT || fcntl(transfer->fd, F_GETFL) & O_NONBLOCK;
}

/* Waits for what is left of the socket's time limit, if it has one. False, with errno, when it is
 * over, or a signal of the program's has come. */
static bool is_ready(struct transfer *transfer)
{
    struct timeval limit;
    socklen_t bytes = sizeof limit;
    if (getsockopt(transfer->fd, SOL_SOCKET, transfer->direction->limit, &limit, &bytes) < 0 ||
        (limit.tv_sec == 0 && limit.tv_usec == 0) || never_waits(transfer))
        return true;
    transfer->wait.most_ns = wait_ns_of_value(&limit);
    struct pollfd one = {.fd = transfer->fd, .events = transfer->direction->events};
    struct timespec left = wait_time_of(wait_ns_left(&transfer->wait));
    int result = ppoll(&one, 1, &left, NULL); /* ours: it goes on, too */
    if (result == 0)
        errno = transfer->direction->late;
    return result > 0;
}

/* Whether a call that gave this is to be made again, for the rest. */
static bool goes_on(struct transfer *transfer, ssize_t result)
{
    if (result > 0)
        transfer->done += (size_t)result;
    bool is_cut = result < 0 ? errno == EINTR : result > 0 && transfer->done < transfer->wanted;
    return is_cut && wait_was_us(&transfer->wait) && is_ready(transfer);
}

/* What the program gets, after the last call. */
static ssize_t end(const struct transfer *transfer, ssize_t result)
{
    return transfer->done ? (ssize_t)transfer->done : result;
}

static bool is_stream(int fd)
{
    int type = 0;
    socklen_t bytes = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM;
}

/* Whether all of what is asked for is wanted, not only what comes first. What is only looked at is
 * there again for the next call. */
static bool waits_for_all(const struct transfer *transfer)
{
    return transfer->flags & MSG_WAITALL && !(transfer->flags & MSG_PEEK) &&
           is_stream(transfer->fd);
}

/* --- memory in several parts ----------------------------------------------------------------- */

static size_t bytes_of(const struct iovec *parts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += parts[i].iov_len;
    return bytes;
}

/* Those that are left when the first bytes of them are done, into `rest`. */
static size_t rest_of(const struct iovec *parts, size_t count, size_t done, struct iovec *rest)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        size_t skipped = done < parts[i].iov_len ? done : parts[i].iov_len;
        done -= skipped;
        if (parts[i].iov_len > skipped)
            rest[left++] = (struct iovec){.iov_base = (char *)parts[i].iov_base + skipped,
                                          .iov_len = parts[i].iov_len - skipped};
    }
    return left;
}

/* Room for it, of the calling function. The kernel takes 1024 parts at most. */
#define ROOM_FOR(count) __builtin_alloca((count) * sizeof(struct iovec))

/* --- receive --------------------------------------------------------------------------------- */

EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(read)(fd, data, bytes);
    struct transfer transfer = begin(&RECEIVING, fd, 1, 0);
    ssize_t result;
    do
        result = REAL(read)(fd, data, bytes);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    if (!sampler_interrupts_waits())
        return REAL(readv)(fd, parts, count);
    struct transfer transfer = begin(&RECEIVING, fd, 1, 0);
    ssize_t result;
    do
        result = REAL(readv)(fd, parts, count);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t recvfrom(int fd, void *data, size_t bytes, int flags, __SOCKADDR_ARG from,
                        socklen_t *from_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(recvfrom)(fd, data, bytes, flags, from, from_bytes);
    struct transfer transfer = begin(&RECEIVING, fd, 1, flags);
    if (waits_for_all(&transfer))
        transfer.wanted = bytes;
    ssize_t result;
    do
        result = REAL(recvfrom)(fd, (char *)data + transfer.done, bytes - transfer.done, flags,
                                from, from_bytes);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    return recvfrom(fd, data, bytes, flags, (__SOCKADDR_ARG){.__sockaddr__ = NULL}, NULL);
}

/* What comes beside the bytes comes with the first of them. */
static ssize_t receive_parts(int fd, struct msghdr *message, int flags)
{
    struct transfer transfer = begin(&RECEIVING, fd, 1, flags);
    struct msghdr rest = {0};
    if (waits_for_all(&transfer)) {
        rest.msg_iov = message->msg_iov;
        rest.msg_iovlen = message->msg_iovlen;
        transfer.wanted = bytes_of(rest.msg_iov, rest.msg_iovlen);
    }
    ssize_t result = REAL(recvmsg)(fd, message, flags);
    if (!goes_on(&transfer, result))
        return result;
    struct iovec *parts = rest.msg_iov;
    size_t count = rest.msg_iovlen;
    rest.msg_iov = ROOM_FOR(count);
    do {
        rest.msg_iovlen = rest_of(parts, count, transfer.done, rest.msg_iov);
        result = REAL(recvmsg)(fd, transfer.done ? &rest : message, flags);
    } while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return sampler_interrupts_waits() ? receive_parts(fd, message, flags)
                                      : REAL(recvmsg)(fd, message, flags);
}

/* What these are in programs that are compiled with _FORTIFY_SOURCE: the C library ends the program
 * if there is not enough room. */
ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room);
EXPORT ssize_t __read_chk(int fd, void *data, size_t bytes, size_t room)
{
    return bytes > room ? REAL(__read_chk)(fd, data, bytes, room) : read(fd, data, bytes);
}

ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags);
EXPORT ssize_t __recv_chk(int fd, void *data, size_t bytes, size_t room, int flags)
{
    return bytes > room ? REAL(__recv_chk)(fd, data, bytes, room, flags)
                        : recv(fd, data, bytes, flags);
}

ssize_t __recvfrom_chk(int fd, void *data, size_t bytes, size_t room, int flags,
                       __SOCKADDR_ARG from, socklen_t *from_bytes);
EXPORT ssize_t __recvfrom_chk(int fd, void *data, size_t bytes, size_t room, int flags,
                              __SOCKADDR_ARG from, socklen_t *from_bytes)
{
    return bytes > room ? REAL(__recvfrom_chk)(fd, data, bytes, room, flags, from, from_bytes)
                        : recvfrom(fd, data, bytes, flags, from, from_bytes);
}

EXPORT int accept4(int fd, __SOCKADDR_ARG from, socklen_t *from_bytes, int flags)
{
    if (!sampler_interrupts_waits())
        return REAL(accept4)(fd, from, from_bytes, flags);
    struct transfer transfer = begin(&RECEIVING, fd, 1, 0);
    int result;
    do
        result = REAL(accept4)(fd, from, from_bytes, flags);
    while (result < 0 && goes_on(&transfer, result));
    return result;
}

EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *from_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(accept)(fd, from, from_bytes);
    struct transfer transfer = begin(&RECEIVING, fd, 1, 0);
    int result;
    do
        result = REAL(accept)(fd, from, from_bytes);
    while (result < 0 && goes_on(&transfer, result));
    return result;
}

/* --- send ------------------------------------------------------------------------------------ */

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(write)(fd, data, bytes);
    struct transfer transfer = begin(&SENDING, fd, bytes, 0);
    ssize_t result;
    do
        result = REAL(write)(fd, (const char *)data + transfer.done, bytes - transfer.done);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

static ssize_t write_parts(int fd, const struct iovec *parts, int count)
{
    struct transfer transfer = begin(&SENDING, fd, 0, 0);
    ssize_t result = REAL(writev)(fd, parts, count);
    if (result > 0)
        transfer.wanted = bytes_of(parts, (size_t)count);
    if (!goes_on(&transfer, result))
        return result;
    struct iovec *rest = ROOM_FOR((size_t)count);
    do
        result = REAL(writev)(fd, rest, (int)rest_of(parts, (size_t)count, transfer.done, rest));
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return sampler_interrupts_waits() ? write_parts(fd, parts, count)
                                      : REAL(writev)(fd, parts, count);
}

EXPORT ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
                      socklen_t to_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
    struct transfer transfer = begin(&SENDING, fd, bytes, flags);
    ssize_t result;
    do
        result = REAL(sendto)(fd, (const char *)data + transfer.done, bytes - transfer.done, flags,
                              to, to_bytes);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    return sendto(fd, data, bytes, flags, (__CONST_SOCKADDR_ARG){.__sockaddr__ = NULL}, 0);
}

/* What goes beside the bytes goes with the first of them. */
static ssize_t send_parts(int fd, const struct msghdr *message, int flags)
{
    struct transfer transfer = begin(&SENDING, fd, 0, flags);
    ssize_t result = REAL(sendmsg)(fd, message, flags);
    if (result > 0)
        transfer.wanted = bytes_of(message->msg_iov, message->msg_iovlen);
    if (!goes_on(&transfer, result))
        return result;
    struct msghdr rest = {.msg_name = message->msg_name,
                          .msg_namelen = message->msg_namelen,
                          .msg_iov = ROOM_FOR(message->msg_iovlen)};
    do {
        rest.msg_iovlen =
            rest_of(message->msg_iov, message->msg_iovlen, transfer.done, rest.msg_iov);
        result = REAL(sendmsg)(fd, transfer.done ? &rest : message, flags);
    } while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return sampler_interrupts_waits() ? send_parts(fd, message, flags)
                                      : REAL(sendmsg)(fd, message, flags);
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t to_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(connect)(fd, to, to_bytes);
    struct transfer transfer = begin(&CONNECTING, fd, 1, 0);
    int result;
    do
        result = REAL(connect)(fd, to, to_bytes);
    while (goes_on(&transfer, result));
    return result;
}
