/* The extension module pitviper._pitviper, for every version from 3.9 on and without its headers.
 *
 * An extension module is a function PyInit_NAME that returns a PyModuleDef. That structure has kept
 * its form since Python 3.5 and is declared here by hand. Only two things differ by version: 3.12
 * and later want to be told, by a slot, that subinterpreters with a GIL of their own may import it,
 * and older ones refuse a slot that they do not know. Builds with another PyObject (free-threaded,
 * Py_TRACE_REFS) are refused before the structure is shown to them.
 *
 * When the shared object was preloaded (pitviper run) and the package is installed too, two copies
 * of it are in the process, and only one of them may hook the interpreter. So the imported one asks
 * for pitviper_shared_init, which the dynamic linker finds in the preloaded one first. */
#include "interp/activation.h"
#include "interp/code_arena.h"
#include "interp/interpreter.h"
#include "interp/pyapi.h"
#include "interp/registration.h"
#include "interp/startup.h"
#include "interp/sys_functions.h"

#include <dlfcn.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SLOT_MULTIPLE_INTERPRETERS = 3, PER_INTERPRETER_GIL_SUPPORTED = 2, FIRST_WITH_SLOT = 12 };

struct slot {
    int number;
    void *value;
};

struct module_def {
    struct {
        ptrdiff_t reference_count;
        void *type;
        void *init;
        ptrdiff_t index;
        struct py_object *copy;
    } base;
    const char *name;
    const char *doc;
    ptrdiff_t size;
    struct py_method *methods;
    struct slot *slots;
    void *traverse, *clear, *free;
};

static struct py_object *new_none(void)
{
    py.incref(py.none);
    return py.none;
}

static struct py_object *activate(struct py_object *module, struct py_object *argument)
{
    (void)module;
    const char *backend = sys_functions_backend(argument);
    return backend && sys_functions_activate(backend) ? new_none() : NULL;
}

static struct py_object *deactivate(struct py_object *module, struct py_object *nothing)
{
    (void)module;
    (void)nothing;
    activation_deactivate();
    return new_none();
}

static struct py_object *is_active(struct py_object *module, struct py_object *nothing)
{
    (void)module;
    (void)nothing;
    return py.bool_from_long(activation_is_active());
}

static struct py_object *startup(struct py_object *module, struct py_object *nothing)
{
    (void)module;
    (void)nothing;
    startup_run();
    return new_none();
}

static struct py_object *install_sys_functions(struct py_object *module, struct py_object *nothing)
{
    (void)module;
    (void)nothing;
    sys_functions_install();
    return new_none();
}

static struct py_object *status(struct py_object *module, struct py_object *nothing)
{
    (void)module;
    (void)nothing;
    const char *obstacle = activation_obstacle();
    bool active = activation_is_active();
    struct interpreter *interpreter = interpreter_find(py.interpreter_get());
    enum symbol_kind kind = interpreter ? interpreter->kind : SYMBOL_MAP;
    registration_lock();
    struct symbol_file file = *registration_file(kind);
    size_t memory_bytes = code_arena_total_bytes();
    registration_unlock();
    return py.build("{szszszsKsKsisK}", "unavailable", obstacle, "mode",
                    !active              ? NULL
                    : kind == SYMBOL_MAP ? "perf"
                                         : "perf_jit",
                    "file", file.open ? file.path : NULL, "written",
                    (unsigned long long)file.written, "lost", (unsigned long long)file.lost,
                    "last_error", file.last_error, "memory_bytes",
                    (unsigned long long)memory_bytes);
}

static struct py_method methods[] = {
    {"activate_stack_trampoline", activate, PY_METH_O,
     "activate_stack_trampoline($module, backend, /)\n--\n\n"
     "Put a trampoline with a name for profilers before each Python function.\n\n"
     "backend is \"perf\" (/tmp/perf-PID.map) or \"perf_jit\" (/tmp/jit-PID.dump)."},
    {"deactivate_stack_trampoline", deactivate, PY_METH_NOARGS,
     "deactivate_stack_trampoline($module, /)\n--\n\n"
     "Stop what activate_stack_trampoline() started, if anything."},
    {"is_stack_trampoline_active", is_active, PY_METH_NOARGS,
     "is_stack_trampoline_active($module, /)\n--\n\n"
     "Whether pitviper's trampolines are on in this interpreter."},
    {"status", status, PY_METH_NOARGS,
     "status($module, /)\n--\n\n"
     "What is on, where names go, and how many of them could not be written."},
    {"_install_sys_functions", install_sys_functions, PY_METH_NOARGS,
     "_install_sys_functions($module, /)\n--\n\n"
     "Put into sys what this version of Python lacks there."},
    {"_startup", startup, PY_METH_NOARGS,
     "_startup($module, /)\n--\n\nDo what the command line and the environment ask for."},
    {0},
};

static struct slot slots[2];

static struct module_def definition = {
    .base.reference_count = 1,
    .name = "pitviper._pitviper",
    .doc = "Python functions in perf and samply.",
    .methods = methods,
    .slots = slots,
};

static struct py_object *refuse(const char *reason)
{
    void (*set_string)(struct py_object *, const char *);
    *(void **)&set_string = dlsym(RTLD_DEFAULT, "PyErr_SetString");
    struct py_object **import_error = dlsym(RTLD_DEFAULT, "PyExc_ImportError");
    if (set_string && import_error)
        set_string(*import_error, reason);
    return NULL;
}

EXPORT struct py_object *pitviper_shared_init(void);
EXPORT struct py_object *PyInit__pitviper(void);

struct py_object *pitviper_shared_init(void)
{
    const char *reason = pyapi_load();
    if (reason)
        return refuse(reason);
    if (py.minor >= FIRST_WITH_SLOT)
        slots[0] = (struct slot){SLOT_MULTIPLE_INTERPRETERS,
                                 (void *)(uintptr_t)PER_INTERPRETER_GIL_SUPPORTED};
    return py.module_def_init(&definition);
}

struct py_object *PyInit__pitviper(void)
{
    struct py_object *(*init)(void);
    *(void **)&init = dlsym(RTLD_DEFAULT, "pitviper_shared_init");
    return init ? init() : pitviper_shared_init();
}
