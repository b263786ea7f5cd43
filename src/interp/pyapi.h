/* The few functions of CPython's C API that the guest needs, found by name at run time.
 *
 * The shared object is built without Python's headers and linked without libpython, so that one
 * file serves every CPython from 3.9 on and can be preloaded into processes that have none. */
#ifndef PITVIPER_INTERP_PYAPI_H
#define PITVIPER_INTERP_PYAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Python's own structures are never looked into through these names; interp/layout.h knows where
 * the few fields lie that are read directly. */
struct py_object;
struct py_thread;      /* PyThreadState */
struct py_interpreter; /* PyInterpreterState */
struct py_frame;       /* PyFrameObject up to 3.10, _PyInterpreterFrame from 3.11 on */

/* Runs a frame: CPython's evaluator, and every hook in its place (PEP 523). */
typedef struct py_object *py_evaluator(struct py_thread *, struct py_frame *, int throwflag);

typedef struct py_object *py_c_function(struct py_object *self, struct py_object *argument);

/* PyMethodDef; its form is part of the stable ABI. */
struct py_method {
    const char *name;
    py_c_function *function;
    int flags;
    const char *doc;
};

enum { PY_METH_NOARGS = 4, PY_METH_O = 8 };

struct pyapi {
    int minor; /* of the version 3.minor */

    const char *(*get_version)(void);
    int (*is_initialized)(void);
    int (*add_audit_hook)(int (*)(const char *, struct py_object *, void *), void *);

    void (*incref)(struct py_object *);
    void (*decref)(struct py_object *);
    struct py_object *(*err_occurred)(void);
    void (*err_fetch)(struct py_object **, struct py_object **, struct py_object **);
    void (*err_restore)(struct py_object *, struct py_object *, struct py_object *);
    void (*err_clear)(void);
    void (*err_set_object)(struct py_object *, struct py_object *);
    void (*err_set_string)(struct py_object *, const char *);
    struct py_object *(*err_format)(struct py_object *, const char *, ...);

    struct py_interpreter *(*interpreter_get)(void);
    int64_t (*interpreter_id)(struct py_interpreter *);
    struct py_object *(*interpreter_dict)(struct py_interpreter *); /* borrowed */
    struct py_thread *(*thread_get)(void);
    py_evaluator *(*get_evaluator)(struct py_interpreter *);
    void (*set_evaluator)(struct py_interpreter *, py_evaluator *);
    py_evaluator *evaluator; /* the default one */

    ptrdiff_t (*request_extra_index)(void (*)(void *));
    int (*set_extra)(struct py_object *code, ptrdiff_t index, void *value);

    ptrdiff_t (*unicode_length)(struct py_object *);
    uint32_t (*unicode_read)(struct py_object *, ptrdiff_t);
    const char *(*unicode_utf8)(struct py_object *, ptrdiff_t *);
    struct py_object *(*unicode_from_string)(const char *);
    struct py_object *(*bool_from_long)(long);
    int (*is_instance)(struct py_object *, struct py_object *);
    int (*is_true)(struct py_object *);
    struct py_object *(*get_attribute)(struct py_object *, const char *);
    struct py_object *(*call)(struct py_object *callable, struct py_object *arguments);
    struct py_object *(*call_with)(struct py_object *callable, struct py_object *arguments,
                                   struct py_object *keywords);
    struct py_object *(*run)(const char *source, int start, struct py_object *globals,
                             struct py_object *locals);
    struct py_object *(*str)(struct py_object *);
    struct py_object *(*build)(const char *format, ...);
    struct py_object *(*tuple_get)(struct py_object *, ptrdiff_t);   /* borrowed */
    struct py_object *(*dict_get)(struct py_object *, const char *); /* borrowed, no exception */
    int (*dict_set)(struct py_object *, const char *, struct py_object *);
    struct py_object *(*capsule_new)(void *, const char *, void (*)(struct py_object *));
    void *(*capsule_pointer)(struct py_object *, const char *);
    struct py_object *(*sys_get)(const char *); /* borrowed, no exception */
    int (*sys_set)(const char *, struct py_object *);
    struct py_object *(*function_new)(struct py_method *, struct py_object *self,
                                      struct py_object *module);
    struct py_object *(*module_def_init)(void *);
    struct py_object *(*import_module)(const char *);

    /* For interp/class_calls.c; NULL where they do not exist. */
    void (*visit_objects)(int (*)(struct py_object *, void *), void *);
    void (*type_modified)(struct py_object *);
    void *generic_alloc;
    struct py_object *type_type;
    struct py_object *object_type;

    struct py_object *none;
    struct py_object *code_type;
    struct py_object *unicode_type;
    struct py_object **exc_value_error; /* a variable that holds the exception type */
    struct py_object **exc_type_error;
    struct py_object **exc_import_error;
    struct py_object **exc_recursion_error;
    struct py_object **exc_os_error;
    struct py_object **exc_runtime_error;
    void *runtime; /* _PyRuntime; NULL when it is not exported */
};

/* Filled by pyapi_load. */
extern struct pyapi py;

/* Finds the functions. NULL, or why this interpreter is not supported (static). May be called
 * again: the answer stays. Needs no GIL and calls nothing that would. */
const char *pyapi_load(void);

/* What only a running interpreter can tell: debug builds and an active JIT. NULL or the reason
 * (static). Needs the GIL; leaves no exception. */
const char *pyapi_check_running(void);

/* Releases a reference that may be NULL. */
static inline void py_release(struct py_object *object)
{
    if (object)
        py.decref(object);
}

#endif
