/* With wall-clock time a thread is interrupted while it waits, too. The kernel goes on with most
 * calls afterwards, but not with those that have a time limit, nor with pause: they end with EINTR,
 * and a program that sleeps for two seconds would go on at once. So these are called again, for the
 * time that is left (wait.c). The program sees nothing of it, and Python does not ask for its lock.
 *
 * Where nobody interrupts waits all of this only passes on, by a jump: stacks are those of the
 * program. */
#include "base/clock.h"
#include "interp/interpose.h"
#include "interp/sampler.h"
#include "interp/wait.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <threads.h>
#include <unistd.h>

#define EXPORT INTERPOSE_EXPORT

enum { NS_PER_MS = 1000000 };

static struct {
    int (*nanosleep)(const struct timespec *, struct timespec *);
    int (*clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
    int (*poll)(struct pollfd *, nfds_t, int);
    int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    int (*__poll_chk)(struct pollfd *, nfds_t, int, size_t);
    int (*__ppoll_chk)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
    int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
    int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
    int (*epoll_wait)(int, struct epoll_event *, int, int);
    int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
    int (*epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
    int (*sem_timedwait)(sem_t *, const struct timespec *);
    int (*sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
    int (*semop)(int, struct sembuf *, size_t);
    int (*semtimedop)(int, struct sembuf *, size_t, const struct timespec *);
    int (*msgsnd)(int, const void *, size_t, int);
    ssize_t (*msgrcv)(int, void *, size_t, long, int);
    int (*sigsuspend)(const sigset_t *);
    int (*pause)(void);
} found;

__attribute__((constructor)) static void find(void)
{
    static const struct interpose_name NAMES[] = {
        {"nanosleep", &found.nanosleep},
        {"clock_nanosleep", &found.clock_nanosleep},
        {"poll", &found.poll},
        {"ppoll", &found.ppoll},
        {"__poll_chk", &found.__poll_chk},
        {"__ppoll_chk", &found.__ppoll_chk},
        {"select", &found.select},
        {"pselect", &found.pselect},
        {"epoll_wait", &found.epoll_wait},
        {"epoll_pwait", &found.epoll_pwait},
        {"epoll_pwait2", &found.epoll_pwait2},
        {"sem_timedwait", &found.sem_timedwait},
        {"sem_clockwait", &found.sem_clockwait},
        {"semop", &found.semop},
        {"semtimedop", &found.semtimedop},
        {"msgsnd", &found.msgsnd},
        {"msgrcv", &found.msgrcv},
        {"sigsuspend", &found.sigsuspend},
        {"pause", &found.pause},
    };
    interpose_find(NAMES, sizeof NAMES / sizeof *NAMES);
}

#define REAL(name) (find(), found.name)

/* For calls that give the number of an error. */
static bool was_us(const struct wait *wait, int error)
{
    return error == EINTR && wait_was_us(wait);
}

/* A time limit in milliseconds, for the rest: not less, as the kernel does it. */
static int ms_left(const struct wait *wait, int limit_ms)
{
    return limit_ms < 0 ? limit_ms : (int)((wait_ns_left(wait) + NS_PER_MS - 1) / NS_PER_MS);
}

static struct wait begin_wait_ms(int limit_ms)
{
    return wait_begin(limit_ms > 0 ? (uint64_t)limit_ms * NS_PER_MS : 0);
}

/* --- sleep ----------------------------------------------------------------------------------- */

/* The kernel's own `left` has the time in it by which it lets a sleep be longer, 50 us: it would be
 * longer by that each time. */
EXPORT int nanosleep(const struct timespec *time, struct timespec *ret_left)
{
    if (!sampler_interrupts_waits())
        return REAL(nanosleep)(time, ret_left);
    struct timespec left;
    struct wait wait = wait_begin(wait_ns_of(time));
    int result = REAL(nanosleep)(time, &left);
    while (wait_goes_on(&wait, result)) {
        struct timespec rest = clock_time_of(wait_ns_left(&wait));
        result = REAL(nanosleep)(&rest, &left);
    }
    if (result == -1 && errno == EINTR && ret_left)
        *ret_left = left;
    return wait_end(&wait, result);
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *ret_left)
{
    if (!sampler_interrupts_waits())
        return REAL(clock_nanosleep)(clock, flags, time, ret_left);
    struct timespec left;
    struct wait wait = wait_begin(wait_ns_of(time));
    bool is_absolute = flags & TIMER_ABSTIME;
    bool is_usual = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME; /* how long, not when */
    int error = REAL(clock_nanosleep)(clock, flags, time, &left);
    while (was_us(&wait, error)) {
        struct timespec rest = is_absolute ? *time
                               : is_usual  ? clock_time_of(wait_ns_left(&wait))
                                           : left;
        error = REAL(clock_nanosleep)(clock, flags, &rest, &left);
    }
    if (error == EINTR && ret_left && !is_absolute)
        *ret_left = left;
    return error;
}

EXPORT int usleep(useconds_t microseconds)
{
    struct timespec time = clock_time_of((uint64_t)microseconds * 1000);
    return nanosleep(&time, NULL);
}

EXPORT unsigned sleep(unsigned seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds}, left = time;
    return nanosleep(&time, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

/* C11's. */
EXPORT int thrd_sleep(const struct timespec *time, struct timespec *ret_left)
{
    int error = clock_nanosleep(CLOCK_REALTIME, 0, time, ret_left);
    return error == 0 ? 0 : error == EINTR ? -1 : -2;
}

/* --- descriptors ----------------------------------------------------------------------------- */

EXPORT int poll(struct pollfd *descriptors, nfds_t count, int limit_ms)
{
    if (!sampler_interrupts_waits())
        return REAL(poll)(descriptors, count, limit_ms);
    struct wait wait = begin_wait_ms(limit_ms);
    int result = REAL(poll)(descriptors, count, limit_ms);
    while (wait_goes_on(&wait, result))
        result = REAL(poll)(descriptors, count, ms_left(&wait, limit_ms));
    return wait_end(&wait, result);
}

EXPORT int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *limit,
                 const sigset_t *blocked)
{
    if (!sampler_interrupts_waits())
        return REAL(ppoll)(descriptors, count, limit, blocked);
    struct wait wait = wait_begin(wait_ns_of(limit));
    int result = REAL(ppoll)(descriptors, count, limit, blocked);
    while (wait_goes_on(&wait, result)) {
        struct timespec left = clock_time_of(wait_ns_left(&wait));
        result = REAL(ppoll)(descriptors, count, limit ? &left : NULL, blocked);
    }
    return wait_end(&wait, result);
}

int interpose_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *limit)
{
    return REAL(ppoll)(descriptors, count, limit, NULL);
}

/* What these are in programs that are compiled with _FORTIFY_SOURCE: the C library ends the program
 * if there are more descriptors than room for them. */
int __poll_chk(struct pollfd *descriptors, nfds_t count, int limit_ms, size_t room);
EXPORT int __poll_chk(struct pollfd *descriptors, nfds_t count, int limit_ms, size_t room)
{
    return room / sizeof *descriptors < count ? REAL(__poll_chk)(descriptors, count, limit_ms, room)
                                              : poll(descriptors, count, limit_ms);
}

int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *limit,
                const sigset_t *blocked, size_t room);
EXPORT int __ppoll_chk(struct pollfd *descriptors, nfds_t count, const struct timespec *limit,
                       const sigset_t *blocked, size_t room)
{
    return room / sizeof *descriptors < count
               ? REAL(__ppoll_chk)(descriptors, count, limit, blocked, room)
               : ppoll(descriptors, count, limit, blocked);
}

/* The kernel leaves the sets as they are, and the time that is left in `limit`. */
EXPORT int select(int count, fd_set *reading, fd_set *writing, fd_set *others,
                  struct timeval *limit)
{
    if (!sampler_interrupts_waits())
        return REAL(select)(count, reading, writing, others, limit);
    struct wait wait = wait_begin(wait_ns_of_value(limit));
    int result = REAL(select)(count, reading, writing, others, limit);
    while (wait_goes_on(&wait, result)) {
        if (limit)
            *limit = wait_value_of(wait_ns_left(&wait));
        result = REAL(select)(count, reading, writing, others, limit);
    }
    return wait_end(&wait, result);
}

EXPORT int pselect(int count, fd_set *reading, fd_set *writing, fd_set *others,
                   const struct timespec *limit, const sigset_t *blocked)
{
    if (!sampler_interrupts_waits())
        return REAL(pselect)(count, reading, writing, others, limit, blocked);
    struct wait wait = wait_begin(wait_ns_of(limit));
    int result = REAL(pselect)(count, reading, writing, others, limit, blocked);
    while (wait_goes_on(&wait, result)) {
        struct timespec left = clock_time_of(wait_ns_left(&wait));
        result = REAL(pselect)(count, reading, writing, others, limit ? &left : NULL, blocked);
    }
    return wait_end(&wait, result);
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int most, int limit_ms)
{
    if (!sampler_interrupts_waits())
        return REAL(epoll_wait)(fd, events, most, limit_ms);
    struct wait wait = begin_wait_ms(limit_ms);
    int result = REAL(epoll_wait)(fd, events, most, limit_ms);
    while (wait_goes_on(&wait, result))
        result = REAL(epoll_wait)(fd, events, most, ms_left(&wait, limit_ms));
    return wait_end(&wait, result);
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int most, int limit_ms,
                       const sigset_t *blocked)
{
    if (!sampler_interrupts_waits())
        return REAL(epoll_pwait)(fd, events, most, limit_ms, blocked);
    struct wait wait = begin_wait_ms(limit_ms);
    int result = REAL(epoll_pwait)(fd, events, most, limit_ms, blocked);
    while (wait_goes_on(&wait, result))
        result = REAL(epoll_pwait)(fd, events, most, ms_left(&wait, limit_ms), blocked);
    return wait_end(&wait, result);
}

/* glibc has it since 2.35. */
int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *limit,
                 const sigset_t *blocked);
EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *limit,
                        const sigset_t *blocked)
{
    if (!REAL(epoll_pwait2)) {
        errno = ENOSYS;
        return -1;
    }
    if (!sampler_interrupts_waits())
        return REAL(epoll_pwait2)(fd, events, most, limit, blocked);
    struct wait wait = wait_begin(wait_ns_of(limit));
    int result = REAL(epoll_pwait2)(fd, events, most, limit, blocked);
    while (wait_goes_on(&wait, result)) {
        struct timespec left = clock_time_of(wait_ns_left(&wait));
        result = REAL(epoll_pwait2)(fd, events, most, limit ? &left : NULL, blocked);
    }
    return wait_end(&wait, result);
}

/* --- semaphores, which are Python's locks ---------------------------------------------------- */

EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *end)
{
    if (!sampler_interrupts_waits())
        return REAL(sem_timedwait)(semaphore, end);
    struct wait wait = wait_begin(0);
    int result = REAL(sem_timedwait)(semaphore, end);
    while (wait_goes_on(&wait, result))
        result = REAL(sem_timedwait)(semaphore, end);
    return wait_end(&wait, result);
}

/* glibc has it since 2.30. */
int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end);
EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end)
{
    if (!REAL(sem_clockwait)) {
        errno = ENOSYS;
        return -1;
    }
    if (!sampler_interrupts_waits())
        return REAL(sem_clockwait)(semaphore, clock, end);
    struct wait wait = wait_begin(0);
    int result = REAL(sem_clockwait)(semaphore, clock, end);
    while (wait_goes_on(&wait, result))
        result = REAL(sem_clockwait)(semaphore, clock, end);
    return wait_end(&wait, result);
}

/* --- System V's semaphores and messages ------------------------------------------------------ */

EXPORT int semop(int set, struct sembuf *changes, size_t count)
{
    if (!sampler_interrupts_waits())
        return REAL(semop)(set, changes, count);
    struct wait wait = wait_begin(0);
    int result = REAL(semop)(set, changes, count);
    while (wait_goes_on(&wait, result))
        result = REAL(semop)(set, changes, count);
    return wait_end(&wait, result);
}

EXPORT int semtimedop(int set, struct sembuf *changes, size_t count, const struct timespec *limit)
{
    if (!sampler_interrupts_waits())
        return REAL(semtimedop)(set, changes, count, limit);
    struct wait wait = wait_begin(wait_ns_of(limit));
    int result = REAL(semtimedop)(set, changes, count, limit);
    while (wait_goes_on(&wait, result)) {
        struct timespec left = clock_time_of(wait_ns_left(&wait));
        result = REAL(semtimedop)(set, changes, count, limit ? &left : NULL);
    }
    return wait_end(&wait, result);
}

EXPORT int msgsnd(int queue, const void *message, size_t bytes, int flags)
{
    if (!sampler_interrupts_waits())
        return REAL(msgsnd)(queue, message, bytes, flags);
    struct wait wait = wait_begin(0);
    int result = REAL(msgsnd)(queue, message, bytes, flags);
    while (wait_goes_on(&wait, result))
        result = REAL(msgsnd)(queue, message, bytes, flags);
    return wait_end(&wait, result);
}

EXPORT ssize_t msgrcv(int queue, void *message, size_t bytes, long type, int flags)
{
    if (!sampler_interrupts_waits())
        return REAL(msgrcv)(queue, message, bytes, type, flags);
    struct wait wait = wait_begin(0);
    ssize_t result = REAL(msgrcv)(queue, message, bytes, type, flags);
    while (wait_goes_on(&wait, (int)result))
        result = REAL(msgrcv)(queue, message, bytes, type, flags);
    wait_end(&wait, (int)result);
    return result;
}

/* --- signals --------------------------------------------------------------------------------- */

EXPORT int pause(void)
{
    if (!sampler_interrupts_waits())
        return REAL(pause)();
    struct wait wait = wait_begin(0);
    int result = REAL(pause)();
    while (wait_goes_on(&wait, result))
        result = REAL(pause)();
    return wait_end(&wait, result);
}

EXPORT int sigsuspend(const sigset_t *blocked)
{
    if (!sampler_interrupts_waits())
        return REAL(sigsuspend)(blocked);
    struct wait wait = wait_begin(0);
    int result = REAL(sigsuspend)(blocked);
    while (wait_goes_on(&wait, result))
        result = REAL(sigsuspend)(blocked);
    return wait_end(&wait, result);
}

/* What sigpause is today. */
int __xpg_sigpause(int signal);
EXPORT int __xpg_sigpause(int signal)
{
    sigset_t blocked;
    interpose_sigmask(SIG_BLOCK, NULL, &blocked);
    return sigdelset(&blocked, signal) < 0 ? -1 : sigsuspend(&blocked);
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *ret_info, const struct timespec *limit)
{
    struct wait wait = wait_begin(wait_ns_of(limit));
    int result = interpose_sigtimedwait(set, ret_info, limit);
    while (wait_goes_on(&wait, result)) {
        struct timespec left = clock_time_of(wait_ns_left(&wait));
        result = interpose_sigtimedwait(set, ret_info, limit ? &left : NULL);
    }
    return wait_end(&wait, result);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *ret_info)
{
    return sigtimedwait(set, ret_info, NULL);
}
