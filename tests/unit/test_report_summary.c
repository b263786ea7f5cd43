#include "report/summary.h"

#include "capture.h"
#include "failing_malloc.h"
#include "profile_builder.h"
#include "unit.h"

#define CHAIN(...) (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4

struct program {
    struct profile *profile;
    uint32_t start, eval, module, work, helper, memcpy, extension, syscall, gc;
    uint32_t take_gil, epoll, read;
};

static struct program make_program(void)
{
    struct program p = {.profile = build_profile()};
    uint32_t python = build_module(p.profile, "libpython3.13.so", PROFILE_MODULE_INTERPRETER);
    uint32_t jit = build_module(p.profile, "[JIT] tid 1", PROFILE_MODULE_PYTHON);
    uint32_t libc = build_module(p.profile, "libc.so.6", PROFILE_MODULE_LIBC);
    uint32_t json = build_module(p.profile, "_json.so", PROFILE_MODULE_EXTENSION);
    uint32_t kernel = build_module(p.profile, "[kernel.kallsyms]", PROFILE_MODULE_KERNEL);
    p.start = build_frame(p.profile, python, "Py_RunMain", 0x100);
    p.eval = build_frame(p.profile, python, "_PyEval_EvalFrameDefault", 0x200);
    p.gc = build_frame(p.profile, python, "gc_collect_main", 0x300);
    p.profile->functions.items[p.profile->frames.items[p.gc].function].role = PROFILE_ROLE_GC;
    p.module = build_frame(p.profile, jit, "py::<module>:/app.py", 0x1000);
    p.work = build_frame(p.profile, jit, "py::work:/app.py", 0x2000);
    p.helper = build_frame(p.profile, jit, "py::helper:/app.py", 0x3000);
    p.memcpy = build_frame(p.profile, libc, "memcpy", 0x100);
    p.extension = build_frame(p.profile, json, "scan_once", 0x100);
    p.take_gil = build_frame(p.profile, python, "take_gil", 0x400);
    p.epoll = build_frame(p.profile, libc, "epoll_wait", 0x200);
    p.read = build_frame(p.profile, libc, "read", 0x300);
    p.syscall = build_frame(p.profile, kernel, "sys_read", 0xffffffff81000000);
    return p;
}

static const char *page(const struct profile *profile, struct summary_style style)
{
    struct summary summary;
    assert_int_equal(summary_init(&summary, profile), 0);
    FILE *out = capture_begin();
    summary_print_text(out, &summary, style);
    summary_done(&summary);
    return capture_end(out);
}

static void self_is_where_no_other_python_function_is_further_in(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 60, CHAIN(p.start, p.module, p.eval, p.work, p.eval));
    build_sample(p.profile, "py", 1, 40, CHAIN(p.start, p.module, p.eval));
    struct summary summary;
    assert_int_equal(summary_init(&summary, p.profile), 0);
    assert_int_equal(summary.functions.count, 2);
    assert_int_equal(summary.functions.items[0].self_weight, 60);
    assert_int_equal(summary.functions.items[0].total_weight, 60);
    assert_int_equal(summary.functions.items[1].self_weight, 40);
    assert_int_equal(summary.functions.items[1].total_weight, 100);
    summary_done(&summary);
    free_profile(p.profile);
}

static void recursion_counts_once(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 5, CHAIN(p.work, p.eval, p.helper, p.eval, p.work, p.work));
    struct summary summary;
    assert_int_equal(summary_init(&summary, p.profile), 0);
    for (size_t i = 0; i < summary.functions.count; i++)
        assert_int_equal(summary.functions.items[i].total_samples, 1);
    summary_done(&summary);
    free_profile(p.profile);
}

/* Another place of the same function, at a line. */
static uint32_t at_line(struct profile *profile, uint32_t frame, uint32_t line)
{
    struct profile_frame other = profile->frames.items[frame];
    other.line = line;
    other.ip_avma += line;
    assert_int_equal(vector_push(&profile->frames, other), 0);
    return (uint32_t)profile->frames.count - 1;
}

static void lines_stand_under_their_function(void **state)
{
    (void)state;
    char path[] = "/tmp/pitviper-source-XXXXXX", name[64];
    int fd = mkstemp(path);
    static const char source[] =
        "def work():\n    total = 0\n\ttotal += 1\x1b \r\n    return total";
    assert_int_equal(write(fd, source, sizeof source - 1), sizeof source - 1);
    close(fd);
    snprintf(name, sizeof name, "py::work:%s", path);
    struct profile *profile = build_profile();
    uint32_t jit = build_module(profile, "[JIT] tid 1", PROFILE_MODULE_PYTHON);
    uint32_t eval = build_frame(profile, jit, "_PyEval_EvalFrameDefault", 0x200);
    uint32_t work = build_frame(profile, jit, name, 0x2000);
    uint32_t lambda = build_frame(profile, jit, "py::<lambda>:<string>", 0x3000);
    profile->functions.items[profile->frames.items[lambda].function].line = 7;
    uint32_t second = at_line(profile, work, 2), third = at_line(profile, work, 3);
    uint32_t last = at_line(profile, work, 4), beyond = at_line(profile, work, 99);
    build_sample(profile, "py", 1, 10, CHAIN(second, eval));
    build_sample(profile, "py", 1, 500, CHAIN(third, eval));
    build_sample(profile, "py", 1, 200, CHAIN(third, eval, at_line(profile, lambda, 7)));
    build_sample(profile, "py", 1, 180, CHAIN(third));
    build_sample(profile, "py", 1, 60, CHAIN(last, eval));
    build_sample(profile, "py", 1, 40, CHAIN(beyond));
    build_sample(profile, "py", 1, 10, CHAIN(work)); /* no line is known */
    const char *text = page(profile, (struct summary_style){.most_lines = 3});
    const char *lines = strstr(text, " 68.00%                   2    :3      total += 1\\x1b\n"
                                     "  6.00%                   1    :4      return total\n"
                                     "  4.00%                   1    :99\n"
                                     " 20.00%   20.00%          1  <lambda>  <string>:7\n\n");
    assert_non_null(lines);
    unlink(path);
    free_profile(profile);
}

static void the_page_shows_functions_places_and_quality(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 50, CHAIN(p.module, p.eval, p.work, p.eval));
    build_sample(p.profile, "py", 1, 20, CHAIN(p.module, p.eval, p.work, p.eval, p.extension));
    build_sample(p.profile, "py", 1, 10, CHAIN(p.module, p.eval, p.work, p.eval, p.memcpy));
    build_sample(p.profile, "py", 1, 8, CHAIN(p.module, p.eval, p.gc, p.memcpy));
    build_sample(p.profile, "py", 1, 7, CHAIN(p.module, p.eval, p.syscall));
    build_sample(p.profile, "py", 1, 5, CHAIN(p.start));
    p.profile->functions.items[p.profile->frames.items[p.work].function].line = 12;
    assert_string_equal(page(p.profile, (struct summary_style){0}),
                        "recording: 6 samples of cpu-clock, 1 process\n"
                        "\n"
                        "   self    total    samples  function  file:line\n"
                        " 80.00%   80.00%          3  work      /app.py:12\n"
                        " 15.00%   95.00%          2  <module>  /app.py\n"
                        "\n"
                        "where the time below Python goes\n"
                        " 50.00%                   1  interpreter\n"
                        " 20.00%                   1  C extension _json.so\n"
                        " 10.00%                   1  libc\n"
                        "  8.00%                   1  garbage collection\n"
                        "  7.00%                   1  kernel\n"
                        "  5.00%                   1  no Python function in the stack\n"
                        "\n"
                        "samples 6, lost 0, truncated 0, broken 0: 100.0 % complete\n");
    free_profile(p.profile);
}

static void colour_comes_only_when_asked_for(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 50, CHAIN(p.work, p.eval));
    assert_null(strchr(page(p.profile, (struct summary_style){0}), '\033'));
    assert_non_null(strchr(page(p.profile, (struct summary_style){.colour = true}), '\033'));
    free_profile(p.profile);
}

static void without_python_functions_it_says_how_to_record(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 50, CHAIN(p.start, p.eval));
    const char *text = page(p.profile, (struct summary_style){0});
    assert_non_null(strstr(text, "no Python functions"));
    assert_non_null(strstr(text, "pitviper run -- python3"));
    assert_non_null(strstr(text, "100.00%                   1  interpreter"));
    free_profile(p.profile);
}

static void without_samples_it_says_how_to_get_some(void **state)
{
    (void)state;
    struct program p = make_program();
    p.profile->info.perf_version = "pitviper 0.1.0"; /* nothing was interrupted */
    const char *text = page(p.profile, (struct summary_style){0});
    assert_non_null(strstr(text, "There are no samples"));
    assert_non_null(strstr(text, "pitviper record -e wall"));
    assert_null(strstr(text, "no Python functions"));
    assert_null(strstr(text, "where the time goes"));
    free_profile(p.profile);
}

static void an_empty_profile_has_an_empty_page(void **state)
{
    (void)state;
    struct program p = make_program();
    assert_non_null(strstr(page(p.profile, (struct summary_style){0}), "0 samples"));
    free_profile(p.profile);
}

/* A sample of a thread that waits: in `python`, called by the module; there in the function `c`. */
static void build_wait(const struct program *p, int32_t thread, uint32_t python, uint32_t c)
{
    build_sample(p->profile, "py", thread, 1, CHAIN(p->module, p->eval, python, p->eval, c));
    p->profile->samples.items[p->profile->samples.count - 1].waiting = true;
}

/* How many samples are told as waiting for this, in any place. */
static uint64_t samples_that_wait(const struct program *p, enum wait_kind kind)
{
    struct summary summary;
    uint64_t samples = 0, all = 0;
    assert_int_equal(summary_init(&summary, p->profile), 0);
    for (size_t i = 0; i < summary.waits.count; i++) {
        assert_int_equal(summary.waits.items[i].samples, summary.waits.items[i].weight);
        all += summary.waits.items[i].samples;
        if (summary.waits.items[i].kind == kind)
            samples += summary.waits.items[i].samples;
    }
    assert_int_equal(all, summary.waiting_samples);
    for (size_t i = 0; i < summary.functions.count; i++)
        assert_true(summary.functions.items[i].waiting_samples <=
                    summary.functions.items[i].total_samples);
    summary_done(&summary);
    return samples;
}

static void a_wait_that_our_signal_ended_goes_on_while_it_needs_the_gil(void **state)
{
    (void)state;
    struct program p = make_program();
    build_wait(&p, 1, p.work, p.epoll);
    build_wait(&p, 1, p.work, p.take_gil);
    build_wait(&p, 1, p.work, p.take_gil);
    build_wait(&p, 1, p.work, p.epoll);
    assert_int_equal(samples_that_wait(&p, WAIT_READY), 4);
    assert_int_equal(samples_that_wait(&p, WAIT_GIL), 0);
    free_profile(p.profile);
}

static void the_first_sample_of_a_thread_may_wait_for_the_gil(void **state)
{
    (void)state;
    struct program p = make_program();
    build_wait(&p, 1, p.work, p.epoll);
    build_wait(&p, 2, p.work, p.take_gil); /* another thread */
    build_wait(&p, 2, p.work, p.take_gil);
    build_wait(&p, 1, p.work, p.take_gil);
    assert_int_equal(samples_that_wait(&p, WAIT_GIL), 2);
    assert_int_equal(samples_that_wait(&p, WAIT_READY), 2);
    free_profile(p.profile);
}

static void a_thread_that_went_on_in_python_waits_for_the_gil(void **state)
{
    (void)state;
    struct program p = make_program();
    build_wait(&p, 1, at_line(p.profile, p.work, 7), p.epoll);
    build_wait(&p, 1, at_line(p.profile, p.work, 8), p.take_gil);
    build_wait(&p, 1, p.helper, p.epoll);
    build_wait(&p, 1, p.work, p.take_gil);
    assert_int_equal(samples_that_wait(&p, WAIT_GIL), 2);
    free_profile(p.profile);
}

static void a_thread_that_ran_waits_for_the_gil(void **state)
{
    (void)state;
    struct program p = make_program();
    build_wait(&p, 1, p.work, p.epoll);
    build_sample(p.profile, "py", 1, 1, CHAIN(p.module, p.eval, p.work, p.eval));
    build_wait(&p, 1, p.work, p.take_gil);
    build_wait(&p, 1, p.work, p.memcpy); /* could run, or does what is not known */
    build_wait(&p, 1, p.work, p.take_gil);
    assert_int_equal(samples_that_wait(&p, WAIT_GIL), 2);
    free_profile(p.profile);
}

static void a_wait_that_the_kernel_repeats_needs_no_gil(void **state)
{
    (void)state;
    struct program p = make_program();
    build_wait(&p, 1, p.work, p.read);
    build_wait(&p, 1, p.work, p.take_gil); /* so something was read */
    assert_int_equal(samples_that_wait(&p, WAIT_FILE), 1);
    assert_int_equal(samples_that_wait(&p, WAIT_GIL), 1);
    free_profile(p.profile);
}

static void threads_without_python_functions_are_not_ours_to_repeat(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 1, CHAIN(p.start, p.epoll));
    build_sample(p.profile, "py", 1, 1, CHAIN(p.start, p.take_gil));
    p.profile->samples.items[0].waiting = p.profile->samples.items[1].waiting = true;
    assert_int_equal(samples_that_wait(&p, WAIT_GIL), 1);
    free_profile(p.profile);
}

static void short_memory_is_an_error_at_every_point(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 50, CHAIN(p.work, p.eval));
    struct summary summary;
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = summary_init(&summary, p.profile);
        if (!failing_malloc_stop()) {
            assert_int_equal(result, 0);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(result, -ENOMEM);
    }
    summary_done(&summary);
    free_profile(p.profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_is_where_no_other_python_function_is_further_in),
        cmocka_unit_test(recursion_counts_once),
        cmocka_unit_test(lines_stand_under_their_function),
        cmocka_unit_test(the_page_shows_functions_places_and_quality),
        cmocka_unit_test(colour_comes_only_when_asked_for),
        cmocka_unit_test(without_python_functions_it_says_how_to_record),
        cmocka_unit_test(without_samples_it_says_how_to_get_some),
        cmocka_unit_test(an_empty_profile_has_an_empty_page),
        cmocka_unit_test(a_wait_that_our_signal_ended_goes_on_while_it_needs_the_gil),
        cmocka_unit_test(the_first_sample_of_a_thread_may_wait_for_the_gil),
        cmocka_unit_test(a_thread_that_went_on_in_python_waits_for_the_gil),
        cmocka_unit_test(a_thread_that_ran_waits_for_the_gil),
        cmocka_unit_test(a_wait_that_the_kernel_repeats_needs_no_gil),
        cmocka_unit_test(threads_without_python_functions_are_not_ours_to_repeat),
        cmocka_unit_test(short_memory_is_an_error_at_every_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
