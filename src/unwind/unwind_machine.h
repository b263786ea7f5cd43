/* What unwinding needs to know of a kind of machine. Numbers of registers are DWARF's. */
#ifndef PITVIPER_UNWIND_UNWIND_MACHINE_H
#define PITVIPER_UNWIND_UNWIND_MACHINE_H

#include "unwind/unwind_table.h"

enum { UNWIND_PERF_PC = 0xfe, UNWIND_PERF_NONE = 0xff };

struct unwind_machine {
    uint16_t elf_machine;
    uint8_t sp;                            /* the stack pointer */
    uint8_t frame_pointer;                 /* 0 in it: the outermost frame, by convention */
    uint32_t saved;                        /* bit n: a called function keeps register n */
    uint8_t least_frame_bytes;             /* what a call puts on the stack */
    struct unwind_rule frame_pointer_rule; /* for code of which nothing else is known */
    uint8_t perf_registers[64];            /* perf's number -> DWARF's, UNWIND_PERF_PC, or none */
};

extern const struct unwind_machine unwind_x86_64;

#endif
