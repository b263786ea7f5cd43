/* What is different on aarch64: the link register, signed return addresses, perf's numbers. Stacks
 * and tables are made by hand. */
#include "unwind/unwind.h"

#include "cfi_sample.h"

/*     0x401000  leaf:    has saved nothing: CFA = sp, return address in x30
 *     0x402000  framed:  stp x29, x30, [sp, #-32]!; mov x29, sp; …: CFA = x29 + 32
 *     0x403000  start:   the outermost one
 *     0x404000  sparing: sub sp, sp, #16: CFA = sp + 16, return address still in x30
 *     0x500000  generated code, without a table */
enum {
    BASE = 0x400000,
    LEAF = 0x401000,
    FRAMED = 0x402000,
    START = 0x403000,
    SPARING = 0x404000,
    TABLE_END = 0x410000,
    JIT = 0x500000,
    JIT_END = 0x510000,
    STACK = 0x7ff000,
    STACK_WORDS = 64,
    X29 = 29,
    X30 = 30,
    SP = 31,
    MOST = 32,
};

static struct unwind_table table;
static struct unwinder *unwinder;
static uint64_t stack[STACK_WORDS], pcs[MOST], cfas[MOST];
static struct unwind_sample sample;
static size_t count;

static bool find_code(void *context, uint64_t avma, struct unwind_code *ret_code)
{
    (void)context;
    *ret_code = (struct unwind_code){.table = avma < TABLE_END ? &table : NULL, .bias = BASE};
    return (avma >= BASE && avma < TABLE_END) || (avma >= JIT && avma < JIT_END);
}

static int set_up(void **state)
{
    (void)state;
    struct cfi_sample cfi = {0};
    cfi_sample_cie_aarch64(&cfi);
    CFI_SAMPLE_FDE(&cfi, LEAF - BASE, 0x100, "");
    /* +4: CFA = sp + 32, x29 at CFA - 32, x30 at CFA - 24, signed. +4: CFA = x29 + 32. */
    CFI_SAMPLE_FDE(&cfi, FRAMED - BASE, 0x100, "\x41\x0e\x20\x9d\x04\x9e\x03\x2d\x41\x0d\x1d");
    CFI_SAMPLE_FDE(&cfi, START - BASE, 0x100, "\x07\x1e");
    CFI_SAMPLE_FDE(&cfi, SPARING - BASE, 0x100, "\x0e\x10");
    assert_int_equal(cfi_sample_table(&cfi, TABLE_END - BASE, &table), 0);
    assert_int_equal(table.damaged, 0);
    memset(stack, 0, sizeof stack);
    sample = (struct unwind_sample){.stack = (const uint8_t *)stack,
                                    .stack_avma = STACK,
                                    .stack_bytes = sizeof stack,
                                    .cpu = {.pc = LEAF + 8, .known = UINT32_MAX}};
    sample.cpu.registers[SP] = STACK;
    return unwinder_open(EM_AARCH64, (struct unwind_finder){find_code, NULL}, &unwinder);
}

static int tear_down(void **state)
{
    (void)state;
    unwinder_close(unwinder);
    unwind_table_done(&table);
    return 0;
}

static enum unwind_end run(void)
{
    struct unwind_frames frames = {.pcs = pcs, .cfas = cfas, .capacity = MOST};
    enum unwind_end end = unwind(unwinder, &sample, &frames);
    count = frames.count;
    return end;
}

static void a_leaf_returns_by_the_link_register(void **state)
{
    (void)state;
    sample.cpu.registers[X30] = START + 8;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 2);
    assert_int_equal(pcs[1], START + 7);
    assert_int_equal(cfas[0], STACK);
}

/* leaf, called by framed, called by framed, called by start. */
static void frame_records_are_followed(void **state)
{
    (void)state;
    sample.cpu.registers[X30] = FRAMED + 0x20;
    sample.cpu.registers[X29] = STACK;
    stack[0] = STACK + 6 * 8;
    stack[1] = FRAMED + 0x40;
    stack[6] = 0;
    stack[7] = START + 8;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 4);
    assert_int_equal(pcs[1], FRAMED + 0x1f);
    assert_int_equal(pcs[2], FRAMED + 0x3f);
    assert_int_equal(pcs[3], START + 7);
    assert_int_equal(cfas[1], STACK + 4 * 8);
    assert_int_equal(cfas[2], STACK + 10 * 8);
}

static void signatures_are_taken_off_return_addresses(void **state)
{
    (void)state;
    sample.cpu.registers[X30] = (FRAMED + 0x20) | UINT64_C(0x005a) << 48;
    sample.cpu.registers[X29] = STACK;
    stack[1] = (START + 8) | UINT64_C(0xffa3) << 48;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], FRAMED + 0x1f);
    assert_int_equal(pcs[2], START + 7);
}

static void a_function_that_was_interrupted_may_have_grown_the_stack_only(void **state)
{
    (void)state;
    sample.cpu.pc = SPARING + 8;
    sample.cpu.registers[X30] = START + 8;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 2);
    assert_int_equal(cfas[0], STACK + 16);
}

/* A function that called another one must have saved x30: it holds the other one's return. */
static void the_link_register_is_known_in_the_innermost_frame_only(void **state)
{
    (void)state;
    sample.cpu.registers[X30] = SPARING + 0x20;
    assert_int_equal(run(), UNWIND_BROKEN);
    assert_int_equal(count, 2);
}

static void generated_code_is_followed_by_frame_pointers(void **state)
{
    (void)state;
    sample.cpu.pc = JIT + 0x40;
    sample.cpu.registers[X29] = STACK + 2 * 8;
    stack[2] = STACK + 6 * 8;
    stack[3] = (JIT + 0x80) | UINT64_C(0x12) << 48;
    stack[6] = 0;
    stack[7] = START + 8;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], JIT + 0x7f);
    assert_int_equal(pcs[2], START + 7);
}

static void perfs_registers_are_dwarfs(void **state)
{
    (void)state;
    struct unwind_sample from;
    uint64_t values[33];
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = 1000 + i;
    assert_true(unwind_sample_from_perf(EM_AARCH64, (UINT64_C(1) << 33) - 1, values, &from));
    assert_int_equal(from.cpu.pc, 1032);
    assert_int_equal(from.stack_avma, 1031);
    assert_int_equal(from.cpu.known, UINT32_MAX);
    for (size_t i = 0; i < UNWIND_REGISTERS; i++)
        assert_int_equal(from.cpu.registers[i], 1000 + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_returns_by_the_link_register),
        cmocka_unit_test(frame_records_are_followed),
        cmocka_unit_test(signatures_are_taken_off_return_addresses),
        cmocka_unit_test(a_function_that_was_interrupted_may_have_grown_the_stack_only),
        cmocka_unit_test(the_link_register_is_known_in_the_innermost_frame_only),
        cmocka_unit_test(generated_code_is_followed_by_frame_pointers),
        cmocka_unit_test(perfs_registers_are_dwarfs),
    };
    struct CMUnitTest with_set_up[COUNT(tests)];
    for (size_t i = 0; i < COUNT(tests); i++) {
        with_set_up[i] = tests[i];
        with_set_up[i].setup_func = set_up;
        with_set_up[i].teardown_func = tear_down;
    }
    return cmocka_run_group_tests(with_set_up, NULL, NULL);
}
