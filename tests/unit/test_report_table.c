#include "report/table.h"

#include "capture.h"
#include "failing_malloc.h"
#include "profile_builder.h"
#include "unit.h"

#define CHAIN(...) (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4

/* A small program: main calls work, which calls read and, now and then, itself. */
struct program {
    struct profile *profile;
    uint32_t main, work, read, syscall, nowhere;
};

static struct program make_program(void)
{
    struct program p = {.profile = build_profile()};
    uint32_t app = build_module(p.profile, "app", PROFILE_MODULE_OTHER);
    uint32_t kernel = build_module(p.profile, "[kernel.kallsyms]", PROFILE_MODULE_KERNEL);
    p.main = build_frame(p.profile, app, "main", 0x100);
    p.work = build_frame(p.profile, app, "work", 0x200);
    p.read = build_frame(p.profile, app, "read", 0x300);
    p.syscall = build_frame(p.profile, kernel, "sys_read", 0xffffffff81000000);
    p.nowhere = build_frame(p.profile, 0, NULL, 0x7f00);
    return p;
}

static struct report_settings with_chains(enum chain_mode mode)
{
    struct report_settings settings = report_settings_default();
    settings.samples = true;
    settings.chains.mode = mode;
    return settings;
}

/* The output from the row of the first line on. */
static const char *rows(const struct profile *profile, const struct report_settings *settings)
{
    FILE *out = capture_begin();
    assert_int_equal(table_print(out, profile, settings), 0);
    const char *text = capture_end(out), *dots = strstr(text, "\n# ...");
    assert_non_null(dots);
    return strstr(dots, "\n#\n") + 3;
}

static void the_head_counts_samples_and_periods(void **state)
{
    (void)state;
    struct program p = make_program();
    for (int i = 0; i < 1500; i++)
        build_sample(p.profile, "app", 1, 10, CHAIN(p.main));
    struct report_settings settings = with_chains(CHAIN_NONE);
    FILE *out = capture_begin();
    assert_int_equal(table_print(out, p.profile, &settings), 0);
    assert_string_equal(
        capture_end(out),
        "# To display the perf.data header info, please use --header/--header-only options.\n"
        "#\n#\n# Total Lost Samples: 0\n#\n"
        "# Samples: 1K of event 'cpu-clock'\n# Event count (approx.): 15000\n#\n"
        "# Children      Self       Samples  Command  Shared Object  Symbol  \n"
        "# ........  ........  ............  .......  .............  ........\n#\n"
        "   100.00%   100.00%          1500  app      app            [.] main\n\n\n");
    free_profile(p.profile);
}

static void callers_have_what_they_called(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 30, CHAIN(p.main, p.work));
    build_sample(p.profile, "app", 1, 70, CHAIN(p.main, p.work, p.read));
    struct report_settings settings = with_chains(CHAIN_NONE);
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%    30.00%             1  app      app            [.] work\n"
                        "   100.00%     0.00%             0  app      app            [.] main\n"
                        "    70.00%    70.00%             1  app      app            [.] read\n"
                        "\n\n");
    free_profile(p.profile);
}

static void without_children_only_sampled_functions_have_rows(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 30, CHAIN(p.main, p.work));
    build_sample(p.profile, "app", 1, 70, CHAIN(p.main, p.work, p.read));
    struct report_settings settings = with_chains(CHAIN_NONE);
    settings.children = false;
    assert_string_equal(rows(p.profile, &settings),
                        "    70.00%             1  app      app            [.] read\n"
                        "    30.00%             1  app      app            [.] work\n\n\n");
    free_profile(p.profile);
}

static void a_function_that_calls_itself_counts_once(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 10, CHAIN(p.main, p.work, p.work, p.work, p.read));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    settings.symbols = "work";
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%     0.00%             0  app      app          \n"
                        "            |\n"
                        "            ---work\n"
                        "               work\n"
                        "               work\n"
                        "               read\n\n\n\n");
    free_profile(p.profile);
}

static void branches_are_drawn_largest_first_and_small_ones_left_out(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 300, CHAIN(p.main, p.work));
    build_sample(p.profile, "app", 1, 696, CHAIN(p.main, p.read, p.syscall));
    build_sample(p.profile, "app", 1, 4, CHAIN(p.main, p.syscall));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    settings.percent_limit = 90;
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%     0.00%             0  app      app                [.] main\n"
                        "            |\n"
                        "            ---main\n"
                        "               |          \n"
                        "               |--69.60%--read\n"
                        "               |          sys_read\n"
                        "               |          \n"
                        "                --30.00%--work\n\n\n\n");
    free_profile(p.profile);
}

static void several_roots_are_drawn_as_branches(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 60, CHAIN(p.main, p.read));
    build_sample(p.profile, "app", 1, 40, CHAIN(p.work, p.read));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    settings.children = false;
    settings.chains.order = CHAIN_CALLER;
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%             2  app      app            [.] read\n"
                        "            |          \n"
                        "            |--60.00%--main\n"
                        "            |          read\n"
                        "            |          \n"
                        "             --40.00%--work\n"
                        "                       read\n\n\n\n");
    free_profile(p.profile);
}

static void callee_order_starts_at_the_sampled_function(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 60, CHAIN(p.main, p.read));
    build_sample(p.profile, "app", 1, 40, CHAIN(p.work, p.read));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    settings.children = false;
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%             2  app      app            [.] read\n"
                        "            |\n"
                        "            ---read\n"
                        "               |          \n"
                        "               |--60.00%--main\n"
                        "               |          \n"
                        "                --40.00%--work\n\n\n\n");
    free_profile(p.profile);
}

static void fractal_percentages_are_of_the_parent(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 30, CHAIN(p.main, p.work, p.read));
    build_sample(p.profile, "app", 1, 10, CHAIN(p.main, p.work, p.syscall));
    build_sample(p.profile, "app", 1, 60, CHAIN(p.nowhere));
    struct report_settings settings = with_chains(CHAIN_FRACTAL);
    settings.symbols = "main";
    assert_string_equal(rows(p.profile, &settings),
                        "    40.00%     0.00%             0  app      app          \n"
                        "            |\n"
                        "            ---main\n"
                        "               work\n"
                        "               |          \n"
                        "               |--75.00%--read\n"
                        "               |          \n"
                        "                --25.00%--sys_read\n\n\n\n");
    free_profile(p.profile);
}

static void folded_chains_are_one_line_each(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 60, CHAIN(p.main, p.work, p.read));
    build_sample(p.profile, "app", 1, 40, CHAIN(p.main, p.read));
    struct report_settings settings = with_chains(CHAIN_FOLDED);
    settings.children = false;
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%             2  app      app            [.] read\n"
                        "60.00% read;work;main\n"
                        "40.00% read;main\n\n\n");
    free_profile(p.profile);
}

static void equal_rows_of_one_thread_are_ordered_by_depth(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 10, CHAIN(p.work, p.main, p.read));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    const char *text = rows(p.profile, &settings);
    const char *work = strstr(text, "[.] work"), *main = strstr(text, "[.] main");
    assert_true(work && main && work < main);
    settings = with_chains(CHAIN_NONE); /* no chains, no depth: by name */
    text = rows(p.profile, &settings);
    assert_true(strstr(text, "[.] main") < strstr(text, "[.] work"));
    free_profile(p.profile);
}

static void functions_without_a_name_are_addresses(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 10, CHAIN(p.nowhere, p.syscall));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    assert_string_equal(
        rows(p.profile, &settings),
        "   100.00%   100.00%             1  app      [kernel.kallsyms]  [k] sys_read\n"
        "            |\n"
        "            ---0x7f00\n"
        "               sys_read\n\n"
        "   100.00%     0.00%             0  app      [unknown]          [k] 0x0000000000007f00\n"
        "            |\n"
        "            ---0x7f00\n"
        "               sys_read\n\n\n\n");
    free_profile(p.profile);
}

static void threads_of_one_name_share_rows_unless_sorted_by_thread(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 7, 60, CHAIN(p.main));
    build_sample(p.profile, "app", 8, 40, CHAIN(p.main));
    struct report_settings settings = with_chains(CHAIN_NONE);
    settings.children = false;
    assert_string_equal(rows(p.profile, &settings),
                        "   100.00%             2  app      app            [.] main\n\n\n");
    const char *wrong;
    int length;
    assert_int_equal(report_settings_sort(&settings, "pid", &wrong, &length), 0);
    assert_string_equal(rows(p.profile, &settings),
                        "    60.00%             1        7:app    \n"
                        "    40.00%             1        8:app    \n\n\n");
    free_profile(p.profile);
}

static void filters_keep_percentages_of_everything(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 60, CHAIN(p.main));
    build_sample(p.profile, "other", 2, 40, CHAIN(p.work));
    struct report_settings settings = with_chains(CHAIN_NONE);
    settings.samples_wanted.comms = "other";
    assert_string_equal(rows(p.profile, &settings),
                        "    40.00%    40.00%             1  app            [.] work\n\n\n");
    free_profile(p.profile);
}

static void unknown_columns_are_refused(void **state)
{
    (void)state;
    struct report_settings settings = report_settings_default();
    const char *wrong;
    int length;
    assert_int_equal(report_settings_sort(&settings, "comm,colour", &wrong, &length), -EINVAL);
    assert_int_equal(length, 6);
    assert_memory_equal(wrong, "colour", 6);
}

static void chain_settings_come_in_any_order(void **state)
{
    (void)state;
    struct chain_settings settings = chain_settings_default();
    const char *wrong;
    int length;
    assert_int_equal(chain_settings_parse(&settings, "callee,2.5,flat,7,count", &wrong, &length),
                     0);
    assert_int_equal(settings.mode, CHAIN_FLAT);
    assert_int_equal(settings.order, CHAIN_CALLEE);
    assert_int_equal(settings.value, CHAIN_COUNT);
    assert_int_equal(settings.print_limit, 7);
    assert_true(settings.min_percent == 2.5);
    assert_int_equal(chain_settings_parse(&settings, "graph,bogus", &wrong, &length), -EINVAL);
    assert_memory_equal(wrong, "bogus", 5);
}

static void short_memory_is_an_error_at_every_point(void **state)
{
    (void)state;
    struct program p = make_program();
    build_sample(p.profile, "app", 1, 60, CHAIN(p.main, p.work, p.read));
    build_sample(p.profile, "app", 1, 40, CHAIN(p.main, p.read));
    struct report_settings settings = with_chains(CHAIN_GRAPH);
    FILE *out = capture_begin();
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = table_print(out, p.profile, &settings);
        if (!failing_malloc_stop()) {
            assert_int_equal(result, 0);
            assert_true(n > 5);
            break;
        }
        assert_int_equal(result, -ENOMEM);
    }
    capture_end(out);
    free_profile(p.profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_head_counts_samples_and_periods),
        cmocka_unit_test(callers_have_what_they_called),
        cmocka_unit_test(without_children_only_sampled_functions_have_rows),
        cmocka_unit_test(a_function_that_calls_itself_counts_once),
        cmocka_unit_test(branches_are_drawn_largest_first_and_small_ones_left_out),
        cmocka_unit_test(several_roots_are_drawn_as_branches),
        cmocka_unit_test(callee_order_starts_at_the_sampled_function),
        cmocka_unit_test(fractal_percentages_are_of_the_parent),
        cmocka_unit_test(folded_chains_are_one_line_each),
        cmocka_unit_test(equal_rows_of_one_thread_are_ordered_by_depth),
        cmocka_unit_test(functions_without_a_name_are_addresses),
        cmocka_unit_test(threads_of_one_name_share_rows_unless_sorted_by_thread),
        cmocka_unit_test(filters_keep_percentages_of_everything),
        cmocka_unit_test(unknown_columns_are_refused),
        cmocka_unit_test(chain_settings_come_in_any_order),
        cmocka_unit_test(short_memory_is_an_error_at_every_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
