/* Stacks made by hand, walked by tables made by hand. */
#include "unwind/unwind.h"

#include "cfi_sample.h"

#include <errno.h>

/* Two functions, described; beyond them code without description; and nothing else.
 *
 *     0x401000  plain:     CFA = rsp + 8 throughout
 *     0x402000  framed:    push %rbp; mov %rsp,%rbp; …
 *     0x403000  start:     the outermost one
 *     0x404000  restorer:  signal frame: CFA = *(rsp + 160), rip at rsp + 168, rbp at rsp + 120
 *     0x405000  resolver:  CFA = rbx + 16
 *     0x406000  vfork:     CFA = rsp, its return address is in rdi
 *     0x500000  generated code, without a table
 *     0x600000  kernel:    the same, but its bytes are known */
enum {
    BASE = 0x400000,
    PLAIN = 0x401000,
    FRAMED = 0x402000,
    START = 0x403000,
    RESTORER = 0x404000,
    RESOLVER = 0x405000,
    VFORK = 0x406000,
    TABLE_END = 0x410000,
    JIT = 0x500000,
    JIT_END = 0x510000,
    KERNEL = 0x600000,
    KERNEL_END = 0x600010,
    STACK = 0x7ff000,
    STACK_WORDS = 64,
    RBX = 3,
    RDI = 5,
    RBP = 6,
    RSP = 7,
    MOST = 32,
};

static struct unwind_table table;
static struct code_rules kernel_rules;
static struct unwinder *unwinder;
static uint64_t stack[STACK_WORDS];
static struct unwind_sample sample;
static uint64_t pcs[MOST], cfas[MOST];
static size_t count;
static size_t questions;
static bool forgets; /* every question shows that mappings have changed */

static bool find_code(void *context, uint64_t avma, struct unwind_code *ret_code)
{
    (void)context;
    questions++;
    if (forgets) {
        unwinder_forget(unwinder);
        code_rules_forget(&kernel_rules);
    }
    *ret_code = (struct unwind_code){.table = avma < TABLE_END ? &table : NULL, .bias = BASE};
    if (avma >= KERNEL && avma < KERNEL_END)
        *ret_code = (struct unwind_code){.code = &kernel_rules, .bias = KERNEL};
    return (avma >= BASE && avma < TABLE_END) || (avma >= JIT && avma < JIT_END) ||
           (avma >= KERNEL && avma < KERNEL_END);
}

/* Code without a table that can be read. */
static const uint8_t KERNEL_CODE[] = {
    0x48, 0x83, 0xec, 0x08, /*  0 sub  $8, %rsp */
    0xff, 0xd0,             /*  4 call *%rax */
    0x48, 0x83, 0xc4, 0x08, /*  6 add  $8, %rsp */
    0xc3,                   /* 10 ret */
};

static size_t read_kernel(void *context, uint64_t address, const uint8_t **ret_code,
                          size_t *ret_before)
{
    (void)context;
    if (address >= sizeof KERNEL_CODE)
        return 0;
    *ret_before = address;
    *ret_code = KERNEL_CODE + address;
    return sizeof KERNEL_CODE - address;
}

static void make_table(void)
{
    struct cfi_sample cfi = {0};
    cfi_sample_cie(&cfi, "zR");
    CFI_SAMPLE_FDE(&cfi, PLAIN - BASE, 0x100, "");
    CFI_SAMPLE_FDE(&cfi, FRAMED - BASE, 32, CFI_SAMPLE_FRAME_POINTER);
    CFI_SAMPLE_FDE(&cfi, START - BASE, 0x100, "\x07\x10");
    CFI_SAMPLE_FDE(&cfi, RESOLVER - BASE, 0x100, "\x0c\x03\x10");
    CFI_SAMPLE_FDE(&cfi, VFORK - BASE, 0x100, "\x0e\x00\x09\x10\x05");
    cfi_sample_cie(&cfi, "zRS");
    CFI_SAMPLE_FDE(&cfi, RESTORER - 1 - BASE, 10,
                   "\x0f\x04\x77\xa0\x01\x06\x10\x10\x03\x77\xa8\x01\x10\x06\x03\x77\xf8\x00");
    assert_int_equal(cfi_sample_table(&cfi, TABLE_END - BASE, &table), 0);
    assert_int_equal(table.damaged, 0);
}

static int set_up(void **state)
{
    (void)state;
    memset(stack, 0, sizeof stack);
    questions = count = 0;
    forgets = false;
    make_table();
    code_rules_init(&kernel_rules, EM_X86_64, (struct code_source){.read = read_kernel});
    sample = (struct unwind_sample){.stack = (const uint8_t *)stack,
                                    .stack_avma = STACK,
                                    .stack_bytes = sizeof stack,
                                    .cpu = {.pc = PLAIN + 8, .known = 0xffff}};
    sample.cpu.registers[RSP] = STACK;
    struct unwind_finder finder = {find_code, NULL};
    return unwinder_open(EM_X86_64, finder, &unwinder);
}

static int tear_down(void **state)
{
    (void)state;
    unwinder_close(unwinder);
    code_rules_done(&kernel_rules);
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

static void the_outermost_function_completes_a_stack(void **state)
{
    (void)state;
    stack[0] = START + 0x20;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 2);
    assert_int_equal(pcs[0], PLAIN + 8);
    assert_int_equal(pcs[1], START + 0x20 - 1);
}

static void a_return_address_of_0_completes_a_stack(void **state)
{
    (void)state;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 1);
}

static void a_saved_frame_pointer_is_restored(void **state)
{
    (void)state;
    sample.cpu.pc = FRAMED + 1; /* pushed, not yet moved */
    sample.cpu.registers[RBP] = 0x1234;
    stack[0] = STACK + 4 * 8; /* the caller's frame */
    stack[1] = FRAMED + 16;
    stack[4] = 0;
    stack[5] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], FRAMED + 15);
    assert_int_equal(pcs[2], START + 3);
}

/* The stack was let go, and rbp is still to be taken from it. */
static void a_register_that_the_cfa_rests_on_was_not_popped(void **state)
{
    (void)state;
    sample.cpu.pc = FRAMED + 16;
    sample.cpu.registers[RSP] = STACK + 8;
    sample.cpu.registers[RBP] = STACK;
    stack[0] = STACK + 32;
    stack[1] = FRAMED + 16;
    stack[4] = 1;
    stack[5] = START + 8;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], FRAMED + 15);
    assert_int_equal(cfas[1], STACK + 48);
    assert_int_equal(pcs[2], START + 7);
}

/* Behind its pop the description still claims that rbp is below the CFA: below the stack, that is.
 */
static void a_register_that_was_popped_is_the_live_one(void **state)
{
    (void)state;
    sample.cpu.pc = FRAMED + 31;
    sample.cpu.registers[RBP] = STACK + 2 * 8;
    stack[0] = FRAMED + 16;
    stack[2] = 0;
    stack[3] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[2], START + 3);
}

static void the_cfa_may_rest_on_rbx(void **state)
{
    (void)state;
    stack[0] = RESOLVER + 8;
    sample.cpu.registers[RBX] = STACK + 5 * 8;
    stack[6] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], RESOLVER + 7);
}

/* The frames of evaluators are found by their place on the stack. */
static void a_return_address_may_be_in_a_register(void **state)
{
    (void)state;
    sample.cpu.pc = VFORK + 8;
    sample.cpu.registers[RDI] = PLAIN + 16;
    stack[0] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], PLAIN + 15);
    assert_int_equal(cfas[0], STACK);
    assert_int_equal(pcs[2], START + 3);
}

/* Only of the innermost function: others have called somebody since. */
static void a_callers_return_address_is_in_no_register(void **state)
{
    (void)state;
    sample.cpu.registers[RDI] = VFORK + 8;
    stack[0] = VFORK + 8;
    assert_int_equal(run(), UNWIND_BROKEN);
}

static void every_frame_has_its_place_on_the_stack(void **state)
{
    (void)state;
    sample.cpu.pc = FRAMED + 1;
    stack[0] = STACK + 4 * 8;
    stack[1] = FRAMED + 16;
    stack[5] = PLAIN + 16;
    stack[6] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 4);
    assert_int_equal(cfas[0], STACK + 2 * 8);
    assert_int_equal(cfas[1], STACK + 6 * 8);
    assert_int_equal(cfas[2], STACK + 7 * 8);
    assert_int_equal(cfas[3], 0); /* the outermost one has no caller */
}

static void the_place_is_known_where_the_return_address_is_not(void **state)
{
    (void)state;
    sample.stack_bytes = 0;
    assert_int_equal(run(), UNWIND_TRUNCATED);
    assert_int_equal(count, 1);
    assert_int_equal(cfas[0], STACK + 8);
}

static void places_on_the_stack_are_optional(void **state)
{
    (void)state;
    stack[0] = START + 4;
    struct unwind_frames frames = {.pcs = pcs, .capacity = MOST};
    assert_int_equal(unwind(unwinder, &sample, &frames), UNWIND_COMPLETE);
    assert_int_equal(frames.count, 2);
}

/* The last words of a copy are read word by word, those before all at once: with the same result.
 */
static void a_copy_may_end_behind_any_word(void **state)
{
    (void)state;
    for (size_t words = 2; words < 8; words++) {
        memset(stack, 0, sizeof stack);
        sample.cpu.pc = FRAMED + 1;
        stack[0] = STACK + 4 * 8;
        stack[1] = FRAMED + 16;
        stack[5] = START + 4;
        uint8_t *copy = exact_copy(stack, words * 8);
        sample.stack = copy;
        sample.stack_bytes = words * 8;
        assert_int_equal(run(), words < 6 ? UNWIND_TRUNCATED : UNWIND_COMPLETE);
        assert_int_equal(count, words < 6 ? 2 : 3);
        assert_int_equal(cfas[1], STACK + 6 * 8);
        free(copy);
    }
}

/* The return address of a handler is the first byte of the restorer; the interrupted frame is
 * exact. */
static void an_interrupted_frame_keeps_its_address(void **state)
{
    (void)state;
    stack[0] = RESTORER;
    stack[1 + 160 / 8] = STACK + 40 * 8; /* rsp of what was interrupted */
    stack[1 + 168 / 8] = PLAIN;          /* its rip: at the very start of a function */
    stack[1 + 120 / 8] = 0;
    stack[40] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 4);
    assert_int_equal(pcs[1], RESTORER);
    assert_int_equal(pcs[2], PLAIN);
    assert_int_equal(pcs[3], START + 3);
}

static void a_handler_may_have_a_stack_of_its_own(void **state)
{
    (void)state;
    static const uint64_t PLACES[] = {STACK - 0x10000, STACK + 0x10000};
    for (size_t i = 0; i < 2; i++) {
        uint64_t outer[2] = {PLAIN + 0x10, START + 4};
        stack[0] = RESTORER;
        stack[1 + 160 / 8] = PLACES[i];
        stack[1 + 168 / 8] = PLAIN + 4;
        sample.outer_stack = (const uint8_t *)outer;
        sample.outer_avma = PLACES[i];
        sample.outer_bytes = sizeof outer;
        assert_int_equal(run(), UNWIND_COMPLETE);
        assert_int_equal(count, 5);
        assert_int_equal(pcs[2], PLAIN + 4);
        assert_int_equal(pcs[3], PLAIN + 0x10 - 1);
        assert_int_equal(pcs[4], START + 3);
        sample.outer_bytes = sizeof *outer; /* without the last word */
        assert_int_equal(run(), UNWIND_TRUNCATED);
        assert_int_equal(count, 4);
    }
}

static void a_sample_inside_of_sigreturn_is_a_signal_frame(void **state)
{
    (void)state;
    sample.cpu.pc = RESTORER + 9;
    stack[160 / 8] = STACK + 40 * 8;
    stack[168 / 8] = PLAIN + 4;
    stack[40] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], PLAIN + 4);
}

static void generated_code_is_followed_by_frame_pointers(void **state)
{
    (void)state;
    sample.cpu.pc = JIT + 0x40;
    sample.cpu.registers[RBP] = STACK + 8;
    stack[1] = STACK + 4 * 8;
    stack[2] = JIT + 0x80;
    stack[4] = 0;
    stack[5] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(pcs[1], JIT + 0x7f);
    assert_int_equal(pcs[2], START + 3);
}

static void a_frame_pointer_that_is_none_breaks_a_stack(void **state)
{
    (void)state;
    uint64_t wrong[] = {STACK - 64, STACK + 3, 0x12345678, STACK + 8};
    stack[1] = 77;
    stack[2] = 0xdeadbeef; /* not code */
    for (size_t i = 0; i < COUNT(wrong); i++) {
        sample.cpu.pc = JIT + 0x40;
        sample.cpu.registers[RBP] = wrong[i];
        assert_int_equal(run(), UNWIND_BROKEN);
        assert_int_equal(count, 1);
    }
}

static void a_copy_that_is_too_short_is_truncated(void **state)
{
    (void)state;
    stack[0] = PLAIN + 16;
    sample.stack_bytes = 8;
    assert_int_equal(run(), UNWIND_TRUNCATED);
    assert_int_equal(count, 2);
    sample.stack_bytes = 3;
    assert_int_equal(run(), UNWIND_TRUNCATED);
    assert_int_equal(count, 1);
}

static void behind_a_whole_stack_there_is_nothing_to_truncate(void **state)
{
    (void)state;
    stack[0] = PLAIN + 16;
    sample.stack_bytes = 8;
    sample.is_whole = true;
    assert_int_equal(run(), UNWIND_BROKEN);
}

static void an_address_that_is_no_code_breaks_a_stack(void **state)
{
    (void)state;
    stack[0] = 0x999;
    assert_int_equal(run(), UNWIND_BROKEN);
    assert_int_equal(count, 2);
}

static void a_stack_that_does_not_go_up_is_broken(void **state)
{
    (void)state;
    stack[0] = RESOLVER + 8;
    sample.cpu.registers[RBX] = STACK - 16; /* CFA = what the stack pointer was before */
    assert_int_equal(run(), UNWIND_BROKEN);
    assert_int_equal(count, 2);
}

static void room_for_pcs_is_respected(void **state)
{
    (void)state;
    for (size_t i = 0; i < STACK_WORDS; i++)
        stack[i] = PLAIN + 16;
    assert_int_equal(run(), UNWIND_TRUNCATED);
    assert_int_equal(count, MOST);
}

static void addresses_are_asked_for_once_until_forgotten(void **state)
{
    (void)state;
    stack[0] = START + 4;
    run();
    size_t asked = questions;
    run();
    assert_int_equal(questions, asked);
    unwinder_forget(unwinder);
    run();
    assert_int_equal(questions, 2 * asked);
}

static void perfs_registers_become_dwarfs(void **state)
{
    (void)state;
    struct unwind_sample from;
    const struct unwind_cpu *cpu = &from.cpu;
    uint64_t values[24];
    for (size_t i = 0; i < COUNT(values); i++)
        values[i] = 1000 + i;
    /* What perf asks for: all but the segment registers ds, es, fs, gs. */
    assert_true(unwind_sample_from_perf(EM_X86_64, 0xff0fff, values, &from));
    assert_int_equal(cpu->pc, 1008);
    assert_int_equal(cpu->registers[RSP], 1007);
    assert_int_equal(cpu->registers[RBP], 1006);
    assert_int_equal(cpu->registers[RBX], 1001);
    assert_int_equal(cpu->registers[8], 1012);
    assert_int_equal(cpu->registers[15], 1019);
    assert_int_equal(cpu->known, 0xffff);
    assert_int_equal(from.stack_avma, 1007);
    assert_false(unwind_sample_from_perf(EM_X86_64, 1 << 8, values, &from));
    assert_false(unwind_sample_from_perf(EM_MIPS, 0xff0fff, values, &from));
}

static void other_machines_are_refused(void **state)
{
    (void)state;
    struct unwinder *none;
    assert_int_equal(unwinder_open(EM_MIPS, (struct unwind_finder){find_code, NULL}, &none),
                     -ENOTSUP);
}

/* Registers and stack from anywhere: it ends, and stays within the copy. */
static void random_stacks_are_survived(void **state)
{
    (void)state;
    static const uint64_t PLACES[] = {PLAIN, FRAMED, RESTORER, RESOLVER, JIT, STACK, START - 1};
    uint64_t random = 11;
    uint64_t *copy = (uint64_t *)exact_copy(stack, sizeof stack);
    sample.stack = (const uint8_t *)copy;
    for (int round = 0; round < 20000; round++) {
        for (size_t i = 0; i < STACK_WORDS; i++)
            copy[i] = PLACES[next_random(&random) % COUNT(PLACES)] + next_random(&random) % 256;
        for (size_t i = 0; i < 16; i++)
            sample.cpu.registers[i] = STACK + next_random(&random) % 600;
        sample.cpu.pc = PLACES[next_random(&random) % COUNT(PLACES)];
        run();
        assert_true(count >= 1 && count <= MOST);
    }
    free(copy);
}

static void code_without_a_table_is_followed(void **state)
{
    (void)state;
    stack[0] = KERNEL + 6; /* called by the kernel, which has called itself */
    stack[2] = KERNEL + 6;
    stack[4] = START + 4;
    sample.cpu.pc = PLAIN + 8;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 4);
    assert_int_equal(pcs[1], KERNEL + 5);
    assert_int_equal(cfas[1], STACK + 3 * 8);
    assert_int_equal(pcs[3], START + 3);
}

static void rules_may_be_forgotten_while_they_are_used(void **state)
{
    forgets = true;
    code_without_a_table_is_followed(state);
}

static void interrupted_code_without_a_table_is_followed(void **state)
{
    (void)state;
    sample.cpu.pc = KERNEL;
    stack[0] = KERNEL + 6;
    stack[2] = START + 4;
    assert_int_equal(run(), UNWIND_COMPLETE);
    assert_int_equal(count, 3);
    assert_int_equal(cfas[0], STACK + 8);
}

/* Where the instructions lead is no place behind a call: frame pointers are better. */
static void a_rule_by_code_that_leads_nowhere_gives_way_to_frame_pointers(void **state)
{
    (void)state;
    static const uint64_t BAD[] = {KERNEL + 10, 0x1234, 0};
    for (size_t i = 0; i < COUNT(BAD); i++) {
        sample.cpu.pc = KERNEL + 4;
        stack[1] = BAD[i];
        sample.cpu.registers[RBP] = STACK + 4 * 8;
        stack[4] = 0;
        stack[5] = START + 4;
        assert_int_equal(run(), UNWIND_COMPLETE);
        assert_int_equal(count, 2);
        assert_int_equal(cfas[0], STACK + 6 * 8);
        sample.cpu.registers[RBP] = 8; /* not up the stack */
        assert_int_equal(run(), UNWIND_BROKEN);
        assert_int_equal(count, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_outermost_function_completes_a_stack),
        cmocka_unit_test(a_return_address_of_0_completes_a_stack),
        cmocka_unit_test(a_saved_frame_pointer_is_restored),
        cmocka_unit_test(a_register_that_was_popped_is_the_live_one),
        cmocka_unit_test(a_register_that_the_cfa_rests_on_was_not_popped),
        cmocka_unit_test(the_cfa_may_rest_on_rbx),
        cmocka_unit_test(a_return_address_may_be_in_a_register),
        cmocka_unit_test(a_callers_return_address_is_in_no_register),
        cmocka_unit_test(every_frame_has_its_place_on_the_stack),
        cmocka_unit_test(the_place_is_known_where_the_return_address_is_not),
        cmocka_unit_test(places_on_the_stack_are_optional),
        cmocka_unit_test(a_copy_may_end_behind_any_word),
        cmocka_unit_test(a_handler_may_have_a_stack_of_its_own),
        cmocka_unit_test(an_interrupted_frame_keeps_its_address),
        cmocka_unit_test(a_sample_inside_of_sigreturn_is_a_signal_frame),
        cmocka_unit_test(generated_code_is_followed_by_frame_pointers),
        cmocka_unit_test(a_frame_pointer_that_is_none_breaks_a_stack),
        cmocka_unit_test(a_copy_that_is_too_short_is_truncated),
        cmocka_unit_test(behind_a_whole_stack_there_is_nothing_to_truncate),
        cmocka_unit_test(an_address_that_is_no_code_breaks_a_stack),
        cmocka_unit_test(a_stack_that_does_not_go_up_is_broken),
        cmocka_unit_test(room_for_pcs_is_respected),
        cmocka_unit_test(addresses_are_asked_for_once_until_forgotten),
        cmocka_unit_test(perfs_registers_become_dwarfs),
        cmocka_unit_test(other_machines_are_refused),
        cmocka_unit_test(code_without_a_table_is_followed),
        cmocka_unit_test(rules_may_be_forgotten_while_they_are_used),
        cmocka_unit_test(interrupted_code_without_a_table_is_followed),
        cmocka_unit_test(a_rule_by_code_that_leads_nowhere_gives_way_to_frame_pointers),
        cmocka_unit_test(random_stacks_are_survived),
    };
    struct CMUnitTest with_set_up[COUNT(tests)];
    for (size_t i = 0; i < COUNT(tests); i++) {
        with_set_up[i] = tests[i];
        with_set_up[i].setup_func = set_up;
        with_set_up[i].teardown_func = tear_down;
    }
    return cmocka_run_group_tests(with_set_up, NULL, NULL);
}
