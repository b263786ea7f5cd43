/* The account for time that no sample of its own thread stands for. */
#include "interp/sample_rest.h"

#include "base/clock.h"
#include "unit.h"

enum { PERIOD_NS = 1000000 };

/* A thread that has so much time left. */
static void leave(int64_t left_ns)
{
    struct sample_thread thread = {.accounted_ns =
                                       clock_ns(CLOCK_THREAD_CPUTIME_ID) - (uint64_t)left_ns};
    sample_rest_leave(&thread, PERIOD_NS);
}

static int set_up(void **state)
{
    (void)state;
    sample_rest_start();
    return 0;
}

/* What it takes to read the clock comes on top. */
static void assert_about(uint64_t ns, uint64_t expected_ns)
{
    assert_true(ns >= expected_ns && ns <= expected_ns + PERIOD_NS);
}

static void test_nothing_is_left_at_first(void **state)
{
    (void)state;
    assert_int_equal(sample_rest_take(PERIOD_NS), 0);
}

static void test_what_threads_leave_adds_up_and_is_taken_once(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        leave(PERIOD_NS * 4 / 10);
    assert_about(sample_rest_take(PERIOD_NS), PERIOD_NS * 4);
    assert_int_equal(sample_rest_take(PERIOD_NS), 0);
}

static void test_less_than_half_a_period_is_kept(void **state)
{
    (void)state;
    leave(PERIOD_NS / 5);
    assert_int_equal(sample_rest_take(PERIOD_NS), 0);
    leave(PERIOD_NS / 2);
    assert_about(sample_rest_take(PERIOD_NS), PERIOD_NS * 7 / 10);
}

static void test_threads_whose_samples_stand_for_more_are_made_up_for(void **state)
{
    (void)state;
    leave(-10 * PERIOD_NS);
    leave(9 * PERIOD_NS);
    assert_int_equal(sample_rest_take(PERIOD_NS), 0);
    leave(3 * PERIOD_NS);
    assert_about(sample_rest_take(PERIOD_NS), 2 * PERIOD_NS);
}

static void test_time_of_long_ago_is_nobody_elses(void **state)
{
    (void)state;
    leave((int64_t)1000 * PERIOD_NS);
    assert_int_equal(sample_rest_take(PERIOD_NS), 0);
}

static void test_samples_that_were_owed_are_left_too_and_only_once(void **state)
{
    (void)state;
    struct sample_thread thread = {.accounted_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID),
                                   .owed_ns = 3 * PERIOD_NS};
    sample_rest_leave(&thread, PERIOD_NS);
    assert_about(sample_rest_take(PERIOD_NS), 3 * PERIOD_NS);
    sample_rest_leave(&thread, PERIOD_NS);
    assert_int_equal(sample_rest_take(PERIOD_NS), 0);
}

static void test_one_sample_does_not_stand_for_everything(void **state)
{
    (void)state;
    uint64_t taken, sum = 0;
    for (int i = 0; i < 50; i++)
        leave(PERIOD_NS);
    while ((taken = sample_rest_take(PERIOD_NS)) > 0) {
        assert_true(taken >= 1 && taken <= 12 * PERIOD_NS);
        sum += taken;
    }
    assert_about(sum, 50 * PERIOD_NS - PERIOD_NS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_nothing_is_left_at_first, set_up),
        cmocka_unit_test_setup(test_what_threads_leave_adds_up_and_is_taken_once, set_up),
        cmocka_unit_test_setup(test_less_than_half_a_period_is_kept, set_up),
        cmocka_unit_test_setup(test_threads_whose_samples_stand_for_more_are_made_up_for, set_up),
        cmocka_unit_test_setup(test_time_of_long_ago_is_nobody_elses, set_up),
        cmocka_unit_test_setup(test_one_sample_does_not_stand_for_everything, set_up),
        cmocka_unit_test_setup(test_samples_that_were_owed_are_left_too_and_only_once, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
