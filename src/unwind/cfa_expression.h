/* Expressions of call frame information: what DWARF has for a CFA that is more than a register and
 * a distance. */
#ifndef PITVIPER_UNWIND_CFA_EXPRESSION_H
#define PITVIPER_UNWIND_CFA_EXPRESSION_H

#include "base/cursor.h"
#include "unwind/unwind.h"

/* What an expression can ask for. Everything is borrowed. */
struct cfa_expression_world {
    const struct unwind_cpu *cpu;
    uint8_t pc_number; /* the register that is the pc */
    const struct unwind_sample *memory;
};

enum cfa_expression_end {
    CFA_EXPRESSION_VALUE,
    CFA_EXPRESSION_NO_WORD, /* a word is needed that is not in the sample; the value is its avma */
    CFA_EXPRESSION_UNKNOWN, /* a register is not known, or the expression can't be understood */
};

enum cfa_expression_end cfa_expression_evaluate(struct cursor expression,
                                                const struct cfa_expression_world *world,
                                                uint64_t *ret_value);

#endif
