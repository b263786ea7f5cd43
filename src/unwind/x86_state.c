/* Where will the stack pointer be at the `ret`, and where do the kept registers come from? Values
 * are followed as sums over what registers held at the start:
 *
 *     start                            rsp                    rbx
 *     mov  0x20(%rsp), %rsi            rsp                    rbx             rsi = [rsp + 0x20]
 *     mov  -8(%rsi), %rbx              rsp                    [[rsp+0x20]-8]
 *     lea  (%rsi), %rsp                [rsp+0x20]
 *     ret: the return address is at [rsp+0x20], and the caller's rbx in the word before it
 *
 * Variables of the code itself, at a distance from rip, count from the first instruction.
 *
 * Only moves, sums with constants, pushes and pops are understood; whatever else writes a register
 * makes its value unknown. A stack pointer that is aligned (`and $-64, %rsp`) or lowered by a
 * variable gets a symbol of its own, so that what is pushed behind it is still found when it is
 * popped.
 *
 * Memory that was not written on the way holds what it held at the start. What was written is
 * remembered by address. Two addresses with different symbols are taken to be different places, and
 * stores to unknown ones to be elsewhere: code does not write over its own saved registers. */
#include "unwind/x86_state.h"

#include <string.h>

enum {
    WORD = 8,
    /* rax, rcx, rdx, rsi, rdi, r8 to r11 */
    LOST_BY_CALLS = 1u << X86_RAX | 1u << X86_RCX | 1u << X86_RDX | 1u << X86_RSI | 1u << X86_RDI |
                    0xfu << X86_R8,
};

static const struct x86_value UNKNOWN = {.symbol = X86_UNKNOWN};

void x86_state_init(struct x86_state *state)
{
    memset(state, 0, sizeof *state);
    for (unsigned i = 0; i <= X86_START; i++)
        state->registers[i].symbol = (uint8_t)i;
    state->call_sp = UNKNOWN;
    state->next_symbol = X86_START + 1;
}

/* --- values ----------------------------------------------------------------------------------- */

struct x86_value x86_value_sum(struct x86_value value, int64_t added)
{
    int32_t *last = &value.offsets[value.depth];
    if (!x86_value_is_known(&value) || __builtin_add_overflow(*last, added, last))
        return UNKNOWN;
    return value;
}

static bool is_same(const struct x86_value *one, const struct x86_value *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

static struct x86_value new_symbol(struct x86_state *state)
{
    if (state->next_symbol == X86_UNKNOWN)
        return UNKNOWN;
    return (struct x86_value){.symbol = state->next_symbol++};
}

/* --- memory ----------------------------------------------------------------------------------- */

static const struct x86_stored *find_stored(const struct x86_state *state,
                                            const struct x86_value *address)
{
    for (size_t i = 0; i < state->stored_count; i++)
        if (is_same(&state->stored[i].address, address))
            return &state->stored[i];
    return NULL;
}

bool x86_state_has_stored(const struct x86_state *state, const struct x86_value *address)
{
    return find_stored(state, address);
}

bool x86_state_has_saved(const struct x86_state *state, uint8_t number)
{
    for (size_t i = 0; i < state->stored_count; i++)
        if (state->stored[i].address.symbol == X86_RSP && state->stored[i].address.depth == 0 &&
            x86_value_is_start(&state->stored[i].value, number))
            return true;
    return false;
}

struct x86_value x86_state_load(const struct x86_state *state, struct x86_value address)
{
    if (!x86_value_is_known(&address))
        return UNKNOWN;
    const struct x86_stored *stored = find_stored(state, &address);
    if (stored)
        return stored->value;
    if (address.symbol > X86_START || address.depth == X86_DEPTH_MOST)
        return UNKNOWN;
    address.depth++;
    return address;
}

/* False when there is no room for what might be looked for later. Addresses of the code's variables
 * are not, nor what is in them. */
static bool store(struct x86_state *state, struct x86_value address, struct x86_value value)
{
    if (!x86_value_is_known(&address) || address.symbol == X86_START)
        return true;
    struct x86_stored *stored = (struct x86_stored *)find_stored(state, &address);
    if (!stored && state->stored_count < X86_STORED_MOST)
        stored = &state->stored[state->stored_count++];
    if (!stored)
        return !x86_value_is_known(&value) || value.symbol == X86_START;
    *stored = (struct x86_stored){address, value};
    return true;
}

static bool push(struct x86_state *state, struct x86_value value)
{
    struct x86_value *sp = &state->registers[X86_RSP];
    *sp = x86_value_sum(*sp, -WORD);
    return store(state, *sp, value);
}

static struct x86_value pop(struct x86_state *state)
{
    struct x86_value *sp = &state->registers[X86_RSP];
    struct x86_value value = x86_state_load(state, *sp);
    *sp = x86_value_sum(*sp, WORD);
    return value;
}

/* --- instructions ----------------------------------------------------------------------------- */

static struct x86_value address_of(const struct x86_state *state,
                                   const struct x86_instruction *instruction)
{
    if (!instruction->is_plain_address)
        return UNKNOWN;
    return x86_value_sum(state->registers[instruction->base], instruction->displacement);
}

struct x86_value x86_state_operand(const struct x86_state *state,
                                   const struct x86_instruction *instruction)
{
    if (instruction->mod == 3)
        return state->registers[instruction->rm];
    return x86_state_load(state, address_of(state, instruction));
}

static void forget(struct x86_state *state, unsigned registers)
{
    for (; registers; registers &= registers - 1)
        state->registers[__builtin_ctz(registers)] = UNKNOWN;
}

static bool move_to_rm(struct x86_state *state, const struct x86_instruction *instruction)
{
    struct x86_value value = instruction->is_wide ? state->registers[instruction->reg] : UNKNOWN;
    if (instruction->mod != 3)
        return store(state, address_of(state, instruction), value);
    state->registers[instruction->rm] = value;
    return true;
}

/* Arithmetic with a constant: what matters are sums, and the stack pointer. */
static void add_constant(struct x86_state *state, const struct x86_instruction *instruction)
{
    enum { ADD = 0, AND = 4, SUB = 5, CMP = 7 };
    unsigned which = instruction->reg & 7;
    if (which == CMP || instruction->mod != 3)
        return;
    struct x86_value *value = &state->registers[instruction->rm];
    if (instruction->is_wide && (which == ADD || which == SUB))
        *value =
            x86_value_sum(*value, which == ADD ? instruction->immediate : -instruction->immediate);
    else if (which == AND && instruction->rm == X86_RSP)
        *value = new_symbol(state);
    else
        *value = UNKNOWN;
}

/* What is left of the registers by an instruction that is not looked at more closely. */
static void write_anything(struct x86_state *state, const struct x86_instruction *instruction)
{
    forget(state, instruction->written);
    if (instruction->written >> X86_RSP & 1)
        state->registers[X86_RSP] = new_symbol(state);
}

static bool step_push_or_pop(struct x86_state *state, const struct x86_instruction *instruction)
{
    if (instruction->prefix == 0x66)
        return false; /* of 16 bits: nobody does that */
    if (instruction->map == X86_MAP_0F || (instruction->opcode | 1) == 0x9d) {
        if (instruction->opcode & 1) /* segment registers, flags */
            pop(state);
        else
            return push(state, UNKNOWN);
        return true;
    }
    switch (instruction->opcode) {
    case 0x68:
    case 0x6a:
        return push(state, UNKNOWN);
    case 0xff:
        return push(state, x86_state_operand(state, instruction));
    case 0x8f: /* the address counts from the stack pointer behind it */
        if (instruction->mod != 3) {
            struct x86_value value = pop(state);
            return store(state, address_of(state, instruction), value);
        }
        break;
    default:
        if (instruction->opcode < 0x58)
            return push(state, state->registers[instruction->rm]);
    }
    struct x86_value value = pop(state);
    state->registers[instruction->rm] = value;
    return true;
}

static void step_leave(struct x86_state *state)
{
    state->registers[X86_RSP] = state->registers[X86_RBP];
    state->registers[X86_RBP] = pop(state);
}

static void exchange(struct x86_state *state, const struct x86_instruction *instruction)
{
    struct x86_value *one = &state->registers[instruction->rm],
                     *other = &state->registers[instruction->reg], value = *one;
    *one = *other;
    *other = value;
}

static bool is_push_or_pop(const struct x86_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    if (instruction->map == X86_MAP_0F)
        return opcode == 0xa0 || opcode == 0xa1 || opcode == 0xa8 || opcode == 0xa9;
    return (opcode >= 0x50 && opcode <= 0x5f) || opcode == 0x68 || opcode == 0x6a ||
           opcode == 0x8f || opcode == 0x9c || opcode == 0x9d ||
           (opcode == 0xff && (instruction->reg & 7) == 6);
}

/* The map of one byte, where nearly all of them are that matter. */
static bool step_one(struct x86_state *state, const struct x86_instruction *instruction)
{
    bool is_wide = instruction->is_wide;
    struct x86_value value;
    switch (instruction->opcode) {
    case 0x81:
    case 0x83:
        add_constant(state, instruction);
        return true;
    case 0x87:
        if (!is_wide || instruction->mod != 3)
            break;
        exchange(state, instruction);
        return true;
    case 0x89:
        return move_to_rm(state, instruction);
    case 0x8b:
        value = is_wide ? x86_state_operand(state, instruction) : UNKNOWN;
        state->registers[instruction->reg] = value;
        return true;
    case 0x8d:
        value = is_wide ? address_of(state, instruction) : UNKNOWN;
        state->registers[instruction->reg] = value;
        return true;
    case 0xc7: /* mov $…, (…) */
        if (instruction->mod != 3)
            return store(state, address_of(state, instruction), UNKNOWN);
        break;
    case 0xc8: /* enter */
        return false;
    case 0xc9:
        step_leave(state);
        return true;
    default:
        break;
    }
    write_anything(state, instruction);
    return true;
}

bool x86_state_step(struct x86_state *state, const struct x86_instruction *instruction)
{
    bool is_old = !instruction->is_vector && instruction->map <= X86_MAP_0F;
    if (is_old && is_push_or_pop(instruction))
        return step_push_or_pop(state, instruction);
    if (is_old && instruction->map == X86_MAP_ONE)
        return step_one(state, instruction);
    write_anything(state, instruction);
    return true;
}

void x86_state_call(struct x86_state *state)
{
    const struct x86_value *sp = &state->registers[X86_RSP], *first = &state->call_sp;
    if (!x86_value_is_known(first))
        state->call_sp = *sp;
    else if (first->symbol == sp->symbol && first->depth == sp->depth &&
             (first->offsets[sp->depth] - sp->offsets[sp->depth]) % (2 * WORD))
        state->is_askew = true;
    forget(state, LOST_BY_CALLS);
}
