/* Following code takes thousands of times as long as a look into a table, so each address is
 * followed once; also where the answer is that there is none. There are few different rules: a
 * kernel of thousands of instructions has one, but for its first and last ones. */
#include "unwind/code_rules.h"

#include "unwind/unwind_machine.h"

#include <errno.h>
#include <string.h>

/* In `known`, instead of a number. */
static const uint64_t NONE = UINT32_MAX;

void code_rules_init(struct code_rules *rules, uint16_t elf_machine, struct code_source source)
{
    *rules = (struct code_rules){.elf_machine = elf_machine, .source = source};
}

void code_rules_done(struct code_rules *rules)
{
    code_rules_forget(rules);
}

void code_rules_forget(struct code_rules *rules)
{
    arena_done(&rules->arena);
    vector_done(&rules->rules);
    hashtable_done(&rules->rule_index);
    hashtable_done(&rules->known);
    code_rules_init(rules, rules->elf_machine, rules->source);
}

/* The number of a rule, or -ENOMEM. */
static int number_of(struct code_rules *rules, const struct unwind_rule *rule, uint64_t *ret_number)
{
    uint64_t hash = hash_bytes(rule, sizeof *rule);
    struct hashtable_probe probe = hashtable_probe(&rules->rule_index, hash);
    while (hashtable_next(&probe, ret_number))
        if (memcmp(rules->rules.items[*ret_number], rule, sizeof *rule) == 0)
            return 0;
    struct unwind_rule *copy = arena_alloc(&rules->arena, sizeof *copy);
    if (!copy || vector_push(&rules->rules, copy) < 0)
        return -ENOMEM;
    *copy = *rule;
    *ret_number = rules->rules.count - 1;
    (void)hashtable_add(&rules->rule_index, hash, *ret_number); /* if not, it is there twice */
    return 0;
}

const struct unwind_rule *code_rules_find(struct code_rules *rules,
                                          const struct code_question *question)
{
    const struct unwind_machine *machine = unwind_machine_of(rules->elf_machine);
    /* An address is either behind a call or not, and known code or not: it is the whole key. But
     * bytes that are no code may say otherwise, and nobody shall get the other's answer. */
    uint64_t key = question->address << 1 | question->is_caller, number = NONE;
    if (!machine || !machine->follow)
        return NULL;
    if (!hashtable_get(&rules->known, hash_u64(key), &number)) {
        struct unwind_rule rule;
        if (machine->follow(&rules->source, question->address, question->is_caller, &rule)) {
            rule.is_guess = !question->is_certain;
            rule.plain_bytes = rule.is_guess ? 0 : unwind_rule_plain_bytes(&rule);
            if (number_of(rules, &rule, &number) < 0)
                return NULL;
        }
        (void)hashtable_set(&rules->known, hash_u64(key), number); /* if not, it is found again */
    }
    return number == NONE ? NULL : rules->rules.items[number];
}

bool code_rules_is_behind_call(const struct code_rules *rules, uint64_t address)
{
    const struct unwind_machine *machine = unwind_machine_of(rules->elf_machine);
    const uint8_t *code;
    size_t before = 0;
    if (!machine || !machine->is_behind_call)
        return true;
    return rules->source.read(rules->source.context, address - 1, &code, &before) &&
           machine->is_behind_call(code + 1, before + 1);
}
