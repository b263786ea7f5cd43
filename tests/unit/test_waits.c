#include "report/waits.h"

#include "profile_builder.h"
#include "unit.h"

static struct profile *profile;
static uint32_t python, libc, jit;

static int begin(void **state)
{
    (void)state;
    profile = build_profile();
    python = build_module(profile, "libpython3.13.so", PROFILE_MODULE_INTERPRETER);
    libc = build_module(profile, "libc.so.6", PROFILE_MODULE_LIBC);
    jit = build_module(profile, "python.code", PROFILE_MODULE_PYTHON);
    return 0;
}

static int end(void **state)
{
    (void)state;
    free_profile(profile);
    return 0;
}

/* What a thread waits for that is in these functions, outermost first: "module:function". */
static enum wait_kind wait_in(const char *const *chain, size_t count)
{
    const struct profile_function *caller = NULL;
    enum wait_kind kind = WAIT_OTHER;
    static uint64_t start;
    uint32_t frames[8];
    for (size_t i = 0; i < count; i++) {
        uint32_t module = chain[i][0] == 'P' ? python : chain[i][0] == 'C' ? libc : jit;
        frames[i] = build_frame(profile, module, chain[i] + 2, start += 0x100);
    }
    for (size_t i = 0; i < count; i++) { /* now the table does not move any more */
        const struct profile_function *function =
            &profile->functions.items[profile->frames.items[frames[i]].function];
        kind = waits_in(profile, function, caller, kind);
        caller = function;
    }
    return kind;
}

#define WAIT_IN(...)                                                                               \
    wait_in((const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__})))

static void functions_of_the_c_library_tell(void **state)
{
    (void)state;
    assert_int_equal(WAIT_IN("J:py::f:/a.py", "P:os_read", "C:read"), WAIT_FILE);
    assert_int_equal(WAIT_IN("J:py::f:/a.py", "P:sock_recv_impl", "C:__libc_recv"), WAIT_NETWORK);
    assert_int_equal(WAIT_IN("P:x", "C:__GI___wait4"), WAIT_PROCESS);
    assert_int_equal(WAIT_IN("P:x", "C:epoll_wait"), WAIT_READY);
    assert_int_equal(WAIT_IN("P:x", "C:clock_nanosleep@@GLIBC_2.17"), WAIT_SLEEP);
    assert_int_equal(WAIT_IN("P:x", "C:sem_clockwait", "C:__futex_abstimed_wait_common64"),
                     WAIT_LOCK);
}

static void names_are_whole_words(void **state)
{
    (void)state;
    assert_int_equal(WAIT_IN("P:x", "C:rea"), WAIT_OTHER);
    assert_int_equal(WAIT_IN("P:x", "C:reader"), WAIT_OTHER);
    assert_int_equal(WAIT_IN("P:x", "C:"), WAIT_OTHER);
    assert_int_equal(WAIT_IN("P:x", "C:___"), WAIT_OTHER);
}

static void a_condition_of_the_interpreter_is_the_gil(void **state)
{
    (void)state;
    assert_int_equal(WAIT_IN("P:take_gil", "C:pthread_cond_timedwait"), WAIT_GIL);
    assert_int_equal(
        WAIT_IN("P:x", "C:___pthread_cond_timedwait64", "C:__futex_abstimed_wait_common"),
        WAIT_GIL);
    assert_int_equal(WAIT_IN("C:somebody", "C:pthread_cond_wait"), WAIT_LOCK);
}

static void a_sleep_is_one_however_it_is_made(void **state)
{
    (void)state;
    assert_int_equal(WAIT_IN("J:py::f:/a.py", "P:time_sleep", "C:select"), WAIT_SLEEP);
}

static void a_python_function_starts_anew(void **state)
{
    (void)state;
    assert_int_equal(WAIT_IN("C:poll", "J:py::callback:/a.py", "P:list_sort"), WAIT_CPU);
}

static void code_that_makes_no_calls_waits_for_a_processor(void **state)
{
    (void)state;
    assert_int_equal(WAIT_IN("J:py::f:/a.py", "P:_PyEval_EvalFrameDefault"), WAIT_CPU);
    assert_int_equal(WAIT_IN("J:py::f:/a.py", "P:bytes_new", "C:some_call"), WAIT_OTHER);
}

static void a_signal_ends_only_what_the_kernel_does_not_repeat(void **state)
{
    (void)state;
    static const enum wait_kind ended[] = {WAIT_SLEEP, WAIT_LOCK, WAIT_READY};
    static const enum wait_kind others[] = {WAIT_OTHER,   WAIT_CPU,  WAIT_GIL,
                                            WAIT_NETWORK, WAIT_FILE, WAIT_PROCESS};
    assert_int_equal(COUNT(ended) + COUNT(others), WAIT_KINDS);
    for (size_t i = 0; i < COUNT(ended); i++)
        assert_true(waits_end_by_signal(ended[i]));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(waits_end_by_signal(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(functions_of_the_c_library_tell, begin, end),
        cmocka_unit_test_setup_teardown(names_are_whole_words, begin, end),
        cmocka_unit_test_setup_teardown(a_condition_of_the_interpreter_is_the_gil, begin, end),
        cmocka_unit_test_setup_teardown(a_sleep_is_one_however_it_is_made, begin, end),
        cmocka_unit_test_setup_teardown(a_python_function_starts_anew, begin, end),
        cmocka_unit_test_setup_teardown(code_that_makes_no_calls_waits_for_a_processor, begin, end),
        cmocka_unit_test_setup_teardown(a_signal_ends_only_what_the_kernel_does_not_repeat, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
