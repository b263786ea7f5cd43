/* With wall-clock time our signal ends calls that send or receive, too. The kernel goes on with
 * them afterwards, except in two cases, in which programs that never get a signal see what they
 * have not seen before:
 *
 *     a part has been sent, or received with MSG_WAITALL      they give less than was wanted
 *     the socket has a time limit (SO_RCVTIMEO, SO_SNDTIMEO)  they give EINTR
 *
 * So the rest is sent or received by further calls, which end where the first one would have: with
 * the last byte, with the time limit, or with a signal of the program's own (wait.c). What was done
 * up to there is what the program gets. Nor must a further call find what the program's next one
 * would: an error of the socket is told once. So it is made only where there is none, with a poll
 * before it, and without SIGPIPE.
 *
 * Where nobody interrupts waits all of this only passes on, by a jump: stacks are those of the
 * program. */
#include "base/clock.h"
#include "interp/interpose.h"
#include "interp/sampler.h"
#include "interp/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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
    ssize_t (*getrandom)(void *, size_t, unsigned);
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
        {"getrandom", &found.getrandom},
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
#define NOBODY ((__SOCKADDR_ARG){.__sockaddr__ = NULL})
#define NOWHERE ((__CONST_SOCKADDR_ARG){.__sockaddr__ = NULL})

/* --- one transfer, in as many calls as it takes ---------------------------------------------- */

struct direction {
    short events;    /* that it waits for */
    short no_events; /* with which a further call would end otherwise than the first one */
    int flags;       /* MSG_...: those with which there can be a further call */
    int limit;       /* the socket's option with its time limit */
};

static const struct direction RECEIVING = {POLLIN, POLLERR,
                                           MSG_WAITALL | MSG_DONTWAIT | MSG_NOSIGNAL |
                                               MSG_CMSG_CLOEXEC,
                                           SO_RCVTIMEO},
                              SENDING = {POLLOUT, POLLERR | POLLHUP,
                                         MSG_MORE | MSG_DONTWAIT | MSG_NOSIGNAL, SO_SNDTIMEO};

struct transfer {
    const struct direction *direction;
    int fd, flags;
    struct wait wait;
};

static struct transfer begin(const struct direction *direction, int fd, int flags)
{
    return (struct transfer){
        .direction = direction, .fd = fd, .flags = flags, .wait = wait_begin(0)};
}

static bool never_waits(const struct transfer *transfer)
{
    return transfer->flags & MSG_DONTWAIT || fcntl(transfer->fd, F_GETFL) & O_NONBLOCK;
}

static int option_of(int fd, int option)
{
    int value = 0;
    socklen_t bytes = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &bytes) == 0 ? value : -1;
}

/* False: it has no time limit. */
static bool find_limit(struct transfer *transfer)
{
    struct timeval limit;
    socklen_t bytes = sizeof limit;
    if (getsockopt(transfer->fd, SOL_SOCKET, transfer->direction->limit, &limit, &bytes) < 0 ||
        (limit.tv_sec == 0 && limit.tv_usec == 0))
        return false;
    transfer->wait.most_ns = wait_ns_of_value(&limit);
    return true;
}

/* Waits as long as the limit allows. 1, and what there is; 0: it is over; -1, as errno says. */
static int wait_for_events(const struct transfer *transfer, bool has_limit, short *ret_events)
{
    struct pollfd one = {.fd = transfer->fd, .events = transfer->direction->events};
    int result;
    do {
        uint64_t left_ns = has_limit ? wait_ns_left(&transfer->wait) : 0;
        struct timespec left = clock_time_of(left_ns);
        if (has_limit && !left_ns)
            return 0;
        result = interpose_ppoll(&one, 1, has_limit ? &left : NULL);
    } while (wait_goes_on(&transfer->wait, result));
    *ret_events = one.revents;
    return result;
}

/* Whether a call that gave this has done nothing and is to be made again; errno says why not. */
static bool begins_again(struct transfer *transfer, ssize_t result)
{
    short events;
    if (!wait_goes_on(&transfer->wait, result < 0 ? -1 : 0))
        return false;
    if (!find_limit(transfer) || never_waits(transfer))
        return true;
    int ready = wait_for_events(transfer, true, &events);
    if (ready == 0)
        errno = EAGAIN;
    return ready > 0;
}

enum way { NO_WAY, BY_FILE, BY_SOCKET };

static bool may_follow_on_socket(struct transfer *transfer)
{
    short events;
    bool is_wanted = transfer->direction == &SENDING || transfer->flags & MSG_WAITALL;
    return is_wanted && !(transfer->flags & ~transfer->direction->flags) &&
           option_of(transfer->fd, SO_TYPE) == SOCK_STREAM &&
           wait_for_events(transfer, find_limit(transfer), &events) > 0 &&
           !(events & transfer->direction->no_events);
}

/* How the rest may follow what has been done. Signals do not cut what is done with files on disks;
 * from a pipe or a terminal one reads what is there; and what other devices do is not known. */
static enum way way_to_follow(struct transfer *transfer)
{
    enum { MEMORY_DEVICES = 1 }; /* /dev/zero, /dev/urandom and so on */
    struct stat file;
    if (fstat(transfer->fd, &file) < 0 || never_waits(transfer))
        return NO_WAY;
    if (S_ISSOCK(file.st_mode))
        return may_follow_on_socket(transfer) ? BY_SOCKET : NO_WAY;
    bool may_follow =
        transfer->direction == &SENDING
            ? S_ISFIFO(file.st_mode) || (S_ISCHR(file.st_mode) && isatty(transfer->fd))
            : S_ISCHR(file.st_mode) && major(file.st_rdev) == MEMORY_DEVICES;
    return may_follow ? BY_FILE : NO_WAY;
}

/* If the other side is gone meanwhile, the program's next call tells it, with SIGPIPE. */
static ssize_t follow(const struct transfer *transfer, enum way way, struct iovec part)
{
    int flags = transfer->flags | MSG_NOSIGNAL;
    bool is_sent = transfer->direction == &SENDING;
    if (way == BY_FILE)
        return is_sent ? REAL(write)(transfer->fd, part.iov_base, part.iov_len)
                       : REAL(read)(transfer->fd, part.iov_base, part.iov_len);
    return is_sent ? REAL(sendto)(transfer->fd, part.iov_base, part.iov_len, flags, NOWHERE, 0)
                   : REAL(recvfrom)(transfer->fd, part.iov_base, part.iov_len, flags, NOBODY, NULL);
}

/* Of the memory in several parts, what is left of the first that is not done. */
static struct iovec rest_of(const struct iovec *parts, size_t count, size_t done)
{
    for (size_t i = 0; i < count; i++) {
        if (done < parts[i].iov_len)
            return (struct iovec){.iov_base = (char *)parts[i].iov_base + done,
                                  .iov_len = parts[i].iov_len - done};
        done -= parts[i].iov_len;
    }
    return (struct iovec){0};
}

/* Does what is left, behind a call that gave this. Returns what the program gets. */
static ssize_t finish(struct transfer *transfer, ssize_t result, const struct iovec *parts,
                      size_t count)
{
    size_t done = result > 0 ? (size_t)result : 0;
    struct iovec rest = done ? rest_of(parts, count, done) : (struct iovec){0};
    bool is_cut = wait_was_us(&transfer->wait);
    enum way way;
    while (rest.iov_len && is_cut && (way = way_to_follow(transfer)) != NO_WAY) {
        ssize_t more = follow(transfer, way, rest);
        is_cut = more == (ssize_t)rest.iov_len || /* there are other parts */
                 ((more > 0 || (more < 0 && errno == EINTR)) && wait_was_us(&transfer->wait));
        done += more > 0 ? (size_t)more : 0;
        rest = rest_of(parts, count, done);
    }
    if (result >= 0)
        errno = transfer->wait.error;
    return done ? (ssize_t)done : result;
}

/* --- receive --------------------------------------------------------------------------------- */

EXPORT ssize_t read(int fd, void *data, size_t bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(read)(fd, data, bytes);
    struct transfer transfer = begin(&RECEIVING, fd, 0);
    ssize_t result;
    do
        result = REAL(read)(fd, data, bytes);
    while (begins_again(&transfer, result));
    return finish(&transfer, result, &(struct iovec){data, bytes}, 1);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    if (!sampler_interrupts_waits())
        return REAL(readv)(fd, parts, count);
    struct transfer transfer = begin(&RECEIVING, fd, 0);
    ssize_t result;
    do
        result = REAL(readv)(fd, parts, count);
    while (begins_again(&transfer, result));
    return finish(&transfer, result, parts, (size_t)count);
}

EXPORT ssize_t recvfrom(int fd, void *data, size_t bytes, int flags, __SOCKADDR_ARG from,
                        socklen_t *from_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(recvfrom)(fd, data, bytes, flags, from, from_bytes);
    struct transfer transfer = begin(&RECEIVING, fd, flags);
    ssize_t result;
    do
        result = REAL(recvfrom)(fd, data, bytes, flags, from, from_bytes);
    while (begins_again(&transfer, result));
    return finish(&transfer, result, &(struct iovec){data, bytes}, 1);
}

EXPORT ssize_t recv(int fd, void *data, size_t bytes, int flags)
{
    return recvfrom(fd, data, bytes, flags, NOBODY, NULL);
}

/* Where descriptors can come beside the bytes, a message ends where they do: it stays as it is. */
EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    if (!sampler_interrupts_waits())
        return REAL(recvmsg)(fd, message, flags);
    struct transfer transfer = begin(&RECEIVING, fd, flags);
    ssize_t result;
    do
        result = REAL(recvmsg)(fd, message, flags);
    while (begins_again(&transfer, result));
    bool has_rest = result > 0 && !message->msg_control;
    return has_rest ? finish(&transfer, result, message->msg_iov, message->msg_iovlen)
                    : finish(&transfer, result, NULL, 0);
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
    struct transfer transfer = begin(&RECEIVING, fd, 0);
    int result;
    do
        result = REAL(accept4)(fd, from, from_bytes, flags);
    while (begins_again(&transfer, result));
    return wait_end(&transfer.wait, result);
}

EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *from_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(accept)(fd, from, from_bytes);
    struct transfer transfer = begin(&RECEIVING, fd, 0);
    int result;
    do
        result = REAL(accept)(fd, from, from_bytes);
    while (begins_again(&transfer, result));
    return wait_end(&transfer.wait, result);
}

/* Of a device, but without a descriptor. */
EXPORT ssize_t getrandom(void *data, size_t bytes, unsigned flags)
{
    if (!sampler_interrupts_waits())
        return REAL(getrandom)(data, bytes, flags);
    struct wait wait = wait_begin(0);
    size_t done = 0;
    ssize_t result;
    do {
        result = REAL(getrandom)((char *)data + done, bytes - done, flags);
        done += result > 0 ? (size_t)result : 0;
    } while (done < bytes && (result > 0 || errno == EINTR) && wait_was_us(&wait));
    wait_end(&wait, done ? 0 : (int)result);
    return done ? (ssize_t)done : result;
}

/* --- send ------------------------------------------------------------------------------------ */

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(write)(fd, data, bytes);
    struct transfer transfer = begin(&SENDING, fd, 0);
    ssize_t result;
    do
        result = REAL(write)(fd, data, bytes);
    while (begins_again(&transfer, result));
    return finish(&transfer, result, &(struct iovec){(void *)data, bytes}, 1);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (!sampler_interrupts_waits())
        return REAL(writev)(fd, parts, count);
    struct transfer transfer = begin(&SENDING, fd, 0);
    ssize_t result;
    do
        result = REAL(writev)(fd, parts, count);
    while (begins_again(&transfer, result));
    return finish(&transfer, result, parts, (size_t)count);
}

EXPORT ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
                      socklen_t to_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
    struct transfer transfer = begin(&SENDING, fd, flags);
    ssize_t result;
    do
        result = REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
    while (begins_again(&transfer, result));
    return finish(&transfer, result, &(struct iovec){(void *)data, bytes}, 1);
}

EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    return sendto(fd, data, bytes, flags, NOWHERE, 0);
}

/* What goes beside the bytes goes with the first of them. */
EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    if (!sampler_interrupts_waits())
        return REAL(sendmsg)(fd, message, flags);
    struct transfer transfer = begin(&SENDING, fd, flags);
    ssize_t result;
    do
        result = REAL(sendmsg)(fd, message, flags);
    while (begins_again(&transfer, result));
    return result > 0 ? finish(&transfer, result, message->msg_iov, message->msg_iovlen)
                      : finish(&transfer, result, NULL, 0);
}

EXPORT int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t to_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(connect)(fd, to, to_bytes);
    struct transfer transfer = begin(&SENDING, fd, 0);
    int result;
    do
        result = REAL(connect)(fd, to, to_bytes);
    while (begins_again(&transfer, result));
    bool is_late = result < 0 && errno == EAGAIN && transfer.wait.most_ns;
    if (is_late && option_of(fd, SO_DOMAIN) != AF_UNIX)
        errno = EINPROGRESS;
    return wait_end(&transfer.wait, result);
}
