/* Compares the tables of src/interp/sample_layout.c with the headers of one CPython, as
 * layout_check.c does with those of layout.h. */
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

#include "interp/sample_layout.h"

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

static void check_thread(const struct sample_layout *layout)
{
    CHECK(thread_id, PyThreadState, thread_id);
    check("next thread", 8, offsetof(PyThreadState, next));
#if PY_MINOR_VERSION < 13
    check("next interpreter", 0, offsetof(PyInterpreterState, next));
#endif
#if PY_MINOR_VERSION < 11
    CHECK(interpreter_threads, PyInterpreterState, tstate_head);
#elif PY_MINOR_VERSION < 13
    CHECK(interpreter_threads, PyInterpreterState, threads.head);
#endif
#if PY_MINOR_VERSION < 11
    CHECK(thread_frame, PyThreadState, frame);
#elif PY_MINOR_VERSION >= 13
    CHECK(thread_frame, PyThreadState, current_frame);
#else
    check("thread_frame", layout->thread_frame, 0);
#endif
#if PY_MINOR_VERSION == 10
    CHECK(thread_cframe, PyThreadState, cframe);
    CHECK(cframe_previous, CFrame, previous);
#elif PY_MINOR_VERSION == 11 || PY_MINOR_VERSION == 12
    CHECK(thread_cframe, PyThreadState, cframe);
    CHECK(cframe_previous, _PyCFrame, previous);
    CHECK(cframe_frame, _PyCFrame, current_frame);
#else
    check("thread_cframe", layout->thread_cframe, 0);
#endif
}

static void check_frame(const struct sample_layout *layout)
{
#if PY_MINOR_VERSION < 11
    CHECK(frame_previous, PyFrameObject, f_back);
    CHECK(frame_code, PyFrameObject, f_code);
    CHECK(frame_offset, PyFrameObject, f_lasti);
    check("frame_offset_unit", layout->frame_offset_unit, PY_MINOR_VERSION == 9 ? 1 : 2);
#else
    CHECK(frame_previous, struct _PyInterpreterFrame, previous);
    check("frame_offset_unit", layout->frame_offset_unit, 0);
#if PY_MINOR_VERSION < 13
    CHECK(frame_code, struct _PyInterpreterFrame, f_code);
    CHECK(frame_instruction, struct _PyInterpreterFrame, prev_instr);
#else
    CHECK(frame_code, struct _PyInterpreterFrame, f_executable);
    CHECK(frame_instruction, struct _PyInterpreterFrame, instr_ptr);
#endif
#if PY_MINOR_VERSION == 11
    CHECK(frame_is_entry, struct _PyInterpreterFrame, is_entry);
#else
    CHECK(frame_owner, struct _PyInterpreterFrame, owner);
    check("frame_is_entry", layout->frame_is_entry, 0);
#endif
#if PY_MINOR_VERSION == 12 || PY_MINOR_VERSION == 13
    check("shim", FRAME_OWNER_SHIM, FRAME_OWNED_BY_CSTACK);
#elif PY_MINOR_VERSION > 13
    check("shim", FRAME_OWNER_SHIM, FRAME_OWNED_BY_INTERPRETER);
#endif
#endif
#if PY_MINOR_VERSION >= 14
    check("frame_code_tags", layout->frame_code_tags, Py_TAG_BITS);
#else
    check("frame_code_tags", layout->frame_code_tags, 0);
#endif
}

static void check_code(const struct sample_layout *layout)
{
    CHECK(code_flags, PyCodeObject, co_flags);
    CHECK(code_first_line, PyCodeObject, co_firstlineno);
    CHECK(code_file, PyCodeObject, co_filename);
#if PY_MINOR_VERSION == 9
    CHECK(code_lines, PyCodeObject, co_lnotab);
#else
    CHECK(code_lines, PyCodeObject, co_linetable);
#endif
#if PY_MINOR_VERSION < 11
    CHECK(code_name, PyCodeObject, co_name);
    CHECK(code_bytes, PyCodeObject, co_code);
#else
    CHECK(code_name, PyCodeObject, co_qualname);
    CHECK(code_instructions, PyCodeObject, co_code_adaptive);
    check("CODE_UNITS", CODE_UNITS, offsetof(PyVarObject, ob_size));
    check("code_bytes", layout->code_bytes, 0);
#endif
}

/* The bits of a string's state have names but no offsets: a string is made of them. */
static void check_text(const struct sample_layout *layout)
{
    check("OBJECT_TYPE", OBJECT_TYPE, offsetof(PyObject, ob_type));
    check("BYTES_LENGTH", BYTES_LENGTH, offsetof(PyVarObject, ob_size));
    check("BYTES_DATA", BYTES_DATA, offsetof(PyBytesObject, ob_sval));
    check("TEXT_LENGTH", TEXT_LENGTH, offsetof(PyASCIIObject, length));
    check("text_ascii", layout->text_ascii, sizeof(PyASCIIObject));
    check("text_other", layout->text_other, sizeof(PyCompactUnicodeObject));
    union {
        PyASCIIObject text;
        unsigned char bytes[sizeof(PyASCIIObject)];
    } made;
    memset(&made, 0, sizeof made);
    made.text.state.kind = 2;
    made.text.state.compact = 1;
    check("kind and compact", made.bytes[TEXT_STATE], 2 << 2 | 1 << 5);
    memset(&made, 0, sizeof made);
    made.text.state.ascii = 1;
    check("ascii", made.bytes[TEXT_STATE], 1 << 6);
}

int main(void)
{
    const struct sample_layout *layout = sample_layout_of(PY_MINOR_VERSION);
    if (!layout) {
        puts("there is no table for " PY_VERSION);
        return 1;
    }
    check_thread(layout);
    check_frame(layout);
    check_code(layout);
    check_text(layout);
    return wrong;
}
