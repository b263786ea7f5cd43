/* A call is made again, for the time that is left, when it was our signal that has ended it, and no
 * handler of the program's has run meanwhile. A signal of the program's may come between our
 * handler and the next call, which it can't end:
 *
 *     wait ... [our signal] EINTR, goes on? yes ... [its signal, its handler] ... wait ...
 *
 * But its handler is counted (program_handlers.c), and our next signal ends this wait as well: then
 * the program gets its EINTR, later by less than the time between two samples. */
#include "interp/wait.h"

#include "base/clock.h"
#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <errno.h>

enum { NS_PER_SECOND = 1000000000, NS_PER_US = 1000 };

struct wait wait_begin(uint64_t most_ns)
{
    struct wait wait = {.thread = sampler_interrupts_waits(), .most_ns = most_ns, .error = errno};
    if (wait.thread) {
        wait.thread->has_ended_call = false;
        wait.handled = wait.thread->handled;
        wait.begin_ns = clock_ns(CLOCK_MONOTONIC);
    }
    return wait;
}

bool wait_was_us(const struct wait *wait)
{
    if (!wait->thread || !wait->thread->has_ended_call || wait->thread->handled != wait->handled)
        return false;
    wait->thread->has_ended_call = false;
    return true;
}

bool wait_goes_on(const struct wait *wait, int result)
{
    return result == -1 && errno == EINTR && wait_was_us(wait);
}

int wait_end(const struct wait *wait, int result)
{
    if (result != -1)
        errno = wait->error;
    return result;
}

uint64_t wait_ns_left(const struct wait *wait)
{
    uint64_t gone_ns = clock_ns(CLOCK_MONOTONIC) - wait->begin_ns;
    return wait->most_ns > gone_ns ? wait->most_ns - gone_ns : 0;
}

uint64_t wait_ns_of(const struct timespec *time)
{
    const uint64_t MOST = UINT64_MAX / 4;
    if (!time || time->tv_sec < 0 || (uint64_t)time->tv_sec >= MOST / NS_PER_SECOND)
        return MOST;
    return (uint64_t)time->tv_sec * NS_PER_SECOND + (uint64_t)time->tv_nsec;
}

uint64_t wait_ns_of_value(const struct timeval *time)
{
    struct timespec same = {.tv_sec = time ? time->tv_sec : -1,
                            .tv_nsec = time ? time->tv_usec * NS_PER_US : 0};
    return wait_ns_of(&same);
}

struct timeval wait_value_of(uint64_t ns)
{
    struct timespec time = clock_time_of(ns + NS_PER_US - 1);
    return (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / NS_PER_US};
}
