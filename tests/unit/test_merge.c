#include "record/merge.h"

#include "formats/sample_ring.h"
#include "unit.h"

/* A C stack: functions of 0x100 bytes of stack each, the innermost at 0x1000. Code of the evaluator
 * is at 0xe00 to 0xeff, other code elsewhere. Python frames are 0x9001, 0x9002, ... */
enum { STACK = 0x1000, FRAME = 0x100, EVALUATOR = 0xe00 };

static uint64_t pcs[16], cfas[16], frames[32], entries[64];
static uint32_t evaluators[COUNT(pcs)];
static struct merge_range evaluator = {EVALUATOR, EVALUATOR + 0x100};
static struct merge_stacks stacks;
static struct merge_result result;
static uint64_t learned[8];
static size_t learned_count;

static void on_evaluator(void *context, uint64_t pc_avma)
{
    (void)context;
    learned[learned_count++] = pc_avma;
}

static void begin(void)
{
    stacks = (struct merge_stacks){.pcs = pcs,
                                   .cfas = cfas,
                                   .stack_avma = STACK,
                                   .is_complete = true,
                                   .frames = frames,
                                   .evaluators = &evaluator,
                                   .evaluator_count = 1};
    result = (struct merge_result){.entries = entries,
                                   .capacity = COUNT(entries),
                                   .evaluators = evaluators,
                                   .on_evaluator = on_evaluator};
    learned_count = 0;
}

static void native(uint64_t pc)
{
    pcs[stacks.count] = pc;
    cfas[stacks.count] = STACK + FRAME * (stacks.count + 1);
    stacks.count++;
}

static void python(uint64_t frame)
{
    frames[stacks.frame_count++] = frame;
}

/* A border in the part of the stack of C function `number`. */
static void border(size_t number)
{
    python(SAMPLE_FRAME_BORDER | (STACK + FRAME * number + 0x40));
}

static void unknown_border(void)
{
    python(SAMPLE_FRAME_BORDER);
}

static void assert_entries(const uint64_t *wanted, size_t count)
{
    assert_int_equal(result.count, count);
    assert_memory_equal(entries, wanted, count * sizeof *wanted);
}

#define assert_merged(...)                                                                         \
    assert_entries((const uint64_t[]){__VA_ARGS__}, COUNT(((const uint64_t[]){__VA_ARGS__})))

static void test_python_stands_behind_its_evaluator(void **state)
{
    (void)state;
    begin();
    native(0x100);
    native(EVALUATOR);
    native(0x200);
    python(0x9001);
    border(1);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(0x100, EVALUATOR, 0x9001, 0x200);
    assert_int_equal(learned_count, 1);
    assert_int_equal(learned[0], EVALUATOR);
}

static void test_one_evaluator_runs_several_functions(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    native(EVALUATOR + 1);
    native(0x300);
    python(0x9001);
    python(0x9002);
    python(0x9003);
    border(0);
    python(0x9004);
    border(2);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(EVALUATOR, 0x9001, 0x9002, 0x9003, 0x200, EVALUATOR + 1, 0x9004, 0x300);
}

static void test_addresses_decide_where_no_code_is_known(void **state)
{
    (void)state;
    begin();
    stacks.evaluator_count = 0;
    native(0x100);
    native(0x200);
    python(0x9001);
    border(1);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(0x100, 0x200, 0x9001);
}

static void test_an_evaluator_that_starts_has_no_python(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    native(EVALUATOR + 1);
    python(0x9001);
    border(2);
    assert_int_equal(merge(&stacks, &result), MERGE_STARTING);
    assert_merged(EVALUATOR, 0x200, EVALUATOR + 1, 0x9001);
}

static void test_trampolines_are_left_out_behind_their_functions(void **state)
{
    (void)state;
    enum { TRAMPOLINE = 0x700 };
    static const struct merge_range generated = {TRAMPOLINE, TRAMPOLINE + 0x100};
    begin();
    stacks.trampolines = &generated;
    stacks.trampoline_count = 1;
    native(TRAMPOLINE); /* interrupted in it */
    native(EVALUATOR);
    native(TRAMPOLINE + 1);
    native(0x200);
    native(TRAMPOLINE + 2); /* somebody else's */
    native(EVALUATOR + 1);
    native(TRAMPOLINE + 3);
    python(0x9001);
    border(1);
    python(0x9002);
    border(5);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(TRAMPOLINE, EVALUATOR, 0x9001, 0x200, TRAMPOLINE + 2, EVALUATOR + 1, 0x9002);
}

static void test_borders_without_address_are_counted_by_code(void **state)
{
    (void)state;
    begin();
    native(0x100);
    native(EVALUATOR);
    native(0x200);
    native(EVALUATOR + 1);
    native(0x300);
    python(0x9001);
    unknown_border();
    python(0x9002);
    unknown_border();
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(0x100, EVALUATOR, 0x9001, 0x200, EVALUATOR + 1, 0x9002, 0x300);
    assert_int_equal(learned_count, 0);
}

static void test_without_addresses_the_innermost_may_be_starting(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    native(EVALUATOR + 1);
    native(0x300);
    python(0x9001);
    unknown_border();
    assert_int_equal(merge(&stacks, &result), MERGE_STARTING);
    assert_merged(EVALUATOR, 0x200, EVALUATOR + 1, 0x9001, 0x300);
}

static void test_python_behind_a_cut_stack_comes_last(void **state)
{
    (void)state;
    begin();
    stacks.is_complete = false;
    native(EVALUATOR);
    native(0x200);
    cfas[1] = 0; /* where unwinding broke off */
    python(0x9001);
    border(0);
    python(0x9002);
    border(5);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(EVALUATOR, 0x9001, 0x200, 0x9002);
}

static void test_a_border_in_no_frame_is_unmatched(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    python(0x9001);
    python(SAMPLE_FRAME_BORDER | (STACK - 8));
    assert_int_equal(merge(&stacks, &result), MERGE_UNMATCHED);
    assert_merged(0x9001, EVALUATOR, 0x200);
}

static void test_two_groups_in_one_frame_are_unmatched(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    python(0x9001);
    border(0);
    python(0x9002);
    border(0);
    assert_int_equal(merge(&stacks, &result), MERGE_UNMATCHED);
    assert_merged(EVALUATOR, 0x9001, 0x9002, 0x200);
}

static void test_two_evaluators_too_many_are_unmatched(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(EVALUATOR + 1);
    native(0x200);
    assert_int_equal(merge(&stacks, &result), MERGE_UNMATCHED);
    assert_merged(EVALUATOR, EVALUATOR + 1, 0x200);
}

static void test_the_rest_of_a_cut_chain_goes_to_the_next_evaluator(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    native(EVALUATOR + 1);
    native(0x300);
    python(0x9001);
    border(0);
    python(0x9002); /* and no border */
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(EVALUATOR, 0x9001, 0x200, EVALUATOR + 1, 0x9002, 0x300);
}

/* A handler on a stack of its own lies anywhere; behind the signal frame the thread's stack goes
 * on. */
static void test_a_signal_stack_lies_elsewhere(void **state)
{
    (void)state;
    begin();
    stacks.stack_avma = 0x8000;
    native(0x100);
    native(0x110);
    native(EVALUATOR);
    native(0x200);
    cfas[0] = 0x8100;
    cfas[1] = 0x1000; /* the signal frame: the interrupted stack pointer */
    cfas[2] = 0x1100;
    cfas[3] = 0x1200;
    python(0x9001);
    python(SAMPLE_FRAME_BORDER | 0x1080);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(0x100, 0x110, EVALUATOR, 0x9001, 0x200);
}

static void test_what_does_not_fit_is_cut(void **state)
{
    (void)state;
    begin();
    result.capacity = 2;
    native(EVALUATOR);
    native(0x200);
    python(0x9001);
    border(0);
    merge(&stacks, &result);
    assert_true(result.is_cut);
    assert_merged(EVALUATOR, 0x9001);
}

static void test_frames_that_are_0_are_not_shown(void **state)
{
    (void)state;
    begin();
    native(EVALUATOR);
    native(0x200);
    python(0);
    python(0x9001);
    python(0);
    border(0);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(EVALUATOR, 0x9001, 0x200);
}

/* Nothing is kept of what is not regular. */
static void test_what_is_regular(void **state)
{
    (void)state;
    begin();
    native(0x100);
    native(EVALUATOR);
    native(0x200);
    python(0x9001);
    border(1);
    merge(&stacks, &result);
    assert_true(result.is_regular);
    assert_int_equal(result.passed, 2);
    assert_int_equal(result.skipped, 0);
    frames[1] = SAMPLE_FRAME_BORDER | (STACK + 8); /* in a function that is not known as one */
    merge(&stacks, &result);
    assert_false(result.is_regular);
    frames[1] = SAMPLE_FRAME_BORDER | (STACK - 8); /* nowhere */
    merge(&stacks, &result);
    assert_false(result.is_regular);
    stacks.frame_count = 1; /* no border */
    merge(&stacks, &result);
    assert_false(result.is_regular);
}

enum { GREENLET = 0x600 };

static void begin_with_greenlets(void)
{
    static const struct merge_range greenlet = {GREENLET, GREENLET + 0x100};
    begin();
    stacks.starters = &greenlet;
    stacks.starter_count = 1;
}

static void test_a_greenlet_ends_where_it_was_started(void **state)
{
    (void)state;
    for (int has_addresses = 0; has_addresses < 2; has_addresses++) {
        begin_with_greenlets();
        stacks.is_complete = false; /* what lies behind was somebody's */
        native(0x100);
        native(EVALUATOR);
        native(GREENLET + 1); /* called by Python: no start */
        native(EVALUATOR + 1);
        native(0x200);
        native(GREENLET + 2);
        native(GREENLET + 3);
        native(EVALUATOR + 2);
        python(0x9001);
        has_addresses ? border(1) : unknown_border();
        python(0x9002);
        has_addresses ? border(3) : unknown_border();
        assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
        assert_merged(0x100, EVALUATOR, 0x9001, GREENLET + 1, EVALUATOR + 1, 0x9002, 0x200,
                      GREENLET + 2);
        assert_true(result.has_starter);
        assert_false(result.is_regular);
    }
}

static void test_a_threads_own_stack_is_no_greenlet(void **state)
{
    (void)state;
    begin_with_greenlets();
    native(GREENLET); /* switches: all is as it was */
    native(EVALUATOR);
    native(0x200);
    python(0x9001);
    border(1);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(GREENLET, EVALUATOR, 0x9001, 0x200);
    assert_false(result.has_starter);
}

/* The C functions of one greenlet, the Python frames of another. */
static void test_while_stacks_are_exchanged_python_comes_last(void **state)
{
    (void)state;
    for (int is_complete = 0; is_complete < 2; is_complete++) {
        begin_with_greenlets();
        stacks.is_complete = is_complete;
        native(0x100);
        native(GREENLET);
        native(GREENLET + 1);
        native(EVALUATOR);
        native(0x200);
        native(EVALUATOR + 1);
        python(0x9001);
        frames[stacks.frame_count++] = SAMPLE_FRAME_BORDER | (STACK - 0x80);
        assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
        assert_merged(0x100, GREENLET, GREENLET + 1, 0x9001);
        assert_true(result.has_starter);
    }
}

/* From 3.12 on, the list of a greenlet that is going to sleep has no borders but the last. */
static void test_while_it_goes_to_sleep_borders_are_missing(void **state)
{
    (void)state;
    begin_with_greenlets();
    native(0x100);
    native(GREENLET);
    for (uint64_t i = 0; i < 3; i++) {
        native(EVALUATOR + i);
        python(0x9001 + i);
    }
    native(GREENLET + 1);
    border(4);
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_merged(0x100, GREENLET, 0x9001, 0x9002, 0x9003);
}

static void test_nothing_becomes_nothing(void **state)
{
    (void)state;
    begin();
    assert_int_equal(merge(&stacks, &result), MERGE_MATCHED);
    assert_int_equal(result.count, 0);
    assert_false(result.is_cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python_stands_behind_its_evaluator),
        cmocka_unit_test(test_one_evaluator_runs_several_functions),
        cmocka_unit_test(test_addresses_decide_where_no_code_is_known),
        cmocka_unit_test(test_an_evaluator_that_starts_has_no_python),
        cmocka_unit_test(test_trampolines_are_left_out_behind_their_functions),
        cmocka_unit_test(test_borders_without_address_are_counted_by_code),
        cmocka_unit_test(test_without_addresses_the_innermost_may_be_starting),
        cmocka_unit_test(test_python_behind_a_cut_stack_comes_last),
        cmocka_unit_test(test_a_border_in_no_frame_is_unmatched),
        cmocka_unit_test(test_two_groups_in_one_frame_are_unmatched),
        cmocka_unit_test(test_two_evaluators_too_many_are_unmatched),
        cmocka_unit_test(test_the_rest_of_a_cut_chain_goes_to_the_next_evaluator),
        cmocka_unit_test(test_a_signal_stack_lies_elsewhere),
        cmocka_unit_test(test_what_does_not_fit_is_cut),
        cmocka_unit_test(test_frames_that_are_0_are_not_shown),
        cmocka_unit_test(test_what_is_regular),
        cmocka_unit_test(test_a_greenlet_ends_where_it_was_started),
        cmocka_unit_test(test_a_threads_own_stack_is_no_greenlet),
        cmocka_unit_test(test_while_stacks_are_exchanged_python_comes_last),
        cmocka_unit_test(test_while_it_goes_to_sleep_borders_are_missing),
        cmocka_unit_test(test_nothing_becomes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
