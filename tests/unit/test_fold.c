#include "profile/fold.h"

#include "failing_malloc.h"
#include "profile_sample.h"

#include <errno.h>

static struct profile profile;
static struct fold fold;

enum { INTERPRETER, LIBC, PYTHON, EXTENSION };

/* A profile of one stack whose functions are added by `call`, outermost first. */
static void begin(void)
{
    static const uint8_t kinds[] = {PROFILE_MODULE_INTERPRETER, PROFILE_MODULE_LIBC,
                                    PROFILE_MODULE_PYTHON, PROFILE_MODULE_EXTENSION};
    assert_int_equal(strings_init(&profile.strings), 0);
    for (size_t i = 0; i < COUNT(kinds); i++)
        assert_int_equal(vector_push(&profile.modules, (struct profile_module){.kind = kinds[i]}),
                         0);
    struct profile_stack root = {.parent = PROFILE_NONE, .frame = PROFILE_NONE};
    assert_int_equal(vector_push(&profile.stacks, root), 0);
}

static void call(const char *name, uint32_t module, enum profile_function_role role)
{
    struct profile_function function = {.module = module,
                                        .role = (uint8_t)role,
                                        .kind = module == PYTHON ? PROFILE_FUNCTION_PYTHON
                                                                 : PROFILE_FUNCTION_NATIVE};
    assert_int_equal(strings_intern(&profile.strings, name, strlen(name), &function.name), 0);
    assert_int_equal(vector_push(&profile.functions, function), 0);
    struct profile_frame frame = {.function = (uint32_t)profile.functions.count - 1};
    assert_int_equal(vector_push(&profile.frames, frame), 0);
    struct profile_stack stack = {.parent = (uint32_t)profile.stacks.count - 1,
                                  .frame = (uint32_t)profile.frames.count - 1,
                                  .depth = (uint32_t)profile.stacks.count};
    assert_int_equal(vector_push(&profile.stacks, stack), 0);
}

/* The innermost stack, folded: "a;b". */
static const char *folded(void)
{
    static char text[512];
    text[0] = '\0';
    assert_int_equal(fold_init(&fold, &profile), 0);
    uint32_t stack = fold.stack_of[profile.stacks.count - 1];
    for (; stack != PROFILE_ROOT; stack = fold.stacks.items[stack].parent) {
        uint32_t function = profile.frames.items[fold.stacks.items[stack].frame].function;
        prepend(text, sizeof text, profile_text(&profile, profile.functions.items[function].name));
    }
    return text;
}

static void end(void)
{
    fold_done(&fold);
    struct profile *heap = malloc(sizeof *heap);
    assert_non_null(heap);
    *heap = profile;
    profile_free(heap);
    profile = (struct profile){0};
}

static void python_functions_stand_next_to_each_other(void **state)
{
    (void)state;
    begin();
    call("_start", INTERPRETER, PROFILE_ROLE_START);
    call("main", INTERPRETER, PROFILE_ROLE_START);
    call("py::a", PYTHON, PROFILE_ROLE_NONE);
    call("_PyEval_EvalFrameDefault", INTERPRETER, PROFILE_ROLE_EVALUATOR);
    call("PyObject_Vectorcall", INTERPRETER, PROFILE_ROLE_CALL);
    call("py::b", PYTHON, PROFILE_ROLE_NONE);
    call("_PyEval_EvalFrameDefault", INTERPRETER, PROFILE_ROLE_EVALUATOR);
    call("list_sort", INTERPRETER, PROFILE_ROLE_NONE);
    call("memmove", LIBC, PROFILE_ROLE_NONE);
    assert_string_equal(folded(), "py::a;py::b;list_sort;memmove");
    end();
}

static void without_python_functions_a_stack_stays_whole(void **state)
{
    (void)state;
    begin();
    call("_start", LIBC, PROFILE_ROLE_START);
    call("_PyEval_EvalFrameDefault", INTERPRETER, PROFILE_ROLE_EVALUATOR);
    assert_string_equal(folded(), "_start;_PyEval_EvalFrameDefault");
    end();
}

static void time_in_the_evaluator_counts_for_the_python_function(void **state)
{
    (void)state;
    begin();
    call("py::a", PYTHON, PROFILE_ROLE_NONE);
    call("_PyEval_EvalFrameDefault", INTERPRETER, PROFILE_ROLE_EVALUATOR);
    assert_string_equal(folded(), "py::a");
    end();
}

static void garbage_collection_is_one_function(void **state)
{
    (void)state;
    begin();
    call("py::a", PYTHON, PROFILE_ROLE_NONE);
    call("_Py_RunGC", INTERPRETER, PROFILE_ROLE_GC);
    call("gc_collect_main", INTERPRETER, PROFILE_ROLE_GC);
    call("dict_traverse", INTERPRETER, PROFILE_ROLE_NONE);
    call("py::A.__del__", PYTHON, PROFILE_ROLE_NONE);
    call("list_sort", INTERPRETER, PROFILE_ROLE_NONE);
    assert_string_equal(folded(), "py::a;_Py_RunGC;py::A.__del__;list_sort");
    end();
}

static void functions_of_others_are_kept_whatever_their_names(void **state)
{
    (void)state;
    begin();
    call("main", EXTENSION, PROFILE_ROLE_START);
    call("py::a", PYTHON, PROFILE_ROLE_NONE);
    call("type_call", EXTENSION, PROFILE_ROLE_CALL);
    assert_string_equal(folded(), "main;py::a;type_call");
    end();
}

static void short_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    begin();
    call("py::a", PYTHON, PROFILE_ROLE_NONE);
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = fold_init(&fold, &profile);
        if (!failing_malloc_stop())
            break;
        assert_int_equal(result, -ENOMEM);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_functions_stand_next_to_each_other),
        cmocka_unit_test(without_python_functions_a_stack_stays_whole),
        cmocka_unit_test(time_in_the_evaluator_counts_for_the_python_function),
        cmocka_unit_test(garbage_collection_is_one_function),
        cmocka_unit_test(functions_of_others_are_kept_whatever_their_names),
        cmocka_unit_test(short_memory_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
