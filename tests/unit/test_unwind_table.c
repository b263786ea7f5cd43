/* Call frame information becomes a table: what instructions mean, what is left out, what is
 * survived. */
#include "unwind/unwind_table.h"

#include "cfi_sample.h"
#include "failing_malloc.h"

#include <errno.h>

enum { RBX = 3, RBP = 6, RSP = 7, R10 = 10 };

static struct cfi_sample sample;
static struct unwind_table table;

static int set_up(void **state)
{
    (void)state;
    sample = (struct cfi_sample){0};
    table = (struct unwind_table){0};
    cfi_sample_cie(&sample, "zR");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unwind_table_done(&table);
    return 0;
}

static const struct unwind_rule *rule_at(uint64_t svma)
{
    const struct unwind_rule *rule = unwind_table_find(&table, svma);
    assert_non_null(rule);
    return rule;
}

static void assert_cfa(uint64_t svma, uint8_t number, int32_t offset)
{
    assert_int_equal(rule_at(svma)->cfa, UNWIND_CFA_REGISTER);
    assert_int_equal(rule_at(svma)->cfa_number, number);
    assert_int_equal(rule_at(svma)->cfa_offset, offset);
}

static void a_frame_pointer_function_has_four_rules(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 32, CFI_SAMPLE_FRAME_POINTER);
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_cfa(0x100, RSP, 8);
    assert_cfa(0x101, RSP, 16);
    assert_cfa(0x103, RSP, 16);
    assert_cfa(0x104, RBP, 16);
    assert_cfa(0x11e, RBP, 16);
    assert_cfa(0x11f, RSP, 8);
    assert_int_equal(rule_at(0x100)->place_count, 0);
    assert_int_equal(rule_at(0x104)->place_count, 1);
    assert_int_equal(rule_at(0x104)->places[0].target, RBP);
    assert_int_equal(rule_at(0x104)->places[0].offset, -16);
    assert_int_equal(rule_at(0x104)->return_address.offset, -8);
    assert_int_equal(table.damaged, 0);
}

static void outside_of_functions_there_is_no_rule(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 32, "");
    CFI_SAMPLE_FDE(&sample, 0x200, 32, "");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_null(unwind_table_find(&table, 0xff));
    assert_non_null(unwind_table_find(&table, 0x11f));
    assert_null(unwind_table_find(&table, 0x120));
    assert_null(unwind_table_find(&table, 0x1ff));
    assert_non_null(unwind_table_find(&table, 0x200));
    assert_null(unwind_table_find(&table, 0x220));
    assert_null(unwind_table_find(&table, UINT64_MAX));
}

static void functions_may_come_in_any_order_and_share_rules(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x300, 32, CFI_SAMPLE_FRAME_POINTER);
    CFI_SAMPLE_FDE(&sample, 0x100, 32, CFI_SAMPLE_FRAME_POINTER);
    CFI_SAMPLE_FDE(&sample, 0x200, 32, CFI_SAMPLE_FRAME_POINTER);
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_cfa(0x110, RBP, 16);
    assert_cfa(0x210, RBP, 16);
    assert_cfa(0x310, RBP, 16);
    assert_int_equal(table.rules.count, 4);
}

static void a_function_that_overlaps_the_next_is_cut(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 0x40, "\x42\x0e\x20");
    CFI_SAMPLE_FDE(&sample, 0x120, 0x40, "\x42\x0e\x30");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_cfa(0x11f, RSP, 0x20);
    assert_cfa(0x120, RSP, 8);
    assert_cfa(0x122, RSP, 0x30);
}

static void a_remembered_state_comes_back(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 32,
                   "\x41\x0e\x10"     /* +1: 16 */
                   "\x41\x0a\x0e\x08" /* +1: remember; 8 */
                   "\x41\x0b");       /* +1: as remembered */
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_cfa(0x102, RSP, 8);
    assert_cfa(0x103, RSP, 16);
}

static void an_expression_is_kept(void **state)
{
    (void)state;
    /* def_cfa_expression: rsp + 8 + ((rip & 15) >= 11) * 8 */
    CFI_SAMPLE_FDE(&sample, 0x100, 64,
                   "\x0e\x10\x46\x0e\x18\x4a\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_cfa(0x100, RSP, 16);
    assert_cfa(0x106, RSP, 24);
    const struct unwind_rule *rule = rule_at(0x110);
    assert_int_equal(rule->cfa, UNWIND_CFA_EXPRESSION);
    assert_int_equal(rule->expression_bytes, 11);
    assert_memory_equal(rule->expression, "\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", 11);
}

static void a_realigned_stack_is_recognised(void **state)
{
    (void)state;
    /* def_cfa r10 + 0; then CFA = *(rbp - 8), rbp at rbp + 0 */
    CFI_SAMPLE_FDE(&sample, 0x100, 64, "\x0c\x0a\x00\x44\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_cfa(0x100, R10, 0);
    const struct unwind_rule *rule = rule_at(0x104);
    assert_int_equal(rule->cfa, UNWIND_CFA_MEMORY);
    assert_int_equal(rule->cfa_number, RBP);
    assert_int_equal(rule->cfa_offset, -8);
    assert_int_equal(rule->places[0].kind, UNWIND_AT);
    assert_int_equal(rule->places[0].number, RBP);
}

static void the_outermost_function_has_no_return_address(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 64, "\x07\x10");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_int_equal(rule_at(0x100)->return_address.kind, UNWIND_UNDEFINED);
}

static void signal_frames_are_marked(void **state)
{
    (void)state;
    cfi_sample_cie(&sample, "zRS");
    CFI_SAMPLE_FDE(&sample, 0x100, 16, "");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_true(rule_at(0x100)->is_signal);
}

static void what_is_not_in_the_code_is_left_out(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 16, "");
    CFI_SAMPLE_FDE(&sample, 0x2000, 16, "");
    CFI_SAMPLE_FDE(&sample, UINT64_MAX - 4, 16, "");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_non_null(unwind_table_find(&table, 0x100));
    assert_null(unwind_table_find(&table, 0x2000));
    assert_null(unwind_table_find(&table, UINT64_MAX - 4));
}

static void damaged_functions_are_counted_when_they_are_met_and_the_others_kept(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 16, "\x3f");                 /* no such instruction */
    CFI_SAMPLE_FDE(&sample, 0x200, 16, "\x0b");                 /* nothing was remembered */
    CFI_SAMPLE_FDE(&sample, 0x300, 16, "\x04\xff\xff\xff\xff"); /* far behind the end */
    CFI_SAMPLE_FDE(&sample, 0x400, 16, "");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    assert_int_equal(table.damaged, 0);
    for (int i = 0; i < 2; i++) {
        assert_null(unwind_table_find(&table, 0x100));
        assert_null(unwind_table_find(&table, 0x200));
        assert_null(unwind_table_find(&table, 0x300));
        assert_non_null(unwind_table_find(&table, 0x400));
    }
    assert_int_equal(table.damaged, 3);
}

/* perf's layout: .eh_frame behind the code. This one counts from its own start instead. */
static void functions_that_count_from_elsewhere_start_with_the_code(void **state)
{
    (void)state;
    sample = (struct cfi_sample){0};
    cfi_sample_cie(&sample, "zR");
    sample.bytes[16] = 0x1b; /* pcrel, sdata4 */
    size_t start = sample.length;
    cfi_sample_u32(&sample, 0);
    cfi_sample_u32(&sample, (uint32_t)sample.length);
    cfi_sample_u32(&sample, 0x500); /* behind the code */
    cfi_sample_u32(&sample, 0x20);
    cfi_sample_put(&sample, "\x00", 1);
    cfi_sample_close(&sample, start);
    assert_int_equal(cfi_sample_table(&sample, 0x20, &table), 0);
    assert_non_null(unwind_table_find(&table, 0));
    assert_non_null(unwind_table_find(&table, 0x1f));
}

static void other_machines_are_refused(void **state)
{
    (void)state;
    struct unwind_jit jit = {.data = sample.bytes, .size = sample.length, .code_size = 16};
    assert_int_equal(unwind_table_init_jit(&table, EM_MIPS, &jit), -ENOTSUP);
}

static void memory_that_runs_short_is_reported(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++)
        CFI_SAMPLE_FDE(&sample, 0x100 + (uint64_t)(30 - i) * 0x40, 32, CFI_SAMPLE_FRAME_POINTER);
    struct unwind_jit jit = {.data = sample.bytes, .size = sample.length, .code_size = 0x1000};
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = unwind_table_init_jit(&table, EM_X86_64, &jit);
        if (!failing_malloc_stop()) {
            assert_int_equal(result, 0);
            unwind_table_done(&table);
            break;
        }
        /* qsort needs none of the memory that it would like to have. */
        if (result == 0)
            unwind_table_done(&table);
        else
            assert_int_equal(result, -ENOMEM);
    }
}

static void a_rule_that_memory_was_short_for_is_there_later(void **state)
{
    (void)state;
    for (int i = 0; i < 30; i++)
        CFI_SAMPLE_FDE(&sample, 0x100 + (uint64_t)i * 0x40, 32, CFI_SAMPLE_FRAME_POINTER);
    bool is_over = false;
    for (long n = 0; !is_over; n++) {
        assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
        failing_malloc_after(n);
        for (uint64_t svma = 0x104; svma < 0x880; svma += 0x40)
            (void)unwind_table_find(&table, svma);
        is_over = !failing_malloc_stop();
        for (uint64_t svma = 0x104; svma < 0x880; svma += 0x40)
            assert_cfa(svma, RBP, 16);
        unwind_table_done(&table);
    }
}

static void rules_stay_where_they_are(void **state)
{
    (void)state;
    for (uint8_t i = 0; i < 100; i++) {
        uint8_t instructions[] = {0x0e, (uint8_t)(8 + i)}; /* CFA = rsp + 8 + i */
        cfi_sample_fde(&sample, 0x100 + i * 0x10u, 16, instructions, sizeof instructions);
    }
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    const struct unwind_rule *first = rule_at(0x100);
    struct unwind_rule before = *first;
    for (unsigned i = 1; i < 100; i++)
        assert_cfa(0x100 + i * 0x10, RSP, 8 + (int32_t)i);
    assert_ptr_equal(rule_at(0x100), first);
    assert_memory_equal(first, &before, sizeof before);
}

static void only_what_is_asked_for_is_run(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        CFI_SAMPLE_FDE(&sample, 0x100 + i * 0x40, 32, CFI_SAMPLE_FRAME_POINTER);
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    for (int i = 0; i < 3; i++)
        assert_cfa(0x144, RBP, 16);
    assert_int_equal(table.sections[0].functions.count, 1);
}

static void a_function_is_found_by_any_address_in_it(void **state)
{
    (void)state;
    CFI_SAMPLE_FDE(&sample, 0x100, 0x40, "");
    CFI_SAMPLE_FDE(&sample, 0x120, 0x20, "");
    assert_int_equal(cfi_sample_table(&sample, 0x1000, &table), 0);
    struct cfi_range range;
    assert_true(unwind_table_function(&table, 0x11f, &range));
    assert_int_equal(range.start_svma, 0x100);
    assert_int_equal(range.end_svma, 0x120);
    assert_true(unwind_table_function(&table, 0x120, &range));
    assert_int_equal(range.end_svma, 0x140);
    assert_false(unwind_table_function(&table, 0x140, &range));
}

/* The test program has its own frame information, made by a real compiler. */
static void a_real_file_has_rules_for_its_own_functions(void **state)
{
    (void)state;
    struct elf_object *self;
    assert_int_equal(elf_object_open("/proc/self/exe", &self), 0);
    assert_int_equal(unwind_table_init(&table, self, NULL), 0);
    Elf64_Ehdr header = self->elf.header;
    struct cfi_range range;
    assert_non_null(unwind_table_find(&table, header.e_entry));
    assert_true(unwind_table_function(&table, header.e_entry, &range));
    assert_int_equal(range.start_svma, header.e_entry);
    assert_true(table.sections[0].is_by_header);
    assert_true(table.sections[0].index.entries.count > 100);
    assert_int_equal(table.damaged, 0);
    unwind_table_done(&table);
    elf_object_close(self);
}

/* The same object three times: .debug_frame as it is, by zlib, by zstd. */
static void compressed_frame_information_is_the_same(void **state)
{
    (void)state;
    struct elf_object *plain, *object;
    assert_int_equal(elf_object_open(TEST_DATA "/elf/debug_frame.so", &plain), 0);
    assert_int_equal(unwind_table_init(&table, plain, NULL), 0);
    static const char *const COMPRESSED[] = {
        TEST_DATA "/elf/debug_frame_zstd.so",
        TEST_DATA "/elf/debug_frame_zlib.so",
    };
    for (size_t i = 0; i < COUNT(COMPRESSED); i++) {
        struct unwind_table other;
        assert_int_equal(elf_object_open(COMPRESSED[i], &object), 0);
        assert_int_equal(unwind_table_init(&other, object, NULL), 0);
        struct cfi_range code = other.code.ranges[0];
        size_t rules = 0;
        for (uint64_t svma = code.start_svma; svma < code.end_svma; svma++) {
            const struct unwind_rule *rule = unwind_table_find(&table, svma);
            const struct unwind_rule *same = unwind_table_find(&other, svma);
            assert_int_equal(!rule, !same);
            if (rule)
                assert_memory_equal(rule, same, sizeof *rule);
            rules += rule != NULL;
        }
        assert_true(rules > 2);
        assert_true(other.sections[1].functions.count > 0);
        assert_int_equal(other.damaged, 0);
        unwind_table_done(&other);
        elf_object_close(object);
    }
    unwind_table_done(&table);
    elf_object_close(plain);
}

/* The functions of the object, and what counts of them:
 *
 *     .eh_frame                  0x22c-0x22f            0x26f-0x272
 *     .debug_frame       0x224------------------0x260
 *                                        0x238------------------------0x29c    0x292------0x2f7
 *     counts             ddddddddeee.....ddddddddddddddddeee..........dddddddddddddddd
 */
static void debug_frame_has_what_eh_frame_does_not(void **state)
{
    (void)state;
    static const struct {
        uint64_t first, last;
        int32_t cfa_offset; /* 0: no rule */
    } EXPECTED[] = {
        {0x21c, 0x223, 0},  {0x224, 0x22b, 80}, {0x22c, 0x22e, 32}, {0x22f, 0x237, 0},
        {0x238, 0x26e, 88}, {0x26f, 0x26f, 8},  {0x270, 0x271, 48}, {0x272, 0x291, 0},
        {0x292, 0x292, 8},  {0x293, 0x2f6, 64}, {0x2f7, 0x2fd, 0},
    };
    struct elf_object *object;
    assert_int_equal(elf_object_open(TEST_DATA "/elf/both_frames.so", &object), 0);
    assert_int_equal(unwind_table_init(&table, object, NULL), 0);
    for (size_t i = 0; i < COUNT(EXPECTED); i++) {
        for (uint64_t svma = EXPECTED[i].first; svma <= EXPECTED[i].last; svma++) {
            if (EXPECTED[i].cfa_offset)
                assert_cfa(svma, RSP, EXPECTED[i].cfa_offset);
            else
                assert_null(unwind_table_find(&table, svma));
        }
    }
    unwind_table_done(&table);
    elf_object_close(object);
}

/* cmocka's own set-up is per test only where it is named; a test's name must stand alone for
 * pytest. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_frame_pointer_function_has_four_rules),
        cmocka_unit_test(outside_of_functions_there_is_no_rule),
        cmocka_unit_test(functions_may_come_in_any_order_and_share_rules),
        cmocka_unit_test(a_function_that_overlaps_the_next_is_cut),
        cmocka_unit_test(a_remembered_state_comes_back),
        cmocka_unit_test(an_expression_is_kept),
        cmocka_unit_test(a_realigned_stack_is_recognised),
        cmocka_unit_test(the_outermost_function_has_no_return_address),
        cmocka_unit_test(signal_frames_are_marked),
        cmocka_unit_test(what_is_not_in_the_code_is_left_out),
        cmocka_unit_test(damaged_functions_are_counted_when_they_are_met_and_the_others_kept),
        cmocka_unit_test(functions_that_count_from_elsewhere_start_with_the_code),
        cmocka_unit_test(other_machines_are_refused),
        cmocka_unit_test(memory_that_runs_short_is_reported),
        cmocka_unit_test(a_rule_that_memory_was_short_for_is_there_later),
        cmocka_unit_test(rules_stay_where_they_are),
        cmocka_unit_test(only_what_is_asked_for_is_run),
        cmocka_unit_test(a_function_is_found_by_any_address_in_it),
        cmocka_unit_test(a_real_file_has_rules_for_its_own_functions),
        cmocka_unit_test(compressed_frame_information_is_the_same),
        cmocka_unit_test(debug_frame_has_what_eh_frame_does_not),
    };
    struct CMUnitTest with_set_up[COUNT(tests)];
    for (size_t i = 0; i < COUNT(tests); i++) {
        with_set_up[i] = tests[i];
        with_set_up[i].setup_func = set_up;
        with_set_up[i].teardown_func = tear_down;
    }
    return cmocka_run_group_tests(with_set_up, NULL, NULL);
}
