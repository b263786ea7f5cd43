/* The little programs in call frame information, run: from instructions to rules. */
#ifndef PITVIPER_UNWIND_CFI_PROGRAM_H
#define PITVIPER_UNWIND_CFI_PROGRAM_H

#include "unwind/cfi.h"
#include "unwind/unwind_table.h"

/* The registers of a machine, by their DWARF numbers. */
struct cfi_machine {
    uint32_t saved; /* bit n: a called function keeps register n */
    uint8_t sp;
    uint8_t pc; /* number that expressions use for the program counter; 0xff: none */
};

/* NULL for a machine that is not known. */
const struct cfi_machine *cfi_machine_of(uint16_t elf_machine);

/* Takes the rule that is valid from an address on: up to the next one, or to the function's end.
 * Addresses ascend and lie in the function. 0 or a negative errno, which ends the run. */
struct cfi_sink {
    int (*take)(void *context, uint64_t svma, const struct unwind_rule *rule);
    void *context;
};

/* 0; -EBADMSG when the instructions are damaged or not known (rows before that were delivered), or
 * what the sink returned. */
int cfi_program_run(const struct cfi_machine *machine, const struct cfi_function *function,
                    struct cfi_sink sink);

#endif
