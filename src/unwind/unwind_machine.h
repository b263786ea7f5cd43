/* What unwinding needs to know of a kind of machine: one of these, and one file, for each. Numbers
 * of registers are DWARF's. */
#ifndef PITVIPER_UNWIND_UNWIND_MACHINE_H
#define PITVIPER_UNWIND_UNWIND_MACHINE_H

#include "unwind/code_rules.h"

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
    /* The rule at an address, by the instructions from there on; false when they don't tell.
     * `is_caller`: the one before was a call. NULL: nobody can follow the machine's code. */
    bool (*follow)(const struct code_source *source, uint64_t address, bool is_caller,
                   struct unwind_rule *ret_rule);
    /* Whether the last of the `before` bytes before `end` are a call. NULL as above. */
    bool (*is_behind_call)(const uint8_t *end, size_t before);
};

extern const struct unwind_machine unwind_x86_64, unwind_aarch64;

bool unwind_follow_x86_64(const struct code_source *source, uint64_t address, bool is_caller,
                          struct unwind_rule *ret_rule);
bool unwind_is_behind_call_x86_64(const uint8_t *end, size_t before);

/* NULL for a machine that is not known. */
const struct unwind_machine *unwind_machine_of(uint16_t elf_machine);

#endif
