/* The functions of sys that CPython 3.12 introduced, with the same answers and the same exceptions.
 *
 * On 3.12 they exist but know only "perf". There the new functions keep the old ones (a tuple of
 * three, in the interpreter's dictionary) and hand everything on to them but "perf_jit". One of the
 * two is on at a time: switching one on switches the other off. */
#include "interp/sys_functions.h"

#include "interp/activation.h"

#include <string.h>

enum { LAST_WITHOUT_JIT = 12, ACTIVATE = 0, DEACTIVATE = 1, IS_ACTIVE = 2, FUNCTIONS = 3 };

/* PyTypeObject.tp_name */
enum { OBJECT_TYPE = 8, TYPE_NAME = 24 };

/* Where the tuple is kept, or None when there were none; missing: nothing is installed yet. */
static const char ORIGINALS[] = "pitviper.sys_functions";

static const char *type_name(struct py_object *object)
{
    const void *type = *(void *const *)((const char *)object + OBJECT_TYPE);
    return object == py.none ? "None" : *(const char *const *)((const char *)type + TYPE_NAME);
}

const char *sys_functions_backend(struct py_object *argument)
{
    if (py.is_instance(argument, py.unicode_type) != 1) {
        py.err_clear();
        py.err_format(*py.exc_type_error,
                      "activate_stack_trampoline() argument must be str, not %.50s",
                      type_name(argument));
        return NULL;
    }
    ptrdiff_t length;
    const char *text = py.unicode_utf8(argument, &length);
    if (text && strlen(text) != (size_t)length) {
        py.err_set_string(*py.exc_value_error, "embedded null character");
        return NULL;
    }
    return text;
}

bool sys_functions_activate(const char *backend)
{
    if (strcmp(backend, "perf") == 0)
        return activation_activate(SYMBOL_MAP);
    if (strcmp(backend, "perf_jit") == 0)
        return activation_activate(SYMBOL_DUMP);
    py.err_format(*py.exc_value_error, "invalid backend: %s", backend);
    return false;
}

static struct py_object *new_none(void)
{
    py.incref(py.none);
    return py.none;
}

/* The functions of 3.12 that ours stand in front of: a tuple, borrowed; NULL before 3.12. */
static struct py_object *find_originals(void)
{
    struct py_object *dict = py.interpreter_dict(py.interpreter_get());
    struct py_object *originals = dict ? py.dict_get(dict, ORIGINALS) : NULL;
    return originals == py.none ? NULL : originals;
}

/* Calls one of the three original functions. */
static struct py_object *call_original(struct py_object *originals, int which,
                                       struct py_object *argument)
{
    struct py_object *function = py.tuple_get(originals, which);
    struct py_object *arguments = argument ? py.build("(O)", argument) : NULL;
    struct py_object *result = argument && !arguments ? NULL : py.call(function, arguments);
    py_release(arguments);
    return result;
}

static struct py_object *activate(struct py_object *self, struct py_object *argument)
{
    (void)self;
    struct py_object *originals = find_originals();
    const char *backend = sys_functions_backend(argument);
    if (!backend)
        return NULL;
    if (originals && strcmp(backend, "perf_jit") != 0) {
        if (strcmp(backend, "perf") == 0)
            activation_deactivate();
        return call_original(originals, ACTIVATE, argument);
    }
    return sys_functions_activate(backend) ? new_none() : NULL;
}

static struct py_object *deactivate(struct py_object *self, struct py_object *nothing)
{
    (void)self;
    (void)nothing;
    struct py_object *originals = find_originals();
    activation_deactivate();
    return originals ? call_original(originals, DEACTIVATE, NULL) : new_none();
}

static struct py_object *is_active(struct py_object *self, struct py_object *nothing)
{
    (void)self;
    (void)nothing;
    struct py_object *originals = find_originals();
    if (activation_is_active() || !originals)
        return py.bool_from_long(activation_is_active());
    return call_original(originals, IS_ACTIVE, NULL);
}

static struct py_method methods[FUNCTIONS] = {
    {"activate_stack_trampoline", activate, PY_METH_O,
     "activate_stack_trampoline($module, backend, /)\n--\n\n"
     "Put a trampoline with a name for profilers before each Python function.\n\n"
     "backend is \"perf\" or \"perf_jit\"."},
    {"deactivate_stack_trampoline", deactivate, PY_METH_NOARGS,
     "deactivate_stack_trampoline($module, /)\n--\n\n"
     "Stop what activate_stack_trampoline() started, if anything."},
    {"is_stack_trampoline_active", is_active, PY_METH_NOARGS,
     "is_stack_trampoline_active($module, /)\n--\n\n"
     "Whether trampolines are on in this interpreter."},
};

/* A tuple of the functions that are in sys now, or None when there are none. */
static struct py_object *existing_functions(void)
{
    struct py_object *found[FUNCTIONS];
    for (int i = 0; i < FUNCTIONS; i++) {
        found[i] = py.sys_get(methods[i].name);
        if (!found[i])
            return new_none();
    }
    return py.build("(OOO)", found[ACTIVATE], found[DEACTIVATE], found[IS_ACTIVE]);
}

void sys_functions_install(void)
{
    if (py.minor > LAST_WITHOUT_JIT)
        return;
    struct py_object *dict = py.interpreter_dict(py.interpreter_get());
    if (!dict || py.dict_get(dict, ORIGINALS))
        return;
    struct py_object *originals = existing_functions();
    struct py_object *module = py.unicode_from_string("sys");
    bool noted = originals && module && py.dict_set(dict, ORIGINALS, originals) == 0;
    for (int i = 0; noted && i < FUNCTIONS; i++) {
        struct py_object *function = py.function_new(&methods[i], NULL, module);
        if (function)
            py.sys_set(methods[i].name, function);
        py_release(function);
    }
    py.err_clear();
    py_release(module);
    py_release(originals);
}
