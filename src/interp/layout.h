/* Where the fields lie that are read directly from CPython's structures, per minor version.
 *
 * Most of what we need goes through functions. The exceptions are on the path of every Python call
 * (from the frame to the code object to our trampoline) or have no function at all. The tables are
 * in the header so that a hook that is written for one of them is compiled with constants.
 * tests/layout/layout_check.c compares them with the headers of every interpreter found. */
#ifndef PITVIPER_INTERP_LAYOUT_H
#define PITVIPER_INTERP_LAYOUT_H

#include "interp/pyapi.h"

#include <stdbool.h>
#include <stdint.h>

/* Offsets in bytes. */
struct layout {
    uint16_t thread_interpreter; /* PyThreadState.interp */
    uint16_t thread_frame;       /* the innermost frame, or where the pointer to it is found */
    bool thread_frame_in_cframe; /* thread_frame is the offset of a _PyCFrame pointer ... */
    uint8_t cframe_frame;        /* ... and this is the frame's offset in it */
    uint16_t thread_c_recursion; /* int, C calls left; 0: this version does not count them */
    uint16_t thread_py_left;     /* int; with thread_c_recursion: Python calls left ... */
    uint16_t thread_py_limit;    /* ... of so many */

    uint16_t frame_code;     /* the code object, with tag bits on 3.14 and later */
    uint16_t frame_previous; /* the caller's frame */
    uint8_t frame_code_tags; /* mask of the tag bits */
    uint16_t frame_locals;   /* the first argument; 3.13 only, 0 elsewhere */

    uint16_t code_firstlineno; /* int */
    uint16_t code_filename;
    uint16_t code_name; /* the qualified name where there is one: 3.11 and later */
    uint16_t code_extra;

    bool checks_stack; /* the evaluator itself notices the end of the C stack */
};

/* _PyCodeObjectExtra, the same in every version: what code_extra points to, or NULL. */
struct code_extra {
    ptrdiff_t size;
    void *values[];
};

static const struct layout LAYOUT_3_9 = {
    .thread_interpreter = 16,
    .thread_frame = 24,
    .frame_code = 32,
    .frame_previous = 24,
    .code_firstlineno = 40,
    .code_filename = 104,
    .code_name = 112,
    .code_extra = 144,
};

static const struct layout LAYOUT_3_11 = {
    .thread_interpreter = 16,
    .thread_frame = 56,
    .thread_frame_in_cframe = true,
    .cframe_frame = 8,
    .frame_code = 32,
    .frame_previous = 48,
    .code_firstlineno = 72,
    .code_filename = 112,
    .code_name = 128,
    .code_extra = 176,
};

static const struct layout LAYOUT_3_12 = {
    .thread_interpreter = 16,
    .thread_frame = 56,
    .thread_frame_in_cframe = true,
    .cframe_frame = 0,
    .thread_c_recursion = 36,
    .thread_py_left = 28,
    .thread_py_limit = 32,
    .frame_code = 0,
    .frame_previous = 8,
    .code_firstlineno = 68,
    .code_filename = 112,
    .code_name = 128,
    .code_extra = 184,
};

static const struct layout LAYOUT_3_13 = {
    .thread_interpreter = 16,
    .thread_frame = 72,
    .thread_c_recursion = 52,
    .thread_py_left = 44,
    .thread_py_limit = 48,
    .frame_code = 0,
    .frame_previous = 8,
    .frame_locals = 72,
    .code_firstlineno = 68,
    .code_filename = 112,
    .code_name = 128,
    .code_extra = 192,
};

static const struct layout LAYOUT_3_14 = {
    .thread_interpreter = 16,
    .thread_frame = 72,
    .frame_code = 0,
    .frame_code_tags = 3,
    .frame_previous = 8,
    .code_firstlineno = 68,
    .code_filename = 112,
    .code_name = 128,
    .code_extra = 200,
    .checks_stack = true,
};

/* What interp/class_calls.c needs to know of 3.13. */
enum {
    LAYOUT_3_13_OBJECT_TYPE = 8,
    LAYOUT_3_13_TYPE_FLAGS = 168,
    LAYOUT_3_13_TYPE_ALLOC = 304,
    LAYOUT_3_13_TYPE_NEW = 312,
    LAYOUT_3_13_CODE_ARGCOUNT = 52, /* int */
    LAYOUT_3_13_CODE_NAME = 120,
};

/* The table of 3.minor. 3.10 is laid out as 3.9, and 3.15 as 3.14. */
static inline const struct layout *layout_of(int minor)
{
    switch (minor) {
    case 9:
    case 10:
        return &LAYOUT_3_9;
    case 11:
        return &LAYOUT_3_11;
    case 12:
        return &LAYOUT_3_12;
    case 13:
        return &LAYOUT_3_13;
    case 14:
    case 15:
        return &LAYOUT_3_14;
    default:
        return NULL;
    }
}

static inline void *layout_pointer(const void *object, size_t offset)
{
    return *(void *const *)((const char *)object + offset);
}

static inline int *layout_int(void *object, size_t offset)
{
    return (int *)((char *)object + offset);
}

static inline struct py_object *layout_frame_code(const struct layout *layout,
                                                  const struct py_frame *frame)
{
    uintptr_t word = (uintptr_t)layout_pointer(frame, layout->frame_code);
    return (struct py_object *)(word & ~(uintptr_t)layout->frame_code_tags);
}

/* Where the value of `index` is kept for a code object, or NULL when nothing was ever set. */
static inline void **layout_extra(const struct layout *layout, const struct py_object *code,
                                  ptrdiff_t index)
{
    struct code_extra *extra = layout_pointer(code, layout->code_extra);
    return extra && index < extra->size ? &extra->values[index] : NULL;
}

/* The innermost Python frame of a thread, or NULL. */
struct py_frame *layout_current_frame(const struct layout *layout, struct py_thread *thread);

/* Compares the table with what the interpreter says of itself (3.13 and later publish it). NULL, or
 * what does not fit (static). */
const char *layout_check(const struct layout *layout, int minor);

#endif
