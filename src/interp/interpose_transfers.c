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
#define NO_ADDRESS ((__CONST_SOCKADDR_ARG){.__sockaddr__ = NULL})

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
    size_t wanted, done; /* bytes */
    bool is_socket;      /* known when something is done */
};

static struct transfer begin(const struct direction *direction, int fd, size_t wanted, int flags)
{
    return (struct transfer){
        .direction = direction, .fd = fd, .flags = flags, .wait = wait_begin(0), .wanted = wanted};
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
        struct timespec left = wait_time_of(left_ns);
        if (has_limit && !left_ns)
            return 0;
        result = interpose_ppoll(&one, 1, has_limit ? &left : NULL);
    } while (wait_goes_on(&transfer->wait, result));
    *ret_events = one.revents;
    return result;
}

/* Whether a call that has done nothing is to be made again; errno says why not. */
static bool begins_again(struct transfer *transfer)
{
    short events;
    if (!find_limit(transfer) || never_waits(transfer))
        return true;
    int result = wait_for_events(transfer, true, &events);
    if (result == 0)
        errno = EAGAIN;
    return result > 0;
}

/* The same for one on a socket that has done a part. */
static bool may_follow_on_socket(struct transfer *transfer)
{
    short events;
    bool is_wanted = transfer->direction == &SENDING || transfer->flags & MSG_WAITALL;
    return is_wanted && !(transfer->flags & ~transfer->direction->flags) &&
           option_of(transfer->fd, SO_TYPE) == SOCK_STREAM &&
           wait_for_events(transfer, find_limit(transfer), &events) > 0 &&
           !(events & transfer->direction->no_events);
}

/* And on any descriptor. Signals do not cut what is done with files on disks; from a pipe or a
 * terminal one reads what is there; and what other devices do is not known. */
static bool may_follow(struct transfer *transfer)
{
    enum { MEMORY_DEVICES = 1 }; /* /dev/zero, /dev/urandom and so on */
    struct stat file;
    if (fstat(transfer->fd, &file) < 0 || never_waits(transfer))
        return false;
    transfer->is_socket = S_ISSOCK(file.st_mode);
    if (transfer->is_socket)
        return may_follow_on_socket(transfer);
    if (transfer->direction == &SENDING)
        return S_ISFIFO(file.st_mode) || (S_ISCHR(file.st_mode) && isatty(transfer->fd));
    return S_ISCHR(file.st_mode) && major(file.st_rdev) == MEMORY_DEVICES;
}

/* Whether a call that gave this is to be made again, for the rest. */
static bool goes_on(struct transfer *transfer, ssize_t result)
{
    if (result > 0)
        transfer->done += (size_t)result;
    bool is_cut = result < 0 ? errno == EINTR : result > 0 && transfer->done < transfer->wanted;
    if (!is_cut || !wait_was_us(&transfer->wait))
        return false;
    return transfer->done ? may_follow(transfer) : begins_again(transfer);
}

/* What the program gets, after the last call. */
static ssize_t end(const struct transfer *transfer, ssize_t result)
{
    if (transfer->done)
        result = (ssize_t)transfer->done;
    if (result >= 0)
        errno = transfer->wait.error;
    return result;
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
    struct transfer transfer = begin(&RECEIVING, fd, bytes, 0);
    ssize_t result;
    do
        result = REAL(read)(fd, (char *)data + transfer.done, bytes - transfer.done);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    if (!sampler_interrupts_waits())
        return REAL(readv)(fd, parts, count);
    struct transfer transfer = begin(&RECEIVING, fd, 0, 0);
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
    struct transfer transfer = begin(&RECEIVING, fd, bytes, flags);
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

/* Where descriptors can come beside the bytes, a message ends where they do: it stays as it is. */
static ssize_t receive_parts(int fd, struct msghdr *message, int flags)
{
    struct transfer transfer = begin(&RECEIVING, fd, 0, flags);
    struct msghdr rest = {0};
    ssize_t result;
    bool is_again;
    do {
        result = REAL(recvmsg)(fd, transfer.done ? &rest : message, flags);
        if (result > 0 && !transfer.done && !message->msg_control)
            transfer.wanted = bytes_of(message->msg_iov, message->msg_iovlen);
        is_again = goes_on(&transfer, result);
        if (is_again && transfer.done) {
            rest.msg_iov = rest.msg_iov ? rest.msg_iov : ROOM_FOR(message->msg_iovlen);
            rest.msg_iovlen =
                rest_of(message->msg_iov, message->msg_iovlen, transfer.done, rest.msg_iov);
        }
    } while (is_again);
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
    struct transfer transfer = begin(&RECEIVING, fd, 0, 0);
    int result;
    do
        result = REAL(accept4)(fd, from, from_bytes, flags);
    while (result < 0 && goes_on(&transfer, result));
    return (int)end(&transfer, result);
}

EXPORT int accept(int fd, __SOCKADDR_ARG from, socklen_t *from_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(accept)(fd, from, from_bytes);
    struct transfer transfer = begin(&RECEIVING, fd, 0, 0);
    int result;
    do
        result = REAL(accept)(fd, from, from_bytes);
    while (result < 0 && goes_on(&transfer, result));
    return (int)end(&transfer, result);
}

/* Of a device, but it is cut as others are. */
EXPORT ssize_t getrandom(void *data, size_t bytes, unsigned flags)
{
    if (!sampler_interrupts_waits())
        return REAL(getrandom)(data, bytes, flags);
    struct transfer transfer = begin(&RECEIVING, -1, bytes, 0);
    ssize_t result;
    do {
        result = REAL(getrandom)((char *)data + transfer.done, bytes - transfer.done, flags);
        transfer.done += result > 0 ? (size_t)result : 0;
    } while (transfer.done < bytes && (result > 0 || errno == EINTR) &&
             wait_was_us(&transfer.wait));
    return end(&transfer, result);
}

/* --- send ------------------------------------------------------------------------------------ */

EXPORT ssize_t write(int fd, const void *data, size_t bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(write)(fd, data, bytes);
    struct transfer transfer = begin(&SENDING, fd, bytes, 0);
    ssize_t result;
    do {
        const char *rest = (const char *)data + transfer.done;
        size_t left = bytes - transfer.done;
        result = transfer.is_socket ? REAL(sendto)(fd, rest, left, MSG_NOSIGNAL, NO_ADDRESS, 0)
                                    : REAL(write)(fd, rest, left);
    } while (goes_on(&transfer, result));
    return end(&transfer, result);
}

/* The next call of one in several parts: the first, or for the rest. */
static ssize_t write_parts_once(const struct transfer *transfer, const struct iovec *parts,
                                int count, struct iovec *room)
{
    if (!transfer->done)
        return REAL(writev)(transfer->fd, parts, count);
    struct msghdr rest = {.msg_iov = room,
                          .msg_iovlen = rest_of(parts, (size_t)count, transfer->done, room)};
    return transfer->is_socket ? REAL(sendmsg)(transfer->fd, &rest, MSG_NOSIGNAL)
                               : REAL(writev)(transfer->fd, room, (int)rest.msg_iovlen);
}

static ssize_t write_parts(int fd, const struct iovec *parts, int count)
{
    struct transfer transfer = begin(&SENDING, fd, 0, 0);
    struct iovec *room = NULL;
    ssize_t result;
    do {
        result = write_parts_once(&transfer, parts, count, room);
        if (result > 0 && !room) {
            room = ROOM_FOR((size_t)count);
            transfer.wanted = bytes_of(parts, (size_t)count);
        }
    } while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    return sampler_interrupts_waits() ? write_parts(fd, parts, count)
                                      : REAL(writev)(fd, parts, count);
}

/* If the other side is gone meanwhile, the program's next call tells it, with the signal. */
static int flags_of(const struct transfer *transfer)
{
    return transfer->done ? transfer->flags | MSG_NOSIGNAL : transfer->flags;
}

EXPORT ssize_t sendto(int fd, const void *data, size_t bytes, int flags, __CONST_SOCKADDR_ARG to,
                      socklen_t to_bytes)
{
    if (!sampler_interrupts_waits())
        return REAL(sendto)(fd, data, bytes, flags, to, to_bytes);
    struct transfer transfer = begin(&SENDING, fd, bytes, flags);
    ssize_t result;
    do
        result = REAL(sendto)(fd, (const char *)data + transfer.done, bytes - transfer.done,
                              flags_of(&transfer), to, to_bytes);
    while (goes_on(&transfer, result));
    return end(&transfer, result);
}

EXPORT ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    return sendto(fd, data, bytes, flags, NO_ADDRESS, 0);
}

/* What goes beside the bytes goes with the first of them. */
static ssize_t send_parts(int fd, const struct msghdr *message, int flags)
{
    struct transfer transfer = begin(&SENDING, fd, 0, flags);
    struct msghdr rest = {0};
    ssize_t result;
    bool is_again;
    do {
        result = REAL(sendmsg)(fd, transfer.done ? &rest : message, flags_of(&transfer));
        if (result > 0 && !transfer.done)
            transfer.wanted = bytes_of(message->msg_iov, message->msg_iovlen);
        is_again = goes_on(&transfer, result);
        if (is_again && transfer.done) {
            rest.msg_iov = rest.msg_iov ? rest.msg_iov : ROOM_FOR(message->msg_iovlen);
            rest.msg_iovlen =
                rest_of(message->msg_iov, message->msg_iovlen, transfer.done, rest.msg_iov);
        }
    } while (is_again);
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
    struct transfer transfer = begin(&SENDING, fd, 0, 0);
    int result;
    do
        result = REAL(connect)(fd, to, to_bytes);
    while (goes_on(&transfer, result));
    bool is_late = result < 0 && errno == EAGAIN && transfer.wait.most_ns;
    if (is_late && option_of(fd, SO_DOMAIN) != AF_UNIX)
        errno = EINPROGRESS;
    return (int)end(&transfer, result);
}
