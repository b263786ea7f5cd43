/* Which part of a thread's memory a sample has to copy so that its C functions can be found. */
#ifndef PITVIPER_INTERP_SAMPLE_STACK_H
#define PITVIPER_INTERP_SAMPLE_STACK_H

#include "formats/sample_landmarks.h"
#include "interp/sample_thread.h"

#include <ucontext.h>

struct sample_stack {
    uintptr_t inner, outer;          /* where the copies begin */
    size_t inner_bytes;              /* multiples of 8 */
    size_t red_zone_bytes;           /* before the inner one: all of it, or 0 */
    size_t outer_bytes;              /* 0: there is one stack only */
    bool is_whole;                   /* the last copy reaches the end of the thread's stack */
    struct sample_known_stack known; /* what is left out of the only one; count 0: nothing */
};

/* `at` is what the sample interrupts, as the handler got it. Fit for signal handlers. */
struct sample_stack sample_stack_find(const struct sample_ring *ring, struct sample_thread *thread,
                                      const ucontext_t *at);

/* As the ring has it (formats/sample_ring.h): how many bytes, and these bytes. */
size_t sample_stack_bytes(const struct sample_stack *stack);
void sample_stack_copy(const struct sample_stack *stack, uint8_t *out);

#endif
