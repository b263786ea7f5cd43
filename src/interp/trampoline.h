/* The piece of machine code that stands for one Python function, and what unwinders must know of
 * it.
 *
 * A trampoline calls the evaluator that it is given and returns what that returns. It does nothing
 * else: all that matters is its address, which is found on the stack between the evaluator's frame
 * and the caller's. Every trampoline is a copy of the same bytes; there is one file per processor
 * architecture, trampoline_ARCH.c, that provides what is declared here. */
#ifndef PITVIPER_INTERP_TRAMPOLINE_H
#define PITVIPER_INTERP_TRAMPOLINE_H

#include "interp/pyapi.h"

#include <stddef.h>
#include <stdint.h>

typedef struct py_object *trampoline_function(struct py_thread *, struct py_frame *, int throwflag,
                                              py_evaluator *);

enum {
    /* The instructions with their padding: what the symbol files state as the size. */
    TRAMPOLINE_BYTES = 16,
    /* From one trampoline to the next; docs/decisions/ has the reasons. */
    TRAMPOLINE_STRIDE = 96,
    TRAMPOLINE_UNWINDING_BYTES = 76,
    TRAMPOLINE_EH_FRAME_HDR_BYTES = 20,
};

extern const uint8_t TRAMPOLINE_CODE[TRAMPOLINE_BYTES];

/* .eh_frame, then .eh_frame_hdr, for an image with the code right before it. */
extern const uint8_t TRAMPOLINE_UNWINDING[TRAMPOLINE_UNWINDING_BYTES];

/* EM_X86_64 and the like. */
extern const uint32_t TRAMPOLINE_ELF_MACHINE;

#if defined(__x86_64__)
static inline uintptr_t trampoline_stack_pointer(void)
{
    uintptr_t value;
    __asm__("mov %%rsp, %0" : "=r"(value));
    return value;
}
#endif

#endif
