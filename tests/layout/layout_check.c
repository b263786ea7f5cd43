/* Compares the tables of src/interp/layout.h with the headers of one CPython. Compiled and run by
 * tests/e2e/test_layout.py for every interpreter that has its internal headers installed. Prints a
 * line for each field that differs and exits with 1 then. */
#define Py_BUILD_CORE 1
#include <Python.h>

#include <frameobject.h>
#include <internal/pycore_code.h>
#include <internal/pycore_interp.h>
#include <internal/pycore_pystate.h>
#if PY_VERSION_HEX >= 0x030b0000
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#endif

#include "interp/layout.h"

#include <stddef.h>
#include <stdio.h>

static int wrong;

static void check(const char *field, size_t ours, size_t theirs)
{
    if (ours == theirs)
        return;
    printf("%s: the table says %zu, the headers of " PY_VERSION " say %zu\n", field, ours, theirs);
    wrong = 1;
}

#define CHECK(field, type, member) check(#field, layout->field, offsetof(type, member))

static void check_code(const struct layout *layout)
{
    CHECK(code_firstlineno, PyCodeObject, co_firstlineno);
    CHECK(code_filename, PyCodeObject, co_filename);
    CHECK(code_extra, PyCodeObject, co_extra);
#if PY_VERSION_HEX >= 0x030b0000
    CHECK(code_name, PyCodeObject, co_qualname);
#else
    CHECK(code_name, PyCodeObject, co_name);
#endif
}

static void check_frame(const struct layout *layout)
{
#if PY_VERSION_HEX < 0x030b0000
    CHECK(frame_code, PyFrameObject, f_code);
    CHECK(frame_previous, PyFrameObject, f_back);
#else
    CHECK(frame_previous, struct _PyInterpreterFrame, previous);
#if PY_VERSION_HEX < 0x030d0000
    CHECK(frame_code, struct _PyInterpreterFrame, f_code);
#else
    CHECK(frame_code, struct _PyInterpreterFrame, f_executable);
#endif
#endif
#if PY_VERSION_HEX >= 0x030e0000
    check("frame_code_tags", layout->frame_code_tags, Py_TAG_BITS);
#else
    check("frame_code_tags", layout->frame_code_tags, 0);
#endif
}

static void check_class_calls(const struct layout *layout)
{
#if PY_MINOR_VERSION == 13
    CHECK(frame_locals, struct _PyInterpreterFrame, localsplus);
    check("object type", LAYOUT_3_13_OBJECT_TYPE, offsetof(PyObject, ob_type));
    check("tp_flags", LAYOUT_3_13_TYPE_FLAGS, offsetof(PyTypeObject, tp_flags));
    check("tp_alloc", LAYOUT_3_13_TYPE_ALLOC, offsetof(PyTypeObject, tp_alloc));
    check("tp_new", LAYOUT_3_13_TYPE_NEW, offsetof(PyTypeObject, tp_new));
    check("co_argcount", LAYOUT_3_13_CODE_ARGCOUNT, offsetof(PyCodeObject, co_argcount));
    check("co_name", LAYOUT_3_13_CODE_NAME, offsetof(PyCodeObject, co_name));
#else
    check("frame_locals", layout->frame_locals, 0);
#endif
}

static void check_thread(const struct layout *layout)
{
    CHECK(thread_interpreter, PyThreadState, interp);
#if PY_VERSION_HEX < 0x030b0000
    CHECK(thread_frame, PyThreadState, frame);
#elif PY_VERSION_HEX < 0x030d0000
    CHECK(thread_frame, PyThreadState, cframe);
    CHECK(cframe_frame, _PyCFrame, current_frame);
#else
    CHECK(thread_frame, PyThreadState, current_frame);
#endif
    check("thread_frame_in_cframe", layout->thread_frame_in_cframe,
          PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030d0000);
#if PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000
    CHECK(thread_c_recursion, PyThreadState, c_recursion_remaining);
    CHECK(thread_py_left, PyThreadState, py_recursion_remaining);
    CHECK(thread_py_limit, PyThreadState, py_recursion_limit);
#else
    check("thread_c_recursion", layout->thread_c_recursion, 0);
#endif
}

int main(void)
{
    const struct layout *layout = layout_of(PY_MINOR_VERSION);
    if (!layout) {
        puts("there is no table for " PY_VERSION);
        return 1;
    }
    check_code(layout);
    check_frame(layout);
    check_thread(layout);
    check_class_calls(layout);
    return wrong;
}
