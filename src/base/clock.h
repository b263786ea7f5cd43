/* Of one of the kernel's clocks, in nanoseconds. Fit for signal handlers. */
#ifndef PITVIPER_BASE_CLOCK_H
#define PITVIPER_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
