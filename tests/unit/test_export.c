#include "export/export.h"

#include "capture.h"
#include "failing_malloc.h"
#include "profile_builder.h"
#include "unit.h"

#include <errno.h>
#include <linux/perf_event.h>

#define CHAIN(...) (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4

struct program {
    struct profile *profile;
    uint32_t start, main, work, eval, odd, nameless;
};

static struct program make_program(void)
{
    struct program p = {.profile = build_profile()};
    p.profile->events.items[0].type = PERF_TYPE_SOFTWARE;
    uint32_t python = build_module(p.profile, "python3", PROFILE_MODULE_INTERPRETER);
    uint32_t code = build_module(p.profile, "python.code", PROFILE_MODULE_PYTHON);
    uint32_t library = build_module(p.profile, "libfoo.so", PROFILE_MODULE_OTHER);
    p.start = build_frame(p.profile, python, "_start", 0x100);
    p.eval = build_frame(p.profile, python, "_PyEval_EvalFrameDefault", 0x200);
    p.profile->functions.items[p.profile->frames.items[p.eval].function].role =
        PROFILE_ROLE_EVALUATOR;
    p.main = build_frame(p.profile, code, "py::main:/a.py", 0x1000);
    p.work = build_frame(p.profile, code, "py::work:/a.py", 0x2000);
    p.profile->frames.items[p.main].line = 3;
    p.profile->frames.items[p.work].line = 7;
    p.odd = build_frame(p.profile, library, "a;b\n<c> &\x01\xff\"", 0x100);
    p.nameless = build_frame(p.profile, library, NULL, 0x300);
    return p;
}

static const char *exported(const struct profile *profile, const char *name,
                            struct export_settings settings)
{
    const struct export_format *format = export_format_find(name);
    struct export_view view;
    settings.source = "perf.data";
    assert_int_equal(export_view_init(&view, profile, &settings, format->has_lines), 0);
    FILE *out = capture_begin();
    assert_int_equal(format->write(&view, out), 0);
    export_view_done(&view);
    return capture_end(out);
}

static const struct export_settings PLAIN = {0};

static void folded_stacks_are_added_up_by_command(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.start, p.main));
    build_sample(p.profile, "py", 1, 20, CHAIN(p.start, p.main));
    build_sample(p.profile, "other", 2, 5, CHAIN(p.start, p.main));
    assert_string_equal(exported(p.profile, "folded", PLAIN), "py;_start;py::main:/a.py 30\n"
                                                              "other;_start;py::main:/a.py 5\n");
    struct export_settings count = {.count_samples = true, .wanted = {.tids = "1"}};
    assert_string_equal(exported(p.profile, "folded", count), "py;_start;py::main:/a.py 2\n");
    free_profile(p.profile);
}

static void lines_are_told_apart_when_asked(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.main, p.work));
    struct profile_frame other = p.profile->frames.items[p.work];
    other.line = 9;
    assert_int_equal(vector_push(&p.profile->frames, other), 0);
    build_sample(p.profile, "py", 1, 10, CHAIN(p.main, (uint32_t)p.profile->frames.count - 1));
    assert_string_equal(exported(p.profile, "folded", PLAIN),
                        "py;py::main:/a.py;py::work:/a.py 20\n");
    struct export_settings lines = {.lines = true};
    assert_string_equal(exported(p.profile, "folded", lines),
                        "py;py::main:/a.py:3;py::work:/a.py:7 10\n"
                        "py;py::main:/a.py:3;py::work:/a.py:9 10\n");
    free_profile(p.profile);
}

static void names_can_not_break_a_folded_line(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "p;y\n", 1, 10, CHAIN(p.start, p.odd, p.nameless));
    assert_string_equal(exported(p.profile, "folded", PLAIN),
                        "p\\x3by\\x0a;_start;a\\x3bb\\x0a<c> &\\x01\\xff\";[libfoo.so] 10\n");
    free_profile(p.profile);
}

static void a_sample_without_stack_still_counts(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.start));
    p.profile->samples.items[0].stack = PROFILE_ROOT;
    assert_string_equal(exported(p.profile, "folded", PLAIN), "py 10\n");
    assert_non_null(
        strstr(exported(p.profile, "speedscope", PLAIN), "\"samples\":[[]],\"weights\":[10]"));
    assert_non_null(strstr(exported(p.profile, "firefox", PLAIN), "\"stack\":[null]"));
    assert_non_null(strstr(exported(p.profile, "callgrind", PLAIN), " py\n0 10 1\n"));
    free_profile(p.profile);
}

static void folding_leaves_the_interpreter_out_and_sums_as_they_are(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.main, p.eval, p.work, p.eval));
    struct export_settings fold = {.fold = true};
    assert_string_equal(exported(p.profile, "folded", fold),
                        "py;py::main:/a.py;py::work:/a.py 10\n");
    free_profile(p.profile);
}

static void json_escapes_any_name(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.odd));
    assert_non_null(strstr(exported(p.profile, "speedscope", PLAIN),
                           "{\"name\":\"a;b\\u000a<c> &\\u0001\\ufffd\\\"\"}"));
    assert_non_null(
        strstr(exported(p.profile, "firefox", PLAIN), "\"a;b\\u000a<c> &\\u0001\\ufffd\\\"\""));
    free_profile(p.profile);
}

static void svg_escapes_any_name(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.odd));
    const char *svg = exported(p.profile, "svg", PLAIN);
    assert_non_null(strstr(svg, "<title>a;b\\x0a&lt;c&gt; &amp;\\x01\357\277\275\"\n"));
    assert_null(strchr(svg, '\x01'));
    assert_null(strchr(svg, '\xff'));
    free_profile(p.profile);
}

/* A box of a name that has no room is cut between characters, with dots. */
static void svg_cuts_long_names(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 95, CHAIN(p.start));
    build_sample(p.profile, "py", 1, 5, CHAIN(p.eval));
    assert_non_null(strstr(exported(p.profile, "svg", PLAIN), ">_PyEv..</text>"));
    free_profile(p.profile);
}

static void speedscope_joins_equal_neighbours_of_a_thread(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.start));
    build_sample(p.profile, "py", 2, 1, CHAIN(p.main));
    build_sample(p.profile, "py", 1, 20, CHAIN(p.start));
    build_sample(p.profile, "py", 1, 30, CHAIN(p.main));
    const char *text = exported(p.profile, "speedscope", PLAIN);
    assert_non_null(strstr(text, "\"endValue\":60,\"samples\":[[0],[1]],\"weights\":[30,30]"));
    assert_non_null(strstr(text, "\"endValue\":1,\"samples\":[[1]],\"weights\":[1]"));
    assert_non_null(strstr(text, "\"activeProfileIndex\":0"));
    assert_non_null(strstr(text, "\"unit\":\"nanoseconds\""));
    free_profile(p.profile);
}

/* main > work > main > work: one call of each counts, though there are three. */
static void callgrind_counts_the_outermost_call_of_a_recursion(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.main, p.work, p.main, p.work));
    const char *text = exported(p.profile, "callgrind", PLAIN);
    const char *body = strstr(text, "summary: 10 1\n");
    assert_non_null(body);
    size_t calls = 0;
    for (const char *at = body; (at = strstr(at, "calls=")); at++)
        calls++;
    assert_int_equal(calls, 2);
    assert_non_null(strstr(body, "calls=1 0\n3 10 1\n")); /* main, line 3, calls work */
    assert_non_null(strstr(body, "\nfn=(4)\n7 10 1\n"));  /* work itself */
    free_profile(p.profile);
}

/* Each format, with each allocation failing once: an error, and nothing is lost. */
static void short_memory_is_an_error(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "py", 1, 10, CHAIN(p.start, p.main, p.eval, p.work, p.odd));
    build_sample(p.profile, "py", 2, 20, CHAIN(p.start, p.main, p.nameless));
    for (const struct export_format *format = export_formats; format->name; format++) {
        long n = 0;
        for (;; n++) {
            struct export_settings settings = {.fold = n % 2, .source = "perf.data"};
            struct export_view view;
            FILE *out = capture_begin();
            failing_malloc_after(n / 2);
            int result = export_view_init(&view, p.profile, &settings, format->has_lines);
            if (result == 0) {
                result = format->write(&view, out);
                export_view_done(&view);
            }
            bool has_failed = failing_malloc_stop();
            fclose(out);
            if (!has_failed && n % 2)
                break;
            assert_int_equal(result, has_failed ? -ENOMEM : 0);
        }
        assert_true(n > 10);
    }
    free_profile(p.profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_stacks_are_added_up_by_command),
        cmocka_unit_test(lines_are_told_apart_when_asked),
        cmocka_unit_test(names_can_not_break_a_folded_line),
        cmocka_unit_test(a_sample_without_stack_still_counts),
        cmocka_unit_test(folding_leaves_the_interpreter_out_and_sums_as_they_are),
        cmocka_unit_test(json_escapes_any_name),
        cmocka_unit_test(svg_escapes_any_name),
        cmocka_unit_test(svg_cuts_long_names),
        cmocka_unit_test(speedscope_joins_equal_neighbours_of_a_thread),
        cmocka_unit_test(callgrind_counts_the_outermost_call_of_a_recursion),
        cmocka_unit_test(short_memory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
