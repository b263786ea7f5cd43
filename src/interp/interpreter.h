/* What we know of one Python interpreter in this process: the main one, or a subinterpreter. */
#ifndef PITVIPER_INTERP_INTERPRETER_H
#define PITVIPER_INTERP_INTERPRETER_H

#include "interp/code_arena.h"
#include "interp/layout.h"
#include "interp/pyapi.h"
#include "interp/symbol_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An index that no code object has room for: every call takes the cold path. */
#define INTERPRETER_INDEX_COLD PTRDIFF_MAX

struct interpreter {
    /* Read by every Python call; written with the GIL held. */
    ptrdiff_t hot_index;     /* `index`, or INTERPRETER_INDEX_COLD; that may be set by anybody */
    py_evaluator *evaluator; /* what trampolines call: the default one, or the hook before ours */
    /* Up to 3.13: the thread that called last, and what it may use of its C stack. */
    struct py_thread *stack_thread;
    uintptr_t stack_low;
    size_t stack_bytes;
    int c_recursion_low;  /* 3.12, 3.13: with fewer C calls left, look at the stack */
    int c_recursion_full; /* the most that any thread was seen to have left */

    /* The rest belongs to whoever holds the GIL of that interpreter. */
    struct py_interpreter *handle; /* NULL: unused, or the interpreter is gone */
    ptrdiff_t index;               /* of our value in co_extra */
    bool active;
    bool buried;  /* another hook was put over ours, and we left it there */
    bool reached; /* a call has taken the cold path since this was cleared */
    bool expired; /* set by anybody: a file has changed; see registration_renew */
    enum symbol_kind kind;
    struct code_arena arena; /* under the lock of registration.c */
    struct interpreter *next;
};

/* The interpreter that was seen first, nearly always the main one. The hooks know its address. */
extern _Alignas(64) struct interpreter interpreter_first;

/* Of the supported version; set before the first hook is installed. */
extern const struct layout *interpreter_layout;

/* The one with that handle, or NULL. Lock-free: entries are never removed, only used again. */
struct interpreter *interpreter_find(const struct py_interpreter *handle);

/* The calling thread's one; made when it is new. NULL with an exception when that fails. Needs the
 * GIL. */
struct interpreter *interpreter_current(void);

#endif
