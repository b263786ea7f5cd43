/* One step from a frame to its caller is: find the rule for its address, compute the CFA, read the
 * return address and the saved registers from the copy of the stack.
 *
 *     copy of the stack          frame 0: CFA = sp + 24          frame 1: CFA = bp + 16
 *     sp  -> | locals     |
 *            | saved rbp  |  <- rule: bp at CFA - 16
 *            | return     |  <- rule: return address at CFA - 8
 *     CFA -> | ...        |  = sp of frame 1
 *
 * Traps, each of them seen in real samples:
 *
 * - Behind the `pop %rbp` at the end of a function compilers still state that rbp is saved below
 * the CFA. That place is below the stack pointer by then: not in the copy, and perhaps used by
 * somebody else. The register itself is right again. One frame in seventy. Not so if the CFA rests
 * on that very register: then it is still the function's own. libffi's ffi_call_unix64 lets the
 * stack go before it takes rbp from it.
 * - The CFA can rest on any register that calls keep: rbx in ld.so's resolver. So all of them are
 *   followed.
 * - A return address is behind its call, which may be the last instruction of a function; so it is
 *   looked up one byte earlier. Not so for a frame that a signal interrupted: that one's address is
 *   exact.
 *
 * Rules are found by a small cache, address -> rule, with one place per address: stacks of one
 * program have the same return addresses again and again. A rule says everything. What has no table
 * has the rule that its own instructions tell (code_rules.c) or that of frame pointers. Both are
 * guesses: they count only where they lead to a return address.
 *
 * Nearly all frames have a *plain* rule: the CFA is a register and a distance, and return address
 * and registers are words below it. One comparison tells whether all of them are in the copy and
 * none was popped; then they are taken without further questions, always as many as the machine
 * has: a loop whose length changes from frame to frame would cost more than it saves. What is not
 * so plain takes the long way, which gives the same answers.
 *
 * What is slow then is memory: each copy is read once, and no processor guesses the way through it.
 * So the walk asks for the lines some frames ahead. */
#include "unwind/unwind.h"

#include "unwind/cfa_expression.h"
#include "unwind/unwind_machine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    CACHE_BITS = 13,
    /* No stack is larger: farther away there is no stack that was cut off, but garbage. */
    MOST_STACK_BYTES = 1 << 26,
    /* How memory is asked for in advance, found by trying. A frame has 130 bytes on average. */
    LINE_BYTES = 64,
    LINES_PER_FRAME = 3,
    AHEAD_BYTES = 1024,
};

/* An address may have a rule, or not be code at all (NULL). Address 0 is never asked for. */
struct cached {
    uint64_t avma;
    const struct unwind_rule *rule;
};

struct unwinder {
    const struct unwind_machine *machine;
    unsigned saved_count; /* how many registers the machine's functions keep */
    struct unwind_finder finder;
    struct cached cache[1 << CACHE_BITS];
};

/* What is known while a stack is being walked. */
struct walk {
    struct unwinder *unwinder;
    const struct unwind_sample *sample;
    uint64_t last_word; /* offset of the last whole word in the copy; 0 when there is none */
    struct unwind_cpu cpu;
    bool is_exact; /* pc is not a return address */
};

enum step { STEP_ON, STEP_COMPLETE, STEP_TRUNCATED, STEP_BROKEN };

int unwinder_open(uint16_t elf_machine, struct unwind_finder finder, struct unwinder **ret_unwinder)
{
    const struct unwind_machine *machine = unwind_machine_of(elf_machine);
    if (!machine)
        return -ENOTSUP;
    struct unwinder *unwinder = calloc(1, sizeof *unwinder);
    if (!unwinder)
        return -ENOMEM;
    unwinder->machine = machine;
    unwinder->saved_count = (unsigned)__builtin_popcount(machine->saved);
    unwinder->finder = finder;
    *ret_unwinder = unwinder;
    return 0;
}

void unwinder_close(struct unwinder *unwinder)
{
    free(unwinder);
}

void unwinder_forget(struct unwinder *unwinder)
{
    memset(unwinder->cache, 0, sizeof unwinder->cache);
}

bool unwind_sample_from_perf(uint16_t elf_machine, uint64_t mask, const uint64_t *values,
                             struct unwind_sample *ret_sample)
{
    const struct unwind_machine *machine = unwind_machine_of(elf_machine);
    struct unwind_cpu *cpu = &ret_sample->cpu;
    bool has_pc = false;
    *ret_sample = (struct unwind_sample){0};
    if (!machine)
        return false;
    for (; mask; mask &= mask - 1, values++) {
        uint8_t number = machine->perf_registers[__builtin_ctzll(mask)];
        if (number == UNWIND_PERF_PC) {
            cpu->pc = *values;
            has_pc = true;
        } else if (number < UNWIND_REGISTERS) {
            cpu->registers[number] = *values;
            cpu->known |= 1u << number;
        }
    }
    ret_sample->stack_avma = cpu->registers[machine->sp];
    return has_pc && cpu->known >> machine->sp & 1;
}

/* The kernel's side of returning from a signal handler has an address of its own: behind the system
 * call that never returns, which is behind the end of what libc describes. */
static const struct unwind_rule *rule_of_sigreturn(struct unwind_table *table, uint64_t svma)
{
    const struct unwind_rule *rule = unwind_table_find(table, svma - 1);
    return rule && rule->is_signal ? rule : NULL;
}

/* What the code itself says. A caller is asked about in its call, but goes on behind it. */
static const struct unwind_rule *rule_of_code(const struct unwind_code *code, uint64_t avma,
                                              bool is_exact)
{
    struct code_question question = {.address = avma - code->bias + !is_exact,
                                     .is_caller = !is_exact,
                                     .is_certain = code->is_certain};
    const struct unwind_rule *rule = code->code ? code_rules_find(code->code, &question) : NULL;
    question.address += code->bias;
    return !rule && code->live_code ? code_rules_find(code->live_code, &question) : rule;
}

static const struct unwind_rule *ask_for_rule(struct unwinder *unwinder, uint64_t avma,
                                              bool is_exact)
{
    struct unwind_code code = {0};
    const struct unwind_rule *rule = NULL;
    if (!unwinder->finder.find(unwinder->finder.context, avma, &code))
        return NULL;
    if (code.table)
        rule = unwind_table_find(code.table, avma - code.bias);
    if (code.table && !rule)
        rule = rule_of_sigreturn(code.table, avma - code.bias);
    if (!rule)
        rule = rule_of_code(&code, avma, is_exact);
    return rule ? rule : &unwinder->machine->frame_pointer_rule;
}

/* An address is one of two kinds: an instruction's (exact) or the last byte of a call. */
static const struct unwind_rule *find_rule(struct unwinder *unwinder, uint64_t avma, bool is_exact)
{
    struct cached *cached =
        &unwinder->cache[avma * 0x9e3779b97f4a7c15u >> (64 - CACHE_BITS)]; /* 2^64 / golden ratio */
    if (cached->avma != avma)
        *cached = (struct cached){.avma = avma, .rule = ask_for_rule(unwinder, avma, is_exact)};
    return cached->rule;
}

bool unwind_sample_word(const struct unwind_sample *sample, uint64_t avma, uint64_t *ret_word)
{
    uint64_t offset = avma - sample->stack_avma, outer_offset = avma - sample->outer_avma;
    if (avma >= sample->stack_avma && sample->stack_bytes >= sizeof *ret_word &&
        offset <= sample->stack_bytes - sizeof *ret_word) {
        memcpy(ret_word, sample->stack + offset, sizeof *ret_word);
        return true;
    }
    if (avma < sample->outer_avma || sample->outer_bytes < sizeof *ret_word ||
        outer_offset > sample->outer_bytes - sizeof *ret_word)
        return false;
    memcpy(ret_word, sample->outer_stack + outer_offset, sizeof *ret_word);
    return true;
}

/* Whether a copy that began there could have had the word. */
static bool is_behind(uint64_t avma, uint64_t start_avma)
{
    return avma >= start_avma && avma - start_avma < MOST_STACK_BYTES;
}

/* Why a word that is needed is not in the copy. */
static enum step missing_word(const struct unwind_sample *sample, uint64_t avma)
{
    bool is_cut_off = is_behind(avma, sample->stack_avma) ||
                      (sample->outer_bytes && is_behind(avma, sample->outer_avma));
    return is_cut_off && !sample->is_whole ? STEP_TRUNCATED : STEP_BROKEN;
}

static bool is_known(const struct unwind_cpu *cpu, uint8_t number)
{
    return number < UNWIND_REGISTERS && cpu->known >> number & 1;
}

static enum step evaluate_cfa(const struct walk *walk, const struct unwind_rule *rule,
                              uint64_t *ret_cfa)
{
    struct cfa_expression_world world = {
        .cpu = &walk->cpu, .pc_number = walk->unwinder->machine->pc, .memory = walk->sample};
    struct cursor expression;
    cursor_init(&expression, "expression", rule->expression, rule->expression_bytes);
    switch (cfa_expression_evaluate(expression, &world, ret_cfa)) {
    case CFA_EXPRESSION_VALUE:
        return STEP_ON;
    case CFA_EXPRESSION_NO_WORD:
        return missing_word(walk->sample, *ret_cfa);
    default:
        return STEP_BROKEN;
    }
}

/* A register that a CFA rests on. Functions written by hand can agree that others are kept than by
 * convention: OpenSSL's AES-GCM has its caller's frame in rax while it calls a part of itself. Such
 * a register may still be as it was when the sample was taken; what it leads to has to be checked.
 */
static bool find_register(const struct walk *walk, uint8_t number, uint64_t *ret_value)
{
    const struct unwind_cpu *cpu = is_known(&walk->cpu, number) ? &walk->cpu : &walk->sample->cpu;
    *ret_value = cpu->registers[number % UNWIND_REGISTERS];
    return is_known(cpu, number);
}

static enum step find_cfa(const struct walk *walk, const struct unwind_rule *rule,
                          uint64_t *ret_cfa)
{
    uint64_t value;
    if (rule->cfa == UNWIND_CFA_EXPRESSION)
        return evaluate_cfa(walk, rule, ret_cfa);
    if (rule->cfa == UNWIND_CFA_NONE || !find_register(walk, rule->cfa_number, &value))
        return STEP_BROKEN;
    value += (uint64_t)(int64_t)rule->cfa_offset;
    if (rule->cfa == UNWIND_CFA_MEMORY) {
        uint64_t place = value;
        if (!unwind_sample_word(walk->sample, place, &value))
            return missing_word(walk->sample, place);
        value += (uint64_t)(int64_t)rule->cfa_added;
    }
    *ret_cfa = value;
    return STEP_ON;
}

/* The value of a register of the caller: STEP_ON and *ret_value, or why there is none. */
static enum step find_value(const struct walk *walk, const struct unwind_place *place, uint64_t cfa,
                            uint64_t *ret_value)
{
    const struct unwind_cpu *cpu = &walk->cpu;
    bool from_cfa = place->kind == UNWIND_AT_CFA || place->kind == UNWIND_IS_CFA;
    if (!from_cfa && !is_known(cpu, place->number))
        return STEP_BROKEN;
    uint64_t base = from_cfa ? cfa : cpu->registers[place->number];
    uint64_t value = base + (uint64_t)(int64_t)place->offset;
    if (place->kind == UNWIND_AT_CFA || place->kind == UNWIND_AT) {
        uint64_t avma = value;
        if (!unwind_sample_word(walk->sample, avma, &value))
            return missing_word(walk->sample, avma);
    }
    *ret_value = value;
    return STEP_ON;
}

static enum step find_return_address(const struct walk *walk, const struct unwind_rule *rule,
                                     uint64_t cfa, uint64_t *ret_pc)
{
    const struct unwind_machine *machine = walk->unwinder->machine;
    enum step step = STEP_ON;
    if (rule->return_address.kind == UNWIND_UNDEFINED)
        return STEP_COMPLETE;
    if (rule->return_address.kind != UNWIND_SAME)
        step = find_value(walk, &rule->return_address, cfa, ret_pc);
    else if (is_known(&walk->cpu, machine->link))
        *ret_pc = walk->cpu.registers[machine->link];
    else
        return STEP_BROKEN;
    *ret_pc &= machine->code_mask;
    return step == STEP_ON && *ret_pc == 0 ? STEP_COMPLETE : step;
}

/* The registers that the caller will see again. All are found before the first is changed: one may
 * be relative to another. */
static void restore_registers(struct walk *walk, const struct unwind_rule *rule, uint64_t cfa)
{
    struct unwind_cpu *cpu = &walk->cpu;
    const struct unwind_machine *machine = walk->unwinder->machine;
    uint64_t sp = cpu->registers[machine->sp], values[UNWIND_SAVED_MOST];
    uint32_t known = cpu->known & machine->saved, changed = 0;
    for (unsigned i = 0; i < rule->place_count; i++) {
        const struct unwind_place *place = &rule->places[i];
        uint32_t bit = 1u << place->target;
        if (place->kind == UNWIND_AT_CFA && cfa + (uint64_t)(int64_t)place->offset < sp &&
            !(rule->cfa == UNWIND_CFA_REGISTER && rule->cfa_number == place->target))
            continue; /* popped already */
        if (place->kind != UNWIND_UNDEFINED &&
            find_value(walk, place, cfa, &values[i]) == STEP_ON) {
            known |= bit;
            changed |= 1u << i;
        } else {
            known &= ~bit;
        }
    }
    for (; changed; changed &= changed - 1) {
        unsigned i = (unsigned)__builtin_ctz(changed);
        cpu->registers[rule->places[i].target] = values[i];
    }
    cpu->registers[machine->sp] = cfa;
    cpu->known = known | 1u << machine->sp;
}

/* Frame pointers are a guess: a register that may hold anything. They are believed when they lead
 * up the stack to a place in known code. */
static enum step check_frame_pointer(const struct walk *walk, uint64_t pc)
{
    const struct unwind_machine *machine = walk->unwinder->machine;
    uint64_t pointer = walk->cpu.registers[machine->frame_pointer];
    if (pointer % sizeof pointer || pointer < walk->cpu.registers[machine->sp])
        return STEP_BROKEN;
    return find_rule(walk->unwinder, pc - 1, false) ? STEP_ON : STEP_BROKEN;
}

/* What code says of itself, or of a register that may be lost, is believed when it leads behind a
 * call. Nothing calls a signal handler: its return address is where the kernel wants it to go. */
static enum step check_caller(const struct walk *walk, uint64_t pc)
{
    const struct unwind_finder *finder = &walk->unwinder->finder;
    struct unwind_code code = {0};
    const struct unwind_rule *rule = find_rule(walk->unwinder, pc - 1, false);
    if (!rule)
        return STEP_BROKEN;
    if (rule->is_signal || !finder->find(finder->context, pc - 1, &code) || !code.code ||
        code_rules_is_behind_call(code.code, pc - code.bias))
        return STEP_ON;
    return STEP_BROKEN;
}

/* By frame pointers, 0 is the end by convention. */
static bool is_outermost_guess(const struct walk *walk)
{
    uint8_t number = walk->unwinder->machine->frame_pointer;
    return is_known(&walk->cpu, number) && !walk->cpu.registers[number];
}

/* Whether a CFA can be one: it is up the stack. An innermost function can have its return address
 * in a register: vfork, which two processes return from. */
static bool is_credible(const struct walk *walk, const struct unwind_rule *rule, uint64_t cfa)
{
    const struct unwind_machine *machine = walk->unwinder->machine;
    uint64_t sp = walk->cpu.registers[machine->sp], least = machine->least_frame_bytes;
    if (walk->is_exact)
        least = rule->return_address.kind == UNWIND_IS ? 0 : machine->least_leaf_bytes;
    return cfa >= sp && cfa - sp >= least;
}

/* From the frame at walk->cpu to its caller. *ret_cfa stays 0 when the frame has none. */
static enum step step_out_by(struct walk *walk, const struct unwind_rule *rule, uint64_t *ret_cfa)
{
    bool by_frame_pointer = rule == &walk->unwinder->machine->frame_pointer_rule;
    bool rests_on_guess =
        rule->cfa != UNWIND_CFA_EXPRESSION && !is_known(&walk->cpu, rule->cfa_number);
    uint64_t cfa = 0, pc = 0;
    if (by_frame_pointer && is_outermost_guess(walk))
        return STEP_COMPLETE;
    if (rule->return_address.kind == UNWIND_UNDEFINED)
        return STEP_COMPLETE;
    enum step step = find_cfa(walk, rule, &cfa);
    if (step != STEP_ON)
        return step;
    /* A signal may have been handled on a stack of its own, anywhere. */
    if (rule->is_signal ? !cfa : !is_credible(walk, rule, cfa))
        return STEP_BROKEN;
    step = find_return_address(walk, rule, cfa, &pc);
    if (step == STEP_ON && by_frame_pointer)
        step = check_frame_pointer(walk, pc);
    else if (step == STEP_ON && (rule->is_guess || rests_on_guess))
        step = check_caller(walk, pc);
    if (step != STEP_BROKEN)
        *ret_cfa = cfa;
    if (step != STEP_ON)
        return step;
    restore_registers(walk, rule, cfa);
    walk->cpu.pc = pc;
    walk->is_exact = rule->is_signal;
    return STEP_ON;
}

/* The same; where code has misled us, frame pointers may help. A return address of 0, which ends a
 * stack, is nothing that code could say. */
static enum step step_out(struct walk *walk, const struct unwind_rule *rule, uint64_t *ret_cfa)
{
    const struct unwind_rule *other = &walk->unwinder->machine->frame_pointer_rule;
    if (!rule->is_guess || rule == other)
        return step_out_by(walk, rule, ret_cfa);
    /* A copy: asking where it leads may bring news of mappings, and then rules are forgotten. */
    struct unwind_rule guess = *rule;
    enum step step = step_out_by(walk, &guess, ret_cfa);
    if (step == STEP_ON)
        return step;
    *ret_cfa = 0;
    enum step second = step_out_by(walk, other, ret_cfa);
    return second == STEP_BROKEN && step == STEP_TRUNCATED ? step : second;
}

static uint64_t word_at(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Tells the processor to bring memory that will soon be needed. What lies behind the copy does no
 * harm: this never faults. */
static inline void ask_for_lines(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(bytes + i * LINE_BYTES);
}

/* Where a frame with a plain rule ends in the copy; false when the long way has to decide: a word
 * is not in the copy or was popped, or there is no return address. */
static inline bool find_plain_cfa(const struct walk *walk, const struct unwind_rule *rule,
                                  uint64_t base, uint64_t sp, const uint8_t **ret_at_cfa)
{
    uint64_t cfa = base + (uint64_t)(int64_t)rule->cfa_offset;
    uint64_t offset = cfa - walk->sample->stack_avma;
    if (offset < rule->plain_bytes || offset > walk->last_word || cfa - rule->plain_bytes < sp)
        return false;
    *ret_at_cfa = walk->sample->stack + offset;
    return word_at(*ret_at_cfa + rule->return_address.offset) & walk->unwinder->machine->code_mask;
}

/* Steps out of frames as long as their rules are plain, and notes them. What changes from frame to
 * frame is kept out of the walk meanwhile, in the processor's registers.
 *
 * The places of a rule behind its last one name the word at the CFA and register 0, which nobody
 * will read: calls don't keep it. */
static void step_out_plainly(struct walk *walk, struct unwind_frames *frames)
{
    const struct unwind_machine *machine = walk->unwinder->machine;
    const unsigned saved_count = walk->unwinder->saved_count, sp_number = machine->sp;
    uint64_t *registers = walk->cpu.registers;
    uint64_t pc = walk->cpu.pc, own_avma = pc - (walk->is_exact ? 0 : 1), sp = registers[sp_number];
    uint32_t known = walk->cpu.known;
    bool is_exact = walk->is_exact;
    size_t first = frames->count, count = first;
    while (count < frames->capacity) {
        const struct unwind_rule *rule = find_rule(walk->unwinder, own_avma, is_exact);
        const uint8_t *at_cfa;
        if (!rule || !rule->plain_bytes || !(known >> rule->cfa_number & 1))
            break;
        uint64_t base = rule->cfa_number == sp_number ? sp : registers[rule->cfa_number];
        if (!find_plain_cfa(walk, rule, base, sp, &at_cfa))
            break;
        ask_for_lines(at_cfa + AHEAD_BYTES, LINES_PER_FRAME);
        for (unsigned i = 0; i < saved_count; i++)
            registers[rule->places[i].target] = word_at(at_cfa + rule->places[i].offset);
        sp = base + (uint64_t)(int64_t)rule->cfa_offset;
        known = (known & machine->saved) | rule->restored | 1u << sp_number;
        frames->pcs[count] = own_avma;
        if (frames->cfas)
            frames->cfas[count] = sp;
        count++;
        pc = word_at(at_cfa + rule->return_address.offset) & machine->code_mask;
        own_avma = pc - 1;
        is_exact = false;
    }
    frames->count = count;
    if (count == first)
        return;
    registers[sp_number] = sp;
    walk->cpu.known = known;
    walk->cpu.pc = pc;
    walk->is_exact = false;
}

/* One frame, whatever its rule. */
static enum step step_out_of_any(struct walk *walk, struct unwind_frames *frames)
{
    uint64_t own_avma = walk->cpu.pc - (walk->is_exact ? 0 : 1), cfa = 0;
    const struct unwind_rule *rule = find_rule(walk->unwinder, own_avma, walk->is_exact);
    /* The code that a signal handler returns to was not called, so it is at its very start. */
    frames->pcs[frames->count] = rule && rule->is_signal ? walk->cpu.pc : own_avma;
    enum step step = rule ? step_out(walk, rule, &cfa) : STEP_BROKEN;
    if (frames->cfas)
        frames->cfas[frames->count] = cfa;
    frames->count++;
    return step;
}

enum unwind_end unwind(struct unwinder *unwinder, const struct unwind_sample *sample,
                       struct unwind_frames *frames)
{
    struct walk walk;
    walk.unwinder = unwinder;
    walk.sample = sample;
    walk.cpu = sample->cpu;
    walk.is_exact = true;
    walk.last_word =
        sample->stack_bytes < sizeof(uint64_t) ? 0 : sample->stack_bytes - sizeof(uint64_t);
    ask_for_lines(sample->stack, AHEAD_BYTES / LINE_BYTES);
    enum step step = STEP_ON;
    frames->count = 0;
    while (step == STEP_ON && frames->count < frames->capacity) {
        step_out_plainly(&walk, frames);
        if (frames->count < frames->capacity)
            step = step_out_of_any(&walk, frames);
    }
    return step == STEP_COMPLETE ? UNWIND_COMPLETE
           : step == STEP_BROKEN ? UNWIND_BROKEN
                                 : UNWIND_TRUNCATED;
}
