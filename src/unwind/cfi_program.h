/* The little programs in call frame information, run: from instructions to rules. */
#ifndef PITVIPER_UNWIND_CFI_PROGRAM_H
#define PITVIPER_UNWIND_CFI_PROGRAM_H

#include "unwind/cfi.h"
#include "unwind/unwind_machine.h"

/* Takes the rule that is valid from an address on: up to the next one, or to the function's end.
 * Addresses ascend and lie in the function. 0 or a negative errno, which ends the run. */
struct cfi_sink {
    int (*take)(void *context, uint64_t svma, const struct unwind_rule *rule);
    void *context;
};

/* 0; -EBADMSG when the instructions are damaged or not known (rows before that were delivered), or
 * what the sink returned. */
int cfi_program_run(const struct unwind_machine *machine, const struct cfi_function *function,
                    struct cfi_sink sink);

#endif
