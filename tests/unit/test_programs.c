#include "record/programs.h"

#include "unit.h"

static struct programs programs;
static const struct programs_process FIRST = {.pid_namespace = 1, .pid = 10};
static const struct programs_process SECOND = {.pid_namespace = 1, .pid = 11};
static const struct programs_process ELSEWHERE = {.pid_namespace = 2, .pid = 10};

static int end(void **state)
{
    (void)state;
    programs_done(&programs);
    return 0;
}

static void start(struct programs_process process, uint64_t time_ns, const char *name)
{
    programs_start(&programs, process, time_ns, name, strlen(name));
}

static void assert_missing(size_t number, const char *name, size_t count)
{
    assert_true(number + 1 >= 1 && number + 1 <= programs.missing.count);
    assert_string_equal(programs.missing.items[number].name, name);
    assert_int_equal(programs.missing.items[number].count, count);
}

static void program_with_a_ring_is_not_missing(void **state)
{
    (void)state;
    start(FIRST, 100, "a");
    programs_record(&programs, FIRST, 101);
    programs_record(&programs, SECOND, 201); /* heard of before its start */
    start(SECOND, 200, "b");
    programs_finish(&programs);
    assert_int_equal(programs.missing.count, 0);
}

static void program_without_a_ring_is_missing(void **state)
{
    (void)state;
    programs_record(&programs, FIRST, 50); /* what it was before */
    start(FIRST, 100, "a");
    start(SECOND, 100, "a");
    start(ELSEWHERE, 100, "b");
    programs_finish(&programs);
    assert_int_equal(programs.missing.count, 2);
    assert_missing(0, "a", 2);
    assert_missing(1, "b", 1);
}

static void program_that_could_not_be_started_is_not_missing(void **state)
{
    (void)state;
    start(FIRST, 100, "a");
    start(FIRST, 101, "");
    programs_finish(&programs);
    assert_int_equal(programs.missing.count, 0);
}

static void namespaces_have_numbers_of_their_own(void **state)
{
    (void)state;
    start(FIRST, 100, "a");
    programs_record(&programs, ELSEWHERE, 101);
    programs_finish(&programs);
    assert_int_equal(programs.missing.count, 1);
    assert_missing(0, "a", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(program_with_a_ring_is_not_missing, end),
        cmocka_unit_test_teardown(program_without_a_ring_is_missing, end),
        cmocka_unit_test_teardown(program_that_could_not_be_started_is_not_missing, end),
        cmocka_unit_test_teardown(namespaces_have_numbers_of_their_own, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
