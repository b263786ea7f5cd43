/* An expression is a list of operations for a machine that has nothing but a stack of words. What
 * is on top at the end is the value:
 *
 *     breg7 8; breg9 0; lit8; mul; plus; deref; plus_uconst 8        *(rsp + 8 + r9 * 8) + 8
 *     breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus      rsp + 8 + (rip % 16 >= 11) * 8
 *
 * The first is OpenSSL's, the second the linker's own, in .plt. All that computes is here. Jumps
 * are not: nobody has been seen to jump, and so every expression comes to its end. */
#include "unwind/cfa_expression.h"

enum {
    MOST_WORDS = 16, /* on the stack */

    OP_DEREF = 0x06,
    OP_CONST1U = 0x08,
    OP_CONST1S = 0x09,
    OP_CONST2U = 0x0a,
    OP_CONST2S = 0x0b,
    OP_CONST4U = 0x0c,
    OP_CONST4S = 0x0d,
    OP_CONST8U = 0x0e,
    OP_CONST8S = 0x0f,
    OP_CONSTU = 0x10,
    OP_CONSTS = 0x11,
    OP_DUP = 0x12,
    OP_DROP = 0x13,
    OP_OVER = 0x14,
    OP_PICK = 0x15,
    OP_SWAP = 0x16,
    OP_ABS = 0x19,
    OP_AND = 0x1a,
    OP_DIV = 0x1b,
    OP_MINUS = 0x1c,
    OP_MOD = 0x1d,
    OP_MUL = 0x1e,
    OP_NEG = 0x1f,
    OP_NOT = 0x20,
    OP_OR = 0x21,
    OP_PLUS = 0x22,
    OP_PLUS_UCONST = 0x23,
    OP_SHL = 0x24,
    OP_SHR = 0x25,
    OP_SHRA = 0x26,
    OP_XOR = 0x27,
    OP_EQ = 0x29,
    OP_GE = 0x2a,
    OP_GT = 0x2b,
    OP_LE = 0x2c,
    OP_LT = 0x2d,
    OP_NE = 0x2e,
    OP_LIT0 = 0x30,
    OP_LIT31 = 0x4f,
    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_BREGX = 0x92,
    OP_NOP = 0x96,
};

struct machine {
    const struct cfa_expression_world *world;
    struct cursor cursor; /* at the next operation */
    uint64_t words[MOST_WORDS];
    size_t count;
    bool has_failed;       /* all that follows is meaningless */
    bool lacks_word;       /* and why: */
    uint64_t missing_avma; /* of that word */
};

static void push(struct machine *machine, uint64_t word)
{
    if (machine->count == MOST_WORDS)
        machine->has_failed = true;
    else
        machine->words[machine->count++] = word;
}

static uint64_t pop(struct machine *machine)
{
    if (machine->count)
        return machine->words[--machine->count];
    machine->has_failed = true;
    return 0;
}

/* The word at a depth, 0: the top. */
static uint64_t peek(struct machine *machine, size_t depth)
{
    if (depth < machine->count)
        return machine->words[machine->count - 1 - depth];
    machine->has_failed = true;
    return 0;
}

static uint64_t register_value(struct machine *machine, uint64_t number)
{
    const struct unwind_cpu *cpu = machine->world->cpu;
    if (number == machine->world->pc_number)
        return cpu->pc;
    if (number < UNWIND_REGISTERS && cpu->known >> number & 1)
        return cpu->registers[number];
    machine->has_failed = true;
    return 0;
}

static uint64_t memory_word(struct machine *machine, uint64_t avma)
{
    uint64_t word = 0;
    if (machine->has_failed || unwind_sample_word(machine->world->memory, avma, &word))
        return word;
    machine->has_failed = true;
    machine->lacks_word = true;
    machine->missing_avma = avma;
    return 0;
}

/* What two words give; false when the operation is not one of two words. */
static bool combine(uint8_t op, uint64_t left, uint64_t right, uint64_t *ret_word)
{
    int64_t signed_left = (int64_t)left, signed_right = (int64_t)right;
    uint64_t sign = signed_left < 0 ? UINT64_MAX : 0;
    switch (op) {
    case OP_AND:
        *ret_word = left & right;
        return true;
    case OP_OR:
        *ret_word = left | right;
        return true;
    case OP_XOR:
        *ret_word = left ^ right;
        return true;
    case OP_PLUS:
        *ret_word = left + right;
        return true;
    case OP_MINUS:
        *ret_word = left - right;
        return true;
    case OP_MUL:
        *ret_word = left * right;
        return true;
    case OP_SHL:
        *ret_word = right < 64 ? left << right : 0;
        return true;
    case OP_SHR:
        *ret_word = right < 64 ? left >> right : 0;
        return true;
    case OP_SHRA: /* of a negative number: the other bits are shifted, and all turned again */
        *ret_word = right < 64 ? ((left ^ sign) >> right) ^ sign : sign;
        return true;
    case OP_EQ:
        *ret_word = left == right;
        return true;
    case OP_NE:
        *ret_word = left != right;
        return true;
    case OP_GE:
        *ret_word = signed_left >= signed_right;
        return true;
    case OP_GT:
        *ret_word = signed_left > signed_right;
        return true;
    case OP_LE:
        *ret_word = signed_left <= signed_right;
        return true;
    case OP_LT:
        *ret_word = signed_left < signed_right;
        return true;
    default:
        return false;
    }
}

/* Quotients are of signed numbers, remainders of unsigned ones. */
static void divide(struct machine *machine, uint8_t op)
{
    uint64_t right = pop(machine), left = pop(machine);
    if (!right || (op == OP_DIV && left == (uint64_t)INT64_MIN && right == UINT64_MAX))
        machine->has_failed = true;
    else
        push(machine, op == OP_MOD ? left % right : (uint64_t)((int64_t)left / (int64_t)right));
}

static uint64_t constant(struct cursor *cursor, uint8_t op)
{
    switch (op) {
    case OP_CONST1U:
        return cursor_u8(cursor);
    case OP_CONST1S:
        return (uint64_t)(int8_t)cursor_u8(cursor);
    case OP_CONST2U:
        return cursor_u16(cursor);
    case OP_CONST2S:
        return (uint64_t)(int16_t)cursor_u16(cursor);
    case OP_CONST4U:
        return cursor_u32(cursor);
    case OP_CONST4S:
        return (uint64_t)(int32_t)cursor_u32(cursor);
    case OP_CONSTU:
        return cursor_uleb128(cursor);
    case OP_CONSTS:
        return (uint64_t)cursor_sleb128(cursor);
    default: /* OP_CONST8U, OP_CONST8S */
        return cursor_u64(cursor);
    }
}

/* Operations that move words about, or change one. False when it is none of them. */
static bool rearrange(struct machine *machine, uint8_t op)
{
    uint64_t word;
    switch (op) {
    case OP_NOP:
        return true;
    case OP_DUP:
        push(machine, peek(machine, 0));
        return true;
    case OP_DROP:
        pop(machine);
        return true;
    case OP_OVER:
        push(machine, peek(machine, 1));
        return true;
    case OP_PICK:
        push(machine, peek(machine, cursor_u8(&machine->cursor)));
        return true;
    case OP_SWAP: {
        uint64_t top = pop(machine), below = pop(machine);
        push(machine, top);
        push(machine, below);
        return true;
    }
    case OP_ABS:
        word = pop(machine);
        push(machine, (int64_t)word < 0 ? -word : word);
        return true;
    case OP_NEG:
        push(machine, -pop(machine));
        return true;
    case OP_NOT:
        push(machine, ~pop(machine));
        return true;
    default:
        return false;
    }
}

static void operate(struct machine *machine, uint8_t op)
{
    struct cursor *cursor = &machine->cursor;
    if (op >= OP_LIT0 && op <= OP_LIT31) {
        push(machine, op - OP_LIT0);
    } else if (op >= OP_CONST1U && op <= OP_CONSTS) {
        push(machine, constant(cursor, op));
    } else if ((op >= OP_BREG0 && op <= OP_BREG31) || op == OP_BREGX) {
        uint64_t number = op == OP_BREGX ? cursor_uleb128(cursor) : (uint64_t)(op - OP_BREG0);
        push(machine, register_value(machine, number) + (uint64_t)cursor_sleb128(cursor));
    } else if (op == OP_DEREF) {
        push(machine, memory_word(machine, pop(machine)));
    } else if (op == OP_PLUS_UCONST) {
        push(machine, pop(machine) + cursor_uleb128(cursor));
    } else if (op == OP_DIV || op == OP_MOD) {
        divide(machine, op);
    } else if (!rearrange(machine, op)) {
        uint64_t right = pop(machine), left = pop(machine), word = 0;
        if (!combine(op, left, right, &word))
            machine->has_failed = true;
        push(machine, word);
    }
}

enum cfa_expression_end cfa_expression_evaluate(struct cursor expression,
                                                const struct cfa_expression_world *world,
                                                uint64_t *ret_value)
{
    struct machine machine = {.world = world, .cursor = expression};
    while (!machine.has_failed && cursor_ok(&machine.cursor) && cursor_left(&machine.cursor))
        operate(&machine, cursor_u8(&machine.cursor));
    if (machine.lacks_word) {
        *ret_value = machine.missing_avma;
        return CFA_EXPRESSION_NO_WORD;
    }
    *ret_value = peek(&machine, 0);
    return machine.has_failed || !cursor_ok(&machine.cursor) ? CFA_EXPRESSION_UNKNOWN
                                                             : CFA_EXPRESSION_VALUE;
}
