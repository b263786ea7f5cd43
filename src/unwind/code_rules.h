/* Rules for code that nobody described: found by following its instructions to their return, and
 * remembered. One of these for each object file, and for the generated code of a process. */
#ifndef PITVIPER_UNWIND_CODE_RULES_H
#define PITVIPER_UNWIND_CODE_RULES_H

#include "base/arena.h"
#include "base/hashtable.h"
#include "base/vector.h"
#include "unwind/unwind_table.h"

/* Where the bytes of the code come from. */
struct code_source {
    /* The code at an address, up to where it ends or is not at hand; what lies before the address
     * may be there too, `ret_before` bytes of it. How many bytes there are, 0: none. At least as
     * many as the longest instruction has, unless the code ends. Valid until the next call. */
    size_t (*read)(void *context, uint64_t address, const uint8_t **ret_code, size_t *ret_before);
    /* What a table says of an address that undescribed code has jumped to; NULL: nothing. Valid
     * until the next call. May be NULL itself: there are no tables. */
    const struct unwind_rule *(*describe)(void *context, uint64_t address);
    /* The word in memory at an address, which code jumps through; false: it is not at hand. May be
     * NULL: none is, as in a file, whose pointers get their values when it is loaded. */
    bool (*read_word)(void *context, uint64_t address, uint64_t *ret_word);
    void *context;
};

struct code_rules {
    uint16_t elf_machine;
    struct code_source source;
    struct arena arena;                       /* has the rules */
    VECTOR(const struct unwind_rule *) rules; /* each different one once */
    struct hashtable rule_index;              /* by their bytes */
    struct hashtable known;                   /* by address: number of the rule, or that of none */
};

/* What is asked for. */
struct code_question {
    uint64_t address; /* of the instruction that is to be executed next */
    bool is_caller;   /* it is behind a call, which has returned */
    bool is_certain;  /* the code is known: the rule need not be checked (struct unwind_rule) */
};

void code_rules_init(struct code_rules *rules, uint16_t elf_machine, struct code_source source);
void code_rules_done(struct code_rules *rules);

/* Forgets all rules: the code may have changed. */
void code_rules_forget(struct code_rules *rules);

/* The rule at an address; NULL when the code does not tell, or memory is short. Valid until
 * code_rules_forget. */
const struct unwind_rule *code_rules_find(struct code_rules *rules,
                                          const struct code_question *question);

/* Whether the instruction before an address is a call. */
bool code_rules_is_behind_call(const struct code_rules *rules, uint64_t address);

#endif
