/* What a thread was doing inside the kernel: the chains of perf events, read in a signal handler.
 */
#ifndef PITVIPER_INTERP_SAMPLE_KERNEL_H
#define PITVIPER_INTERP_SAMPLE_KERNEL_H

#include "interp/sample_thread.h"

#include <linux/perf_event.h>

/* Opens events of this kind for the calling thread and those that come of it. False when the kernel
 * does not want to, as a user may lock so much memory only; then nothing is left behind. */
bool sample_kernel_start(const struct perf_event_attr *attr);

/* Ends them, for all threads. */
void sample_kernel_end(void);

/* For a while, for all threads; what there is no way to pause is ended. Resuming is for the thread
 * that has paused; false when from now on only this thread has events, and those that come of it.
 */
void sample_kernel_pause(void);
bool sample_kernel_resume(const struct perf_event_attr *attr);

/* In the child of a fork: the events stayed with the parent. */
void sample_kernel_forget(void);

/* From here on the calling thread reads what it has met. */
void sample_kernel_join(struct sample_thread *thread);

/* What has happened since the last call. */
struct sample_kernel_result {
    uint64_t user;      /* interrupts outside the kernel */
    uint64_t kernel;    /* ... inside */
    size_t words;       /* of chains, as in formats/sample_ring.h; not all of many interrupts */
    uint64_t oldest_ns; /* time of the first chain; only if there are words */
};

/* What the calling thread has met since the last call; `now_ns` is when the handler began, for an
 * event or for a tick of the kernel's clock, when there may be nothing. `thread->kernel_words` gets
 * the chains. For signal handlers. */
struct sample_kernel_result sample_kernel_read(struct sample_thread *thread, uint64_t now_ns,
                                               uint64_t period_ns, bool is_tick);

#endif
