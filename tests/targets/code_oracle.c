/* What code says of itself against what its compiler said: every instruction of an object file that
 * has call frame information is followed to its return, and the rules are compared.
 *
 *     objdump -d FILE | … addresses, in hex, one per line, ascending … | code_oracle FILE [N]
 *
 * Behind a call it is asked as for a caller. Prints one line of JSON, and on standard error the
 * first N of each kind that differ:
 *
 *     lengths, lengths_differ       instructions whose length the disassembler tells, and those
 *                                   that we think to be of another one
 *     described                     instructions that have a rule by the file's tables
 *     equal, none                   ours is the same; there is none
 *     other_register                the CFA counts from another register: they can't be compared
 *     late                          the table says so some instructions later: compilers collect
 * what they tell of registers that are saved one after another wrong_cfa, wrong_registers    ours
 * is another one lost                          of the equal ones, those where ours has lost a
 * register */
#include "symbol/native.h"
#include "unwind/unwind_machine.h"
#include "unwind/x86_decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { RSP = 7, LATE_BYTES = 64 };

enum kind {
    LENGTHS,
    LENGTHS_DIFFER,
    DESCRIBED,
    EQUAL,
    NONE,
    OTHER_REGISTER,
    LATE,
    WRONG_CFA,
    WRONG_REGISTERS,
    LOST,
    KINDS
};

static const char *const NAMES[KINDS] = {
    "lengths",        "lengths_differ", "described", "equal",           "none",
    "other_register", "late",           "wrong_cfa", "wrong_registers", "lost"};

static size_t counts[KINDS];
static size_t most_shown;

static void print_rule(const char *whose, const struct unwind_rule *rule)
{
    fprintf(stderr, "%s: CFA r%u%+d", whose, rule->cfa_number, rule->cfa_offset);
    for (unsigned i = 0; i < rule->place_count; i++)
        fprintf(stderr, " r%u %u%+d", rule->places[i].target, rule->places[i].kind,
                rule->places[i].offset);
}

static void count(enum kind kind, uint64_t svma, const struct unwind_rule *ours,
                  const struct unwind_rule *theirs)
{
    if (counts[kind]++ >= most_shown)
        return;
    fprintf(stderr, "%s at %#" PRIx64, NAMES[kind], svma);
    if (ours)
        print_rule(", ours", ours);
    if (theirs)
        print_rule(", theirs", theirs);
    fputc('\n', stderr);
}

/* Where a rule finds a register. What was popped already is where it was, whatever a table says. */
static struct unwind_place place_in(const struct unwind_rule *rule, uint8_t number)
{
    for (unsigned i = 0; i < rule->place_count; i++) {
        const struct unwind_place *place = &rule->places[i];
        bool is_popped = rule->cfa_number == RSP && place->kind == UNWIND_AT_CFA &&
                         place->offset < -rule->cfa_offset;
        if (place->target == number && !is_popped)
            return *place;
    }
    return (struct unwind_place){.kind = UNWIND_SAME};
}

static enum kind compare(const struct unwind_rule *ours, const struct unwind_rule *theirs)
{
    bool has_lost = false;
    if (ours->cfa != theirs->cfa || ours->cfa_number != theirs->cfa_number)
        return OTHER_REGISTER;
    if (ours->cfa_offset != theirs->cfa_offset)
        return WRONG_CFA;
    for (uint8_t number = 0; number < 16; number++) {
        if (!(unwind_x86_64.saved >> number & 1))
            continue;
        struct unwind_place one = place_in(ours, number), other = place_in(theirs, number);
        has_lost |= one.kind == UNWIND_UNDEFINED;
        if (one.kind != UNWIND_UNDEFINED && (one.kind != other.kind || one.offset != other.offset))
            return WRONG_REGISTERS;
    }
    return has_lost ? LOST : EQUAL;
}

/* Whether a table says of each register what ours does, here or some instructions later. */
static bool is_late(struct unwind_table *table, uint64_t svma, const struct unwind_rule *ours)
{
    uint32_t left = unwind_x86_64.saved;
    for (uint64_t later = svma; left && later <= svma + LATE_BYTES; later++) {
        const struct unwind_rule *theirs = unwind_table_find(table, later);
        if (!theirs)
            break;
        for (uint8_t number = 0; number < 16; number++) {
            struct unwind_place one = place_in(ours, number), other = place_in(theirs, number);
            if (one.kind == other.kind && one.offset == other.offset)
                left &= ~(1u << number);
        }
    }
    return !left;
}

static void check_rule(struct native *native, uint64_t svma, bool is_caller)
{
    struct unwind_table *table = native_unwind_table(native);
    const struct unwind_rule *theirs = table ? unwind_table_find(table, svma) : NULL;
    if (!theirs || theirs->is_signal || theirs->cfa != UNWIND_CFA_REGISTER ||
        theirs->return_address.kind != UNWIND_AT_CFA)
        return;
    struct code_question question = {.address = svma, .is_caller = is_caller};
    const struct unwind_rule *ours = code_rules_find(native_code_rules(native), &question);
    counts[DESCRIBED]++;
    enum kind kind = ours ? compare(ours, theirs) : NONE;
    if (kind == WRONG_REGISTERS && is_late(table, svma, ours))
        kind = LATE;
    if (kind == LOST)
        counts[EQUAL]++;
    if (kind == EQUAL)
        counts[EQUAL]++;
    else
        count(kind, svma, ours, theirs);
}

static bool decode(const struct code_source *source, uint64_t svma,
                   struct x86_instruction *ret_instruction)
{
    const uint8_t *code;
    size_t before, bytes = source->read(source->context, svma, &code, &before);
    return bytes && x86_decode(code, bytes, ret_instruction);
}

static void check_length(const struct code_source *source, uint64_t svma, uint64_t next_svma)
{
    struct x86_instruction instruction;
    if (next_svma - svma > X86_LENGTH_MOST)
        return;
    counts[LENGTHS]++;
    if (!decode(source, svma, &instruction) || instruction.length != next_svma - svma)
        count(LENGTHS_DIFFER, svma, NULL, NULL);
}

static bool is_call(const struct code_source *source, uint64_t svma, uint64_t next_svma)
{
    struct x86_instruction instruction;
    if (!decode(source, svma, &instruction) || instruction.length != next_svma - svma ||
        instruction.map != X86_MAP_ONE || instruction.is_vector)
        return false;
    return instruction.opcode == 0xe8 || (instruction.opcode == 0xff && (instruction.reg & 7) == 2);
}

/* Fills a gap behind code: nothing ever gets there, and a table's rule is that of its neighbour. */
static bool is_padding(const struct code_source *source, uint64_t svma)
{
    struct x86_instruction instruction;
    return decode(source, svma, &instruction) && x86_is_padding(&instruction);
}

int main(int argc, char **argv)
{
    struct elf_debug_search search = {0};
    struct native_wanted wanted = {.path = argc > 1 ? argv[1] : ""};
    struct native *native;
    if (argc < 2 || native_open(&search, &wanted, &native) < 0)
        return 2;
    most_shown = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    /* Ours must not know theirs. */
    native_code_rules(native)->source.describe = NULL;
    const struct code_source *source = &native_code_rules(native)->source;
    uint64_t svma, last = 0;
    for (; scanf("%" SCNx64, &svma) == 1; last = svma) {
        if (last)
            check_length(source, last, svma);
        if (!is_padding(source, svma))
            check_rule(native, svma, last && is_call(source, last, svma));
    }
    for (size_t i = 0; i < KINDS; i++)
        printf("%s\"%s\": %zu", i ? ", " : "{", NAMES[i], counts[i]);
    puts("}");
    native_close(native);
    return 0;
}
