/* How to unwind one piece of generated code: what a jitdump's UNWINDING_INFO says, in parts that
 * can be written into another .eh_frame at another place. */
#ifndef PITVIPER_FORMATS_JIT_FRAME_H
#define PITVIPER_FORMATS_JIT_FRAME_H

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

    /* The function's own: an FDE, valid for all of its code. */
    const uint8_t *instructions; /* borrowed */
    size_t instruction_bytes;
};

/* The first FDE of the data, which it borrows. 0; -ENOENT when there is no data, -EBADMSG when it
 * can't be understood. */
int jit_frame_parse(const struct jitdump_unwinding_info *info, struct jit_frame *ret_frame);

/* For code without unwinding data: it keeps the frame pointer. 0, or -ENOTSUP for machines whose
 * frames this program does not know. */
int jit_frame_by_frame_pointer(uint32_t elf_machine, struct jit_frame *ret_frame);

/* Appends a CIE whose FDEs have 32-bit addresses relative to themselves, padded so that the next
 * entry is aligned. The bytes don't depend on the place. */
void jit_frame_encode_cie(struct writer *writer, const struct jit_frame *frame);

/* Where an FDE is to stand: offsets from one common origin. */
struct jit_frame_place {
    uint64_t section;   /* where writer->data[0] is */
    uint64_t cie;       /* of the CIE that belongs to it */
    uint64_t code;      /* of the code */
    uint64_t code_size; /* in bytes */
};

void jit_frame_encode_fde(struct writer *writer, const struct jit_frame *frame,
                          const struct jit_frame_place *place);

#endif
