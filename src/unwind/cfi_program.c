/* A function's call frame information is a program that describes, address by address, what pushes
 * and pops do:
 *
 *     push %rbp         advance_loc 1; def_cfa_offset 16; offset rbp at CFA - 16
 *     mov  %rsp,%rbp    advance_loc 3; def_cfa_register rbp
 *
 * It is run once. Each time its location advances, the state up to there becomes a rule.
 *
 * Where offsets don't do, there are expressions for a small stack machine. Nearly all are one of
 * two, which are recognised:
 *
 *     register + n                  asm code
 *     *(register + n) [+ m]         realigned stacks, signal frames, asm code
 *
 * A CFA that is none of these is computed when it is asked for (cfa_expression.c). A register
 * that is none of these is lost, which hardly ever matters: few CFAs rest on others than sp and bp.
 */
#include "unwind/cfi_program.h"

#include <errno.h>
#include <string.h>

/* What the instructions are called in the DWARF standard is in the comments of run_instruction. */
enum {
    COLUMNS = 32,
    MOST_REMEMBERED = 8,

    HIGH_MASK = 0xc0,
    HIGH_ADVANCE = 0x40,
    HIGH_OFFSET = 0x80,
    HIGH_RESTORE = 0xc0,

    OP_BREG0 = 0x70,
    OP_BREG31 = 0x8f,
    OP_DEREF = 0x06,
    OP_PLUS_UCONST = 0x23,
};

struct state {
    uint8_t cfa;
    uint8_t cfa_number;
    int32_t cfa_offset, cfa_added;
    uint16_t expression_bytes;
    const uint8_t *expression;
    struct unwind_place columns[COLUMNS];
};

struct run {
    const struct unwind_machine *machine;
    const struct cfi_function *function;
    struct cfi_sink sink;
    uint64_t svma;               /* where the state is valid from */
    struct state state, initial; /* `initial`: after the common instructions */
    struct state remembered[MOST_REMEMBERED];
    size_t remembered_count;
    struct cursor cursor; /* at the next instruction */
};

static bool fits_i32(int64_t value)
{
    return value == (int32_t)value;
}

/* One stack-machine operation "register + n". */
static bool read_breg(struct cursor *expression, uint8_t *ret_number, int32_t *ret_offset)
{
    uint8_t op = cursor_u8(expression);
    int64_t offset = cursor_sleb128(expression);
    *ret_number = (uint8_t)(op - OP_BREG0);
    *ret_offset = (int32_t)offset;
    return cursor_ok(expression) && op >= OP_BREG0 && op <= OP_BREG31 && fits_i32(offset);
}

static void set_cfa_expression(struct run *run, struct cursor expression)
{
    struct state *state = &run->state;
    struct cursor whole = expression;
    int64_t added = 0;
    state->cfa_added = 0;
    if (read_breg(&expression, &state->cfa_number, &state->cfa_offset)) {
        if (!cursor_left(&expression)) {
            state->cfa = UNWIND_CFA_REGISTER;
            return;
        }
        bool is_memory = cursor_u8(&expression) == OP_DEREF;
        if (cursor_left(&expression) && cursor_u8(&expression) == OP_PLUS_UCONST)
            added = (int64_t)cursor_uleb128(&expression);
        if (is_memory && cursor_ok(&expression) && !cursor_left(&expression) && fits_i32(added)) {
            state->cfa = UNWIND_CFA_MEMORY;
            state->cfa_added = (int32_t)added;
            return;
        }
    }
    bool is_sound = cursor_ok(&whole) && whole.length <= UINT16_MAX;
    state->cfa = is_sound ? UNWIND_CFA_EXPRESSION : UNWIND_CFA_NONE;
    state->expression = whole.data;
    state->expression_bytes = (uint16_t)whole.length;
}

/* The address (or, for a value expression, the value) of a register, starting from the CFA. */
static struct unwind_place place_of_expression(struct cursor expression, bool is_value)
{
    struct unwind_place place = {.kind = is_value ? UNWIND_IS : UNWIND_AT};
    struct cursor start = expression;
    if (cursor_left(&start) && cursor_u8(&start) == OP_PLUS_UCONST) {
        uint64_t offset = cursor_uleb128(&start);
        place.kind = is_value ? UNWIND_IS_CFA : UNWIND_AT_CFA;
        place.offset = (int32_t)offset;
        if (cursor_ok(&start) && !cursor_left(&start) && fits_i32((int64_t)offset))
            return place;
    } else if (read_breg(&expression, &place.number, &place.offset) && !cursor_left(&expression)) {
        return place;
    }
    return (struct unwind_place){.kind = UNWIND_UNDEFINED};
}

static void set_column(struct run *run, uint64_t column, struct unwind_place place)
{
    if (column < COLUMNS)
        run->state.columns[column] = place;
}

/* A register that was saved at CFA + offset * factor. */
static void set_offset(struct run *run, uint64_t column, int64_t offset, uint8_t kind)
{
    int64_t bytes;
    bool fits = !__builtin_mul_overflow(offset, run->function->common.data_factor, &bytes) &&
                fits_i32(bytes);
    set_column(run, column,
               fits ? (struct unwind_place){.kind = kind, .offset = (int32_t)bytes}
                    : (struct unwind_place){.kind = UNWIND_UNDEFINED});
}

/* The CFA as register + offset; a part that stays is passed as it was. */
static void set_cfa(struct run *run, uint64_t number, int64_t offset)
{
    struct state *state = &run->state;
    state->cfa = number < COLUMNS && fits_i32(offset) ? UNWIND_CFA_REGISTER : UNWIND_CFA_NONE;
    state->cfa_number = (uint8_t)(number & (COLUMNS - 1));
    state->cfa_offset = (int32_t)offset;
    state->cfa_added = 0;
}

static int64_t factored(const struct run *run, int64_t value)
{
    int64_t result;
    return __builtin_mul_overflow(value, run->function->common.data_factor, &result) ? INT64_MAX
                                                                                     : result;
}

static void restore_column(struct run *run, uint64_t column)
{
    if (column < COLUMNS)
        run->state.columns[column] = run->initial.columns[column];
}

static struct unwind_rule rule_of(const struct run *run)
{
    const struct state *state = &run->state;
    const struct cfi_common *common = &run->function->common;
    struct unwind_rule rule;
    memset(&rule, 0, sizeof rule);
    rule.cfa = state->cfa;
    rule.is_signal = common->is_signal;
    if (common->return_column < COLUMNS)
        rule.return_address = state->columns[common->return_column];
    if (rule.cfa == UNWIND_CFA_NONE)
        return rule;
    if (rule.cfa == UNWIND_CFA_EXPRESSION) {
        rule.expression = state->expression;
        rule.expression_bytes = state->expression_bytes;
    } else {
        rule.cfa_number = state->cfa_number;
        rule.cfa_offset = state->cfa_offset;
        rule.cfa_added = state->cfa_added;
    }
    for (uint32_t left = run->machine->saved; left; left &= left - 1) {
        uint8_t column = (uint8_t)__builtin_ctz(left);
        if (state->columns[column].kind == UNWIND_SAME || column == common->return_column)
            continue;
        rule.places[rule.place_count] = state->columns[column];
        rule.places[rule.place_count++].target = column;
        rule.restored |= 1u << column;
    }
    rule.plain_bytes = unwind_rule_plain_bytes(&rule);
    return rule;
}

static int deliver(struct run *run)
{
    struct unwind_rule rule = rule_of(run);
    return run->sink.take(run->sink.context, run->svma, &rule);
}

static int advance(struct run *run, uint64_t units)
{
    uint64_t bytes;
    const struct cfi_function *function = run->function;
    if (__builtin_mul_overflow(units, function->common.code_factor, &bytes) ||
        bytes > function->size - (run->svma - function->start_svma))
        return -EBADMSG;
    if (!bytes)
        return 0;
    int error = deliver(run);
    run->svma += bytes;
    return error;
}

static int remember(struct run *run)
{
    if (run->remembered_count == MOST_REMEMBERED)
        return -EBADMSG;
    run->remembered[run->remembered_count++] = run->state;
    return 0;
}

static int recall(struct run *run)
{
    if (!run->remembered_count)
        return -EBADMSG;
    run->state = run->remembered[--run->remembered_count];
    return 0;
}

static struct cursor read_block(struct cursor *cursor)
{
    return cursor_sub(cursor, cursor_uleb128(cursor));
}

/* Instructions that set the rule of one register. False when it is none of them. */
static bool run_column_instruction(struct run *run, uint8_t op)
{
    struct cursor *cursor = &run->cursor;
    if (op != 0x05 && op != 0x06 && op != 0x07 && op != 0x08 && op != 0x09 && op != 0x10 &&
        op != 0x11 && op != 0x14 && op != 0x15 && op != 0x16 && op != 0x2f)
        return false;
    uint64_t column = cursor_uleb128(cursor);
    switch (op) {
    case 0x05: /* offset_extended */
        set_offset(run, column, (int64_t)cursor_uleb128(cursor), UNWIND_AT_CFA);
        break;
    case 0x06: /* restore_extended */
        restore_column(run, column);
        break;
    case 0x07: /* undefined */
        set_column(run, column, (struct unwind_place){.kind = UNWIND_UNDEFINED});
        break;
    case 0x08: /* same_value */
        set_column(run, column, (struct unwind_place){.kind = UNWIND_SAME});
        break;
    case 0x09: { /* register */
        uint64_t other = cursor_uleb128(cursor);
        uint8_t kind = other < COLUMNS ? UNWIND_IS : UNWIND_UNDEFINED;
        set_column(run, column,
                   (struct unwind_place){.kind = kind, .number = (uint8_t)(other % COLUMNS)});
        break;
    }
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        set_column(run, column, place_of_expression(read_block(cursor), op == 0x16));
        break;
    case 0x11: /* offset_extended_sf */
        set_offset(run, column, cursor_sleb128(cursor), UNWIND_AT_CFA);
        break;
    case 0x14: /* val_offset */
        set_offset(run, column, (int64_t)cursor_uleb128(cursor), UNWIND_IS_CFA);
        break;
    case 0x15: /* val_offset_sf */
        set_offset(run, column, cursor_sleb128(cursor), UNWIND_IS_CFA);
        break;
    default: /* 0x2f, GNU_negative_offset_extended */
        set_offset(run, column, -(int64_t)(cursor_uleb128(cursor) & INT64_MAX), UNWIND_AT_CFA);
        break;
    }
    return true;
}

static int run_instruction(struct run *run, uint8_t op)
{
    struct cursor *cursor = &run->cursor;
    const struct state *state = &run->state;
    switch (op) {
    case 0x00: /* nop */
        return 0;
    case 0x01: { /* set_loc */
        uint64_t svma = cursor_u64(cursor);
        if (run->function->pointer_encoding || svma < run->svma ||
            !run->function->common.code_factor)
            return -EBADMSG;
        return advance(run, (svma - run->svma) / run->function->common.code_factor);
    }
    case 0x02: /* advance_loc1 */
        return advance(run, cursor_u8(cursor));
    case 0x03: /* advance_loc2 */
        return advance(run, cursor_u16(cursor));
    case 0x04: /* advance_loc4 */
        return advance(run, cursor_u32(cursor));
    case 0x0a: /* remember_state */
        return remember(run);
    case 0x0b: /* restore_state */
        return recall(run);
    case 0x0c: { /* def_cfa */
        uint64_t number = cursor_uleb128(cursor);
        set_cfa(run, number, (int64_t)cursor_uleb128(cursor));
        return 0;
    }
    case 0x0d: /* def_cfa_register */
        set_cfa(run, cursor_uleb128(cursor), state->cfa_offset);
        return 0;
    case 0x0e: /* def_cfa_offset */
        set_cfa(run, state->cfa_number, (int64_t)cursor_uleb128(cursor));
        return 0;
    case 0x0f: /* def_cfa_expression */
        set_cfa_expression(run, read_block(cursor));
        return 0;
    case 0x12: { /* def_cfa_sf */
        uint64_t number = cursor_uleb128(cursor);
        set_cfa(run, number, factored(run, cursor_sleb128(cursor)));
        return 0;
    }
    case 0x13: /* def_cfa_offset_sf */
        set_cfa(run, state->cfa_number, factored(run, cursor_sleb128(cursor)));
        return 0;
    case 0x2d: /* AARCH64_negate_ra_state: how the return address is signed, not where it is */
        return 0;
    case 0x2e: /* GNU_args_size */
        cursor_uleb128(cursor);
        return 0;
    default:
        return run_column_instruction(run, op) ? 0 : -EBADMSG;
    }
}

static int run_instructions(struct run *run, struct cursor instructions)
{
    struct cursor *cursor = &run->cursor;
    *cursor = instructions;
    while (cursor_left(cursor)) {
        uint8_t op = cursor_u8(cursor), low = op & (uint8_t)~HIGH_MASK;
        int error = 0;
        if ((op & HIGH_MASK) == HIGH_ADVANCE)
            error = advance(run, low);
        else if ((op & HIGH_MASK) == HIGH_OFFSET)
            set_offset(run, low, (int64_t)cursor_uleb128(cursor), UNWIND_AT_CFA);
        else if ((op & HIGH_MASK) == HIGH_RESTORE)
            restore_column(run, low);
        else
            error = run_instruction(run, op);
        if (!error && !cursor_ok(cursor))
            error = -EBADMSG;
        if (error < 0)
            return error;
    }
    return 0;
}

int cfi_program_run(const struct unwind_machine *machine, const struct cfi_function *function,
                    struct cfi_sink sink)
{
    struct run run = {.machine = machine, .function = function, .sink = sink};
    run.svma = function->start_svma;
    int error = run_instructions(&run, function->common.instructions);
    if (error < 0)
        return error;
    run.initial = run.state;
    error = run_instructions(&run, function->instructions);
    if (error < 0)
        return error;
    return run.svma - function->start_svma < function->size ? deliver(&run) : 0;
}
