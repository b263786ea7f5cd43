/* What unwinding needs to know of a kind of machine: one of these, and one file, for each. Numbers
 * of registers are DWARF's. */
#ifndef PITVIPER_UNWIND_UNWIND_MACHINE_H
#define PITVIPER_UNWIND_UNWIND_MACHINE_H

#include "unwind/unwind_table.h"

enum {
    UNWIND_NO_REGISTER = 0xff,
    UNWIND_PERF_PC = 0xfe,   /* in perf_registers: the program counter */
    UNWIND_PERF_NONE = 0xff, /* in perf_registers: of no use here */
};

struct unwind_machine {
    uint16_t elf_machine;
    uint8_t sp;            /* the stack pointer */
    uint8_t frame_pointer; /* 0 in it: the outermost frame, by convention */
    uint8_t link;          /* where a call leaves its return address, or UNWIND_NO_REGISTER */
    uint8_t pc;            /* number of the pc in expressions, or UNWIND_NO_REGISTER */
    uint32_t saved;        /* bit n: a called function keeps register n; never register 0 */
    /* The least that lies between the stack pointer and the CFA: in a function that called another
     * one, and in one that was interrupted. */
    uint8_t least_frame_bytes, least_leaf_bytes;
    uint64_t code_mask;                    /* the bits of a return address that are the address */
    struct unwind_rule frame_pointer_rule; /* for code of which nothing else is known */
    uint8_t perf_registers[64];            /* perf's number -> DWARF's, UNWIND_PERF_PC, or none */
    /* See unwind_rule_of_code; NULL: no such code is known. */
    const struct unwind_rule *(*code_rule)(const uint8_t *code, size_t bytes, size_t at);
};

extern const struct unwind_machine unwind_x86_64, unwind_aarch64;

const struct unwind_rule *unwind_code_rule_x86_64(const uint8_t *code, size_t bytes, size_t at);

/* NULL for a machine that is not known. */
const struct unwind_machine *unwind_machine_of(uint16_t elf_machine);

#endif
