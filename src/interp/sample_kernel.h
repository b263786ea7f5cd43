/* What a thread was doing inside the kernel: the chains of its perf event, read in a signal
 * handler. */
#ifndef PITVIPER_INTERP_SAMPLE_KERNEL_H
#define PITVIPER_INTERP_SAMPLE_KERNEL_H

#include "interp/sample_thread.h"

#include <linux/perf_event.h>

/* What an event has to record for us; not who and how often. */
void sample_kernel_attr(struct perf_event_attr *attr);

/* Maps the buffer of such an event, which is of the calling thread alone. The descriptor may be
 * closed then: the event lives as long as the mapping. False when the kernel does not want to, as
 * a user may lock so much memory only. */
bool sample_kernel_map(struct sample_thread *thread, int fd);

/* Ends the event of a thread; that of all threads. */
void sample_kernel_unmap(struct sample_thread *thread);
void sample_kernel_unmap_all(void);

/* In the child of a fork, whose only thread this is (or NULL: we do not know it): the buffers
 * stayed with the parent. */
void sample_kernel_forget(struct sample_thread *thread);

/* What has happened since the last call. */
struct sample_kernel_result {
    uint64_t user;      /* interrupts outside the kernel */
    uint64_t kernel;    /* ... inside */
    size_t words;       /* of chains, as in formats/sample_ring.h; not all of many interrupts */
    uint64_t oldest_ns; /* time of the first chain; only if there are words */
};

/* `words` has room for SAMPLE_KERNEL_WORDS. For signal handlers. */
struct sample_kernel_result sample_kernel_read(struct sample_thread *thread, uint64_t period_ns,
                                               uint64_t *words);

#endif
