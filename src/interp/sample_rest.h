/* The time of threads that end before a perf event comes, or between two. */
#ifndef PITVIPER_INTERP_SAMPLE_REST_H
#define PITVIPER_INTERP_SAMPLE_REST_H

#include "interp/sample_thread.h"

/* Makes the account that this process shares with all that it forks; before threads. Without one
 * the functions below do nothing. */
void sample_rest_start(void);

/* What no sample of the calling thread stands for so far is left to others. */
void sample_rest_leave(struct sample_thread *thread, uint64_t period_ns);

/* What is left, once it is worth a sample; otherwise 0. Fit for signal handlers, as are all. */
uint64_t sample_rest_take(uint64_t period_ns);

#endif
