/* How to unwind generated code: what a jitdump's UNWINDING_INFO says, in parts that can be written
 * into another .eh_frame at another place. */
#ifndef PITVIPER_FORMATS_JIT_FRAME_H
#define PITVIPER_FORMATS_JIT_FRAME_H

#include "base/vector.h"
#include "base/writer.h"
#include "formats/jitdump.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jit_frame {
    /* What many functions share: a CIE. */
    uint64_t code_alignment;
    int64_t data_alignment;
    uint64_t return_register;
    bool is_signal_frame;
    const uint8_t *initial; /* instructions; borrowed */
    size_t initial_bytes;

    /* The code's own: an FDE. */
    uint64_t start;              /* of the code that it is for, from the start of the function */
    uint64_t size;               /* in bytes */
    const uint8_t *instructions; /* borrowed */
    size_t instruction_bytes;
};

/* A zeroed one is valid and empty; release it with vector_done(&frames->list). */
struct jit_frames {
    VECTOR(struct jit_frame) list;
};

/* The FDEs of a function's data, which they borrow: ascending, disjoint, within its code. A single
 * one is taken to be for all of the code. 0 and at least one; -ENOENT when there is no data,
 * -EBADMSG when it can't be understood; -ENOMEM. What was in `frames` before is gone. */
int jit_frames_parse(struct jit_frames *frames, const struct jitdump_unwinding_info *info,
                     uint64_t code_size);

/* For code without unwinding data: it keeps the frame pointer. 0, or -ENOTSUP for machines whose
 * frames this program does not know. */
int jit_frame_by_frame_pointer(uint32_t elf_machine, uint64_t code_size,
                               struct jit_frame *ret_frame);

/* Appends a CIE whose FDEs have 32-bit addresses relative to themselves, padded so that the next
 * entry is aligned. The bytes don't depend on the place. */
void jit_frame_encode_cie(struct writer *writer, const struct jit_frame *frame);

/* Where an FDE is to stand: offsets from one common origin. */
struct jit_frame_place {
    uint64_t section; /* where writer->data[0] is */
    uint64_t cie;     /* of the CIE that belongs to it */
    uint64_t code;    /* of the function */
};

void jit_frame_encode_fde(struct writer *writer, const struct jit_frame *frame,
                          const struct jit_frame_place *place);

#endif
