/* Taking one sample of the calling thread, in a signal handler. */
#ifndef PITVIPER_INTERP_SAMPLE_TAKE_H
#define PITVIPER_INTERP_SAMPLE_TAKE_H

#include "formats/sample_ring.h"
#include "interp/sample_thread.h"

#include <signal.h>
#include <ucontext.h>

/* What all samples of a process have in common. */
struct sample_take_source {
    struct sample_ring ring;
    uint32_t frequency_hz;
    enum sample_trigger trigger;
    _Atomic uint64_t full_ns; /* since when the ring has no room; 0: it has some */
    volatile bool is_over;    /* nobody reads it any more */
};

/* `info` and `at` are what the handler got. Fit for signal handlers. */
void sample_take(struct sample_take_source *source, struct sample_thread *thread,
                 const siginfo_t *info, const ucontext_t *at);

#endif
