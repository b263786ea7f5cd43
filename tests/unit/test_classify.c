#include "profile/classify.h"

#include "unit.h"

static void modules_are_known_by_their_paths(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum profile_module_kind kind;
    } cases[] = {
        {"/usr/bin/python3.11", PROFILE_MODULE_INTERPRETER},
        {"/opt/lib/libpython3.13.so.1.0", PROFILE_MODULE_INTERPRETER},
        {"/usr/bin/python3-config-thing/x", PROFILE_MODULE_OTHER},
        {"/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
         PROFILE_MODULE_EXTENSION},
        {"/v/lib/python3.12/site-packages/numpy.libs/libopenblas.so", PROFILE_MODULE_EXTENSION},
        {"/v/_rust.abi3.so", PROFILE_MODULE_EXTENSION},
        {"/usr/lib/x86_64-linux-gnu/libc.so.6", PROFILE_MODULE_LIBC},
        {"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", PROFILE_MODULE_LIBC},
        {"[vdso]", PROFILE_MODULE_LIBC},
        {"/usr/lib/x86_64-linux-gnu/libcrypto.so.3", PROFILE_MODULE_OTHER},
        {"", PROFILE_MODULE_OTHER},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(classify_module(cases[i].path), cases[i].kind);
}

static enum profile_function_role role_of(const char *name)
{
    return classify_function(name, strlen(name));
}

static void functions_of_the_interpreter_are_known_by_their_names(void **state)
{
    (void)state;
    assert_int_equal(role_of("_PyEval_EvalFrameDefault"), PROFILE_ROLE_EVALUATOR);
    assert_int_equal(role_of("_PyEval_EvalFrameDefault.cold"), PROFILE_ROLE_EVALUATOR);
    assert_int_equal(role_of("_TAIL_CALL_LOAD_FAST"), PROFILE_ROLE_EVALUATOR);
    assert_int_equal(role_of("PyObject_Vectorcall"), PROFILE_ROLE_CALL);
    assert_int_equal(role_of("slot_tp_init.lto_priv.0"), PROFILE_ROLE_CALL);
    assert_int_equal(role_of("__libc_start_main@@GLIBC_2.34"), PROFILE_ROLE_START);
    assert_int_equal(role_of("gc_collect_main"), PROFILE_ROLE_GC);
    assert_int_equal(role_of("_PyEval_EvalFrameDefaultish"), PROFILE_ROLE_NONE);
    assert_int_equal(role_of("list_sort"), PROFILE_ROLE_NONE);
    assert_int_equal(role_of(""), PROFILE_ROLE_NONE);
}

static void names_of_python_functions_are_taken_apart(void **state)
{
    (void)state;
    struct classify_python python;
    static const char name[] = "py::A.b.<locals>.<lambda>:/x/y:z.py";
    assert_true(classify_python(name, strlen(name), &python));
    assert_bytes(python.name, python.name_length, "A.b.<locals>.<lambda>");
    assert_bytes(python.file, python.file_length, "/x/y:z.py");
    assert_true(classify_python("py::f", 5, &python));
    assert_bytes(python.name, python.name_length, "f");
    assert_int_equal(python.file_length, 0);
    assert_true(classify_python("py::", 4, &python));
    assert_int_equal(python.name_length, 0);
    assert_false(classify_python("py:f:x", 6, &python));
    assert_false(classify_python("", 0, &python));
}

static void stacks_start_in_few_functions(void **state)
{
    (void)state;
    assert_true(classify_is_outermost("_start"));
    assert_true(classify_is_outermost("__libc_start_main@@GLIBC_2.34"));
    assert_true(classify_is_outermost("clone3"));
    assert_false(classify_is_outermost("main"));
    assert_false(classify_is_outermost(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_are_known_by_their_paths),
        cmocka_unit_test(functions_of_the_interpreter_are_known_by_their_names),
        cmocka_unit_test(names_of_python_functions_are_taken_apart),
        cmocka_unit_test(stacks_start_in_few_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
