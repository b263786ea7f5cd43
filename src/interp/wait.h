/* A call of the program's that waits, and that our signal may end (-e wall): whether it has, and
 * how much time is left. */
#ifndef PITVIPER_INTERP_WAIT_H
#define PITVIPER_INTERP_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

struct sample_thread;

struct wait {
    struct sample_thread *thread; /* of sampler_interrupts_waits() */
    uint32_t handled;             /* of the thread, when the wait began */
    uint64_t begin_ns;            /* CLOCK_MONOTONIC */
    uint64_t most_ns;             /* how long it may take */
    int error;                    /* errno before */
};

/* Before the first call, where sampler_interrupts_waits(). */
struct wait wait_begin(uint64_t most_ns);

/* Whether our signal has ended it since it began, or since this was asked last, and no handler of
 * the program's has run since it began. */
bool wait_was_us(const struct wait *wait);

/* The same, for calls that give -1 and errno: whether they are to be made again. */
bool wait_goes_on(const struct wait *wait, int result);

/* After the last call: errno is as before, unless the call has failed. Returns its result. */
int wait_end(const struct wait *wait, int result);

/* Of the time that it may take. */
uint64_t wait_ns_left(const struct wait *wait);

/* Durations in nanoseconds. NULL, and what is not one: longer than anybody waits. */
uint64_t wait_ns_of(const struct timespec *time);
uint64_t wait_ns_of_value(const struct timeval *time);

/* And back (clock_time_of for the other one); not less. */
struct timeval wait_value_of(uint64_t ns);

#endif
