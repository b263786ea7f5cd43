#include "export/viewer_tables.h"

#include "export/names.h"
#include "export/viewer_page.h"
#include "export/viewer_sources.h"
#include "failing_malloc.h"
#include "profile_builder.h"
#include "unit.h"

#include <errno.h>

#define CHAIN(...) (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / 4

struct program {
    struct profile *profile;
    uint32_t start, eval, work, other_work, read, never;
};

/* Two processes that run the same Python file, and a function that no sample has. */
static struct program make_program(void)
{
    struct program p = {.profile = build_profile()};
    uint32_t python = build_module(p.profile, "libpython3.13.so", PROFILE_MODULE_INTERPRETER);
    uint32_t one = build_module(p.profile, "[JIT] tid 1", PROFILE_MODULE_PYTHON);
    uint32_t two = build_module(p.profile, "[JIT] tid 2", PROFILE_MODULE_PYTHON);
    uint32_t libc = build_module(p.profile, "libc.so.6", PROFILE_MODULE_LIBC);
    build_module(p.profile, "never.so", PROFILE_MODULE_OTHER);
    p.never = build_frame(p.profile, libc, "never", 0x900);
    p.start = build_frame(p.profile, python, "Py_RunMain", 0x100);
    p.eval = build_frame(p.profile, python, "_PyEval_EvalFrameDefault", 0x200);
    struct profile_function *functions = p.profile->functions.items;
    functions[p.profile->frames.items[p.start].function].role = PROFILE_ROLE_START;
    functions[p.profile->frames.items[p.eval].function].role = PROFILE_ROLE_EVALUATOR;
    p.work = build_frame(p.profile, one, "py::work:/app.py", 0x1000);
    p.other_work = build_frame(p.profile, two, "py::work:/app.py", 0x5000);
    p.read = build_frame(p.profile, libc, "read", 0x100);
    build_stack(p.profile, CHAIN(p.start, p.never));
    build_sample(p.profile, "app", 1, 10, CHAIN(p.start, p.eval, p.work, p.eval, p.read));
    build_sample(p.profile, "app", 2, 20, CHAIN(p.start, p.eval, p.other_work, p.eval));
    build_sample(p.profile, "app", 1, 30, CHAIN(p.start, p.eval, p.work, p.eval, p.read));
    return p;
}

static const char *text(const struct viewer_tables *tables, uint32_t string)
{
    return strings_get(&tables->strings, string).bytes;
}

/* The functions of a stack, outermost first, with ">" between them. */
static const char *path_of(const struct viewer_tables *tables, const struct viewer_tree *tree,
                           uint32_t stack)
{
    static char path[512];
    char rest[512] = "";
    path[0] = '\0';
    for (; stack; stack = tree->nodes.items[stack].parent) {
        const struct viewer_frame *frame = &tables->frames.items[tree->nodes.items[stack].frame];
        snprintf(path, sizeof path, ">%s%.400s",
                 text(tables, tables->functions.items[frame->function].name), rest);
        snprintf(rest, sizeof rest, "%s", path);
    }
    return path;
}

static void only_what_samples_use_is_there(void **state)
{
    (void)state;
    struct program p = make_program();
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    assert_int_equal(tables.functions.count, 4);
    for (size_t i = 0; i < tables.strings.texts.count; i++)
        assert_null(strstr(text(&tables, (uint32_t)i), "never"));
    assert_int_equal(tables.samples.count, 3);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void a_python_function_of_two_processes_is_one(void **state)
{
    (void)state;
    struct program p = make_program();
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    size_t works = 0;
    for (size_t i = 0; i < tables.functions.count; i++)
        works += strcmp(text(&tables, tables.functions.items[i].name), "work") == 0;
    assert_int_equal(works, 1);
    assert_int_equal(tables.processes.count, 2);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void stacks_and_folded_stacks_are_the_profiles(void **state)
{
    (void)state;
    struct program p = make_program();
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    static const char *const stacks[] = {
        ">Py_RunMain>_PyEval_EvalFrameDefault>work>_PyEval_EvalFrameDefault>read",
        ">Py_RunMain>_PyEval_EvalFrameDefault>work>_PyEval_EvalFrameDefault",
        ">Py_RunMain>_PyEval_EvalFrameDefault>work>_PyEval_EvalFrameDefault>read"};
    static const char *const folded[] = {">work>read", ">work", ">work>read"};
    static const uint64_t weights[] = {10, 20, 30};
    for (size_t i = 0; i < tables.samples.count; i++) {
        const struct viewer_sample *sample = &tables.samples.items[i];
        assert_string_equal(path_of(&tables, &tables.stacks, sample->stack), stacks[i]);
        assert_string_equal(path_of(&tables, &tables.folded, tables.folded_of.items[sample->stack]),
                            folded[i]);
        assert_int_equal(sample->weight, weights[i]);
        assert_int_equal(sample->time_ns, i);
    }
    assert_int_equal(tables.stacks.nodes.count, 6); /* the two processes' are the same ones */
    for (size_t i = 1; i < tables.stacks.nodes.count; i++)
        assert_true(tables.stacks.nodes.items[i].parent < i);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void samples_that_came_late_are_put_in_order(void **state)
{
    (void)state;
    struct program p = make_program();
    p.profile->samples.items[0].time_ns = 7000;
    p.profile->samples.items[1].time_ns = 5000;
    p.profile->samples.items[2].time_ns = 7000;
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    static const uint64_t weights[] = {20, 10, 30}, times[] = {0, 2000, 2000};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tables.samples.items[i].weight, weights[i]);
        assert_int_equal(tables.samples.items[i].time_ns, times[i]);
    }
    assert_int_equal(tables.start_ns, 5000);
    assert_int_equal(tables.end_ns, 7000);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void processes_without_samples_are_stepped_over(void **state)
{
    (void)state;
    struct program p = make_program();
    struct profile_process silent = {.pid = 3, .parent = 0};
    assert_int_equal(vector_push(&p.profile->processes, silent), 0);
    p.profile->processes.items[1].parent = 2;
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    assert_int_equal(tables.processes.count, 2);
    assert_int_equal(tables.processes.items[0].parent, 0);
    assert_int_equal(tables.processes.items[1].parent, 1);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void parents_in_a_circle_come_to_an_end(void **state)
{
    (void)state;
    struct program p = make_program();
    struct profile_process silent[] = {{.pid = 3, .parent = 3}, {.pid = 4, .parent = 2}};
    assert_int_equal(vector_push(&p.profile->processes, silent[0]), 0);
    assert_int_equal(vector_push(&p.profile->processes, silent[1]), 0);
    p.profile->processes.items[0].parent = 2;
    p.profile->processes.items[1].parent = 1;
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    assert_int_equal(tables.processes.items[0].parent, 0);
    assert_int_equal(tables.processes.items[1].parent, 0);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void what_is_no_utf8_is_replaced(void **state)
{
    (void)state;
    struct program p = make_program();
    struct viewer_tables tables;
    uint32_t string;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    assert_int_equal(viewer_tables_text(&tables, "a\xff\xc3\xa9\xc3", 5, &string), 0);
    assert_string_equal(text(&tables, string), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    assert_int_equal(viewer_tables_text(&tables, "\xed\xa0\x80", 3, &string), 0);
    assert_string_equal(text(&tables, string), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

static void numbers_that_javascript_cannot_hold_are_limited(void **state)
{
    (void)state;
    struct program p = make_program();
    p.profile->samples.items[0].period = UINT64_MAX;
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, p.profile), 0);
    assert_int_equal(tables.samples.items[0].weight, ((uint64_t)1 << 53) - 1);
    viewer_tables_done(&tables);
    free_profile(p.profile);
}

/* --- places ------------------------------------------------------------------------------------
 */

static uint8_t place_in(enum profile_module_kind kind, const char *name,
                        enum profile_function_role role)
{
    struct profile *profile = build_profile();
    uint32_t module = build_module(profile, "module", kind);
    uint32_t frame = build_frame(profile, module, name, 0x1234);
    profile->functions.items[profile->frames.items[frame].function].role = (uint8_t)role;
    build_sample(profile, "app", 1, 10, CHAIN(frame));
    struct viewer_tables tables;
    assert_int_equal(viewer_tables_init(&tables, profile), 0);
    uint8_t place = tables.functions.items[0].place;
    if (!name)
        assert_string_equal(text(&tables, tables.functions.items[0].name), "[module]");
    viewer_tables_done(&tables);
    free_profile(profile);
    return place;
}

static void functions_have_the_colour_of_their_place(void **state)
{
    (void)state;
    assert_int_equal(place_in(PROFILE_MODULE_PYTHON, "py::f:/a.py", 0), EXPORT_PLACE_PYTHON);
    assert_int_equal(place_in(PROFILE_MODULE_EXTENSION, "scan", 0), EXPORT_PLACE_EXTENSION);
    assert_int_equal(place_in(PROFILE_MODULE_INTERPRETER, "f", 0), EXPORT_PLACE_INTERPRETER);
    assert_int_equal(place_in(PROFILE_MODULE_INTERPRETER, NULL, 0), EXPORT_PLACE_INTERPRETER);
    assert_int_equal(place_in(PROFILE_MODULE_INTERPRETER, "gc_collect_main", PROFILE_ROLE_GC),
                     EXPORT_PLACE_GC);
    assert_int_equal(place_in(PROFILE_MODULE_OTHER, "collect", PROFILE_ROLE_GC),
                     EXPORT_PLACE_LIBRARY);
    assert_int_equal(place_in(PROFILE_MODULE_LIBC, "read", 0), EXPORT_PLACE_LIBC);
    assert_int_equal(place_in(PROFILE_MODULE_KERNEL, "sys_read", 0), EXPORT_PLACE_KERNEL);
    assert_int_equal(place_in(PROFILE_MODULE_OTHER, NULL, 0), EXPORT_PLACE_LIBRARY);
}

/* --- memory ------------------------------------------------------------------------------------
 */

static int write_nowhere(const struct profile *profile)
{
    FILE *out = fopen("/dev/null", "w");
    if (!out)
        return -ENOMEM;
    struct viewer_page page = {.title = "t", .profile = profile, .base = profile, .sources = true};
    int result = viewer_page_write(out, &page);
    fclose(out);
    return result;
}

static void memory_that_runs_short_is_an_error_and_no_leak(void **state)
{
    (void)state;
    struct program p = make_program();
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = write_nowhere(p.profile);
        if (!failing_malloc_stop())
            break;
        assert_int_equal(result, -ENOMEM);
    }
    free_profile(p.profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_samples_use_is_there),
        cmocka_unit_test(a_python_function_of_two_processes_is_one),
        cmocka_unit_test(stacks_and_folded_stacks_are_the_profiles),
        cmocka_unit_test(samples_that_came_late_are_put_in_order),
        cmocka_unit_test(processes_without_samples_are_stepped_over),
        cmocka_unit_test(parents_in_a_circle_come_to_an_end),
        cmocka_unit_test(what_is_no_utf8_is_replaced),
        cmocka_unit_test(numbers_that_javascript_cannot_hold_are_limited),
        cmocka_unit_test(functions_have_the_colour_of_their_place),
        cmocka_unit_test(memory_that_runs_short_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
