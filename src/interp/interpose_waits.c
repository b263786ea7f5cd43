/* With wall-clock time a thread is interrupted while it waits, too. The kernel goes on with most
 * calls afterwards, but not with those that have a time limit, nor with pause: they end with EINTR,
 * and a program that sleeps for two seconds would go on at once. So these are called again, for the
 * time that is left, when it was our signal that has ended them, and no handler of the program's
 * has run meanwhile. The program sees nothing of it, and Python does not ask for its lock.
 *
 * A signal of the program's may come between our handler and the next call, which it can't end:
 *
 *     wait ... [our signal] EINTR, goes on? yes ... [its signal, its handler] ... wait ...
 *
 * But its handler is counted (program_handlers.c), and our next signal ends this wait as well: then
 * the program gets its EINTR, later by less than the time between two samples.
 *
 * Where nobody interrupts waits all of this only passes on. */
#include "base/clock.h"
#include "interp/interpose.h"
#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

#define EXPORT INTERPOSE_EXPORT

enum { NS_PER_SECOND = 1000000000, NS_PER_MS = 1000000, NS_PER_US = 1000 };

static struct {
    int (*nanosleep)(const struct timespec *, struct timespec *);
    int (*clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
    int (*poll)(struct pollfd *, nfds_t, int);
    int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
    int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
    int (*epoll_wait)(int, struct epoll_event *, int, int);
    int (*epoll_pwait)(int, struct epoll_event *, int, int, const sigset_t *);
    int (*epoll_pwait2)(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
    int (*sem_timedwait)(sem_t *, const struct timespec *);
    int (*sem_clockwait)(sem_t *, clockid_t, const struct timespec *);
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
        {"select", &found.select},
        {"pselect", &found.pselect},
        {"epoll_wait", &found.epoll_wait},
        {"epoll_pwait", &found.epoll_pwait},
        {"epoll_pwait2", &found.epoll_pwait2},
        {"sem_timedwait", &found.sem_timedwait},
        {"sem_clockwait", &found.sem_clockwait},
        {"sigsuspend", &found.sigsuspend},
        {"pause", &found.pause},
    };
    interpose_find(NAMES, sizeof NAMES / sizeof *NAMES);
}

#define REAL(name) (find(), found.name)

/* One wait, as often as it is called. */
struct wait {
    struct sample_thread *thread; /* NULL: it is called once */
    uint32_t handled;             /* of the thread, when the wait began */
    uint64_t end_ns;              /* CLOCK_MONOTONIC */
};

static struct wait begin_wait(uint64_t most_ns)
{
    struct wait wait = {.thread = sampler_interrupts_waits()};
    if (wait.thread) {
        wait.thread->has_ended_wait = false;
        wait.handled = wait.thread->handled;
        wait.end_ns = clock_ns(CLOCK_MONOTONIC) + most_ns;
    }
    return wait;
}

/* Whether a call that gave this was ended by us alone. */
static bool was_us(const struct wait *wait, int error)
{
    if (!wait->thread || error != EINTR || !wait->thread->has_ended_wait ||
        wait->thread->handled != wait->handled)
        return false;
    wait->thread->has_ended_wait = false;
    return true;
}

/* The same, for calls that give -1 and errno. */
static bool goes_on(const struct wait *wait, int result)
{
    return was_us(wait, result == -1 ? errno : 0);
}

static uint64_t ns_left(const struct wait *wait)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    return wait->end_ns > now ? wait->end_ns - now : 0;
}

/* Nobody waits longer than this, which does not overflow. */
static uint64_t ns_of(const struct timespec *time)
{
    const uint64_t MOST = UINT64_MAX / 4;
    if (!time || time->tv_sec < 0 || (uint64_t)time->tv_sec >= MOST / NS_PER_SECOND)
        return MOST;
    return (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_nsec;
}

static struct timespec time_of(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SECOND),
                             .tv_nsec = (long)(ns % NS_PER_SECOND)};
}

static uint64_t ns_of_value(const struct timeval *time)
{
    struct timespec same = {.tv_sec = time ? time->tv_sec : -1,
                            .tv_nsec = time ? time->tv_usec * NS_PER_US : 0};
    return ns_of(&same);
}

static struct timeval value_of(uint64_t ns)
{
    struct timespec time = time_of(ns + NS_PER_US - 1);
    return (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / NS_PER_US};
}

/* A time limit in milliseconds, for the rest: not less, as the kernel does it. */
static int ms_left(const struct wait *wait, int limit_ms)
{
    return limit_ms < 0 ? limit_ms : (int)((ns_left(wait) + NS_PER_MS - 1) / NS_PER_MS);
}

static struct wait begin_wait_ms(int limit_ms)
{
    return begin_wait(limit_ms > 0 ? (uint64_t)limit_ms * NS_PER_MS : 0);
}

/* --- sleep ----------------------------------------------------------------------------------- */

/* The kernel's own `left` has the time in it by which it lets a sleep be longer, 50 us: it would be
 * longer by that each time. */
EXPORT int nanosleep(const struct timespec *time, struct timespec *ret_left)
{
    struct timespec left;
    struct wait wait = begin_wait(ns_of(time));
    int result = REAL(nanosleep)(time, &left);
    while (goes_on(&wait, result)) {
        struct timespec rest = time_of(ns_left(&wait));
        result = REAL(nanosleep)(&rest, &left);
    }
    if (result == -1 && errno == EINTR && ret_left)
        *ret_left = left;
    return result;
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *ret_left)
{
    struct timespec left;
    struct wait wait = begin_wait(ns_of(time));
    bool is_absolute = flags & TIMER_ABSTIME;
    bool is_usual = clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME; /* how long, not when */
    int error = REAL(clock_nanosleep)(clock, flags, time, &left);
    while (was_us(&wait, error)) {
        struct timespec rest = is_absolute ? *time : is_usual ? time_of(ns_left(&wait)) : left;
        error = REAL(clock_nanosleep)(clock, flags, &rest, &left);
    }
    if (error == EINTR && ret_left && !is_absolute)
        *ret_left = left;
    return error;
}

EXPORT int usleep(useconds_t microseconds)
{
    struct timespec time = time_of((uint64_t)microseconds * 1000);
    return nanosleep(&time, NULL);
}

EXPORT unsigned sleep(unsigned seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds}, left = time;
    return nanosleep(&time, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}

/* --- descriptors ----------------------------------------------------------------------------- */

EXPORT int poll(struct pollfd *descriptors, nfds_t count, int limit_ms)
{
    struct wait wait = begin_wait_ms(limit_ms);
    int result = REAL(poll)(descriptors, count, limit_ms);
    while (goes_on(&wait, result))
        result = REAL(poll)(descriptors, count, ms_left(&wait, limit_ms));
    return result;
}

EXPORT int ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *limit,
                 const sigset_t *blocked)
{
    struct wait wait = begin_wait(ns_of(limit));
    int result = REAL(ppoll)(descriptors, count, limit, blocked);
    while (goes_on(&wait, result)) {
        struct timespec left = time_of(ns_left(&wait));
        result = REAL(ppoll)(descriptors, count, limit ? &left : NULL, blocked);
    }
    return result;
}

/* The kernel leaves the sets as they are, and the time that is left in `limit`. */
EXPORT int select(int count, fd_set *reading, fd_set *writing, fd_set *others,
                  struct timeval *limit)
{
    struct wait wait = begin_wait(ns_of_value(limit));
    int result = REAL(select)(count, reading, writing, others, limit);
    while (goes_on(&wait, result)) {
        if (limit)
            *limit = value_of(ns_left(&wait));
        result = REAL(select)(count, reading, writing, others, limit);
    }
    return result;
}

EXPORT int pselect(int count, fd_set *reading, fd_set *writing, fd_set *others,
                   const struct timespec *limit, const sigset_t *blocked)
{
    struct wait wait = begin_wait(ns_of(limit));
    int result = REAL(pselect)(count, reading, writing, others, limit, blocked);
    while (goes_on(&wait, result)) {
        struct timespec left = time_of(ns_left(&wait));
        result = REAL(pselect)(count, reading, writing, others, limit ? &left : NULL, blocked);
    }
    return result;
}

EXPORT int epoll_wait(int fd, struct epoll_event *events, int most, int limit_ms)
{
    struct wait wait = begin_wait_ms(limit_ms);
    int result = REAL(epoll_wait)(fd, events, most, limit_ms);
    while (goes_on(&wait, result))
        result = REAL(epoll_wait)(fd, events, most, ms_left(&wait, limit_ms));
    return result;
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int most, int limit_ms,
                       const sigset_t *blocked)
{
    struct wait wait = begin_wait_ms(limit_ms);
    int result = REAL(epoll_pwait)(fd, events, most, limit_ms, blocked);
    while (goes_on(&wait, result))
        result = REAL(epoll_pwait)(fd, events, most, ms_left(&wait, limit_ms), blocked);
    return result;
}

/* glibc has it since 2.35. */
int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *limit,
                 const sigset_t *blocked);
EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *limit,
                        const sigset_t *blocked)
{
    struct wait wait = begin_wait(ns_of(limit));
    if (!REAL(epoll_pwait2)) {
        errno = ENOSYS;
        return -1;
    }
    int result = REAL(epoll_pwait2)(fd, events, most, limit, blocked);
    while (goes_on(&wait, result)) {
        struct timespec left = time_of(ns_left(&wait));
        result = REAL(epoll_pwait2)(fd, events, most, limit ? &left : NULL, blocked);
    }
    return result;
}

/* --- semaphores, which are Python's locks ---------------------------------------------------- */

EXPORT int sem_timedwait(sem_t *semaphore, const struct timespec *end)
{
    struct wait wait = begin_wait(0);
    int result = REAL(sem_timedwait)(semaphore, end);
    while (goes_on(&wait, result))
        result = REAL(sem_timedwait)(semaphore, end);
    return result;
}

/* glibc has it since 2.30. */
int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end);
EXPORT int sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *end)
{
    struct wait wait = begin_wait(0);
    if (!REAL(sem_clockwait)) {
        errno = ENOSYS;
        return -1;
    }
    int result = REAL(sem_clockwait)(semaphore, clock, end);
    while (goes_on(&wait, result))
        result = REAL(sem_clockwait)(semaphore, clock, end);
    return result;
}

/* --- signals --------------------------------------------------------------------------------- */

EXPORT int pause(void)
{
    struct wait wait = begin_wait(0);
    int result = REAL(pause)();
    while (goes_on(&wait, result))
        result = REAL(pause)();
    return result;
}

EXPORT int sigsuspend(const sigset_t *blocked)
{
    struct wait wait = begin_wait(0);
    int result = REAL(sigsuspend)(blocked);
    while (goes_on(&wait, result))
        result = REAL(sigsuspend)(blocked);
    return result;
}

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *ret_info, const struct timespec *limit)
{
    struct wait wait = begin_wait(ns_of(limit));
    int result = interpose_sigtimedwait(set, ret_info, limit);
    while (goes_on(&wait, result)) {
        struct timespec left = time_of(ns_left(&wait));
        result = interpose_sigtimedwait(set, ret_info, limit ? &left : NULL);
    }
    return result;
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *ret_info)
{
    return sigtimedwait(set, ret_info, NULL);
}
