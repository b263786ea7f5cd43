/* On means: our hook stands in the place of the evaluator, and calls whatever stood there before.
 *
 *     nothing there          hook -> trampoline -> default evaluator
 *     another hook there     hook -> trampoline -> the other hook -> ...     put back when we leave
 *
 * Others may put theirs over ours while we are on. Then ours cannot be taken out without tearing
 * theirs out as well, so it stays and hands calls through, and we remember that it is buried:
 * putting it on top again would make the two call each other for ever. When theirs calls CPython's
 * evaluator instead of ours, nothing reaches us any more. Who switches us on then gets an
 * exception; a line of Python that is run for the purpose shows which of the two it is.
 *
 * CPython's own trampolines (3.12 and later) would give every function two names, and a second map
 * under the same path. They are switched off when ours are switched on, and their map is kept. */
#include "interp/activation.h"

#include "interp/class_calls.h"
#include "interp/hook.h"
#include "interp/interpreter.h"
#include "interp/layout.h"
#include "interp/registration.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_WITH_OWN_TRAMPOLINES = 12 };

const char *activation_obstacle(void)
{
    const char *reason = pyapi_load();
    if (reason)
        return reason;
    const struct layout *layout = layout_of(py.minor);
    reason = layout_check(layout, py.minor);
    if (reason)
        return reason;
    interpreter_layout = layout;
    return pyapi_check_running();
}

/* Calls sys.NAME(). A new reference, or NULL without an exception. */
static struct py_object *call_sys(const char *name)
{
    struct py_object *function = py.sys_get(name);
    struct py_object *result = function ? py.call(function, NULL) : NULL;
    if (!result)
        py.err_clear();
    return result;
}

/* Whether CPython's own trampolines are on. */
static bool builtin_is_active(const struct interpreter *interpreter)
{
    if (py.minor < FIRST_WITH_OWN_TRAMPOLINES || interpreter->active)
        return false;
    struct py_object *answer = call_sys("is_stack_trampoline_active");
    bool is_on = answer && py.is_true(answer) == 1;
    py_release(answer);
    return is_on;
}

static struct py_object *after_fork_in_child(struct py_object *self, struct py_object *nothing)
{
    (void)self;
    (void)nothing;
    if (registration_is_after_fork() && activation_is_active())
        registration_after_fork(py.thread_get());
    py.incref(py.none);
    return py.none;
}

/* Asks os.fork() to call us in the child. A program without it has no Python fork either. */
static void watch_python_fork(void)
{
    static struct py_method method = {"pitviper_after_fork", after_fork_in_child, PY_METH_NOARGS,
                                      NULL};
    struct py_object *modules = py.sys_get("modules");
    struct py_object *posix = modules ? py.dict_get(modules, "posix") : NULL;
    struct py_object *watch = posix ? py.get_attribute(posix, "register_at_fork") : NULL;
    struct py_object *callback = watch ? py.function_new(&method, NULL, NULL) : NULL;
    struct py_object *nothing = callback ? py.build("()") : NULL;
    struct py_object *keywords = nothing ? py.build("{sO}", "after_in_child", callback) : NULL;
    struct py_object *result = keywords ? py.call_with(watch, nothing, keywords) : NULL;
    py.err_clear();
    py_release(result);
    py_release(keywords);
    py_release(nothing);
    py_release(callback);
    py_release(watch);
}

/* Whether Python code comes to our hook through the one that stands before it. */
static bool is_reached(struct interpreter *interpreter)
{
    enum { EVALUATE = 258 /* Py_eval_input */ };
    ptrdiff_t hot_index = interpreter->hot_index;
    interpreter->hot_index = INTERPRETER_INDEX_COLD;
    interpreter->reached = false;
    struct py_object *names = py.build("{}");
    struct py_object *result = names ? py.run("None", EVALUATE, names, names) : NULL;
    if (!result)
        py.err_clear();
    py_release(result);
    py_release(names);
    interpreter->hot_index = hot_index;
    return interpreter->reached;
}

/* False when it is there already but out of reach. */
static bool install_hook(struct interpreter *interpreter)
{
    py_evaluator *hook = hook_for(interpreter, py.minor);
    py_evaluator *current = py.get_evaluator(interpreter->handle);
    bool covered = current != py.evaluator && (interpreter->active || interpreter->buried);
    if (current == hook)
        return true;
    if (covered)
        return is_reached(interpreter);
    interpreter->evaluator = current;
    interpreter->buried = false;
    py.set_evaluator(interpreter->handle, hook);
    return true;
}

/* Raises the OSError that fits; false. */
static bool fail(int result, enum symbol_kind kind)
{
    struct py_object *type = *py.exc_os_error;
    char path[SYMBOL_FILE_PATH_BYTES];
    symbol_file_path(kind, getpid(), path);
    struct py_object *details = py.build("(iss)", -result, strerror(-result), path);
    struct py_object *error = details ? py.call(type, details) : NULL;
    if (error)
        py.err_set_object(type, error);
    py_release(error);
    py_release(details);
    return false;
}

bool activation_activate(enum symbol_kind kind)
{
    const char *obstacle = activation_obstacle();
    if (obstacle) {
        bool is_whole = strncmp(obstacle, "Cannot ", 7) == 0;
        py.err_format(*py.exc_value_error, "%s%s",
                      is_whole ? "" : "perf trampoline not available: ", obstacle);
        return false;
    }
    if (registration_is_after_fork())
        registration_after_fork(py.thread_get());
    bool is_new = !interpreter_find(py.interpreter_get());
    struct interpreter *interpreter = interpreter_current();
    if (!interpreter)
        return false;
    if (is_new)
        watch_python_fork();
    if (registration_ready(interpreter) < 0) {
        py.err_set_string(*py.exc_value_error, "perf trampoline not available: the system gives "
                                               "this process no executable memory");
        return false;
    }
    bool replaces_builtin = builtin_is_active(interpreter);
    int result = registration_open(kind, replaces_builtin && kind == SYMBOL_MAP);
    if (result < 0)
        return fail(result, kind);
    if (replaces_builtin)
        py_release(call_sys("deactivate_stack_trampoline"));
    if (!install_hook(interpreter)) {
        activation_deactivate();
        py.err_set_string(*py.exc_value_error,
                          "perf trampoline not available: another hook (PEP 523) was put in the "
                          "place of ours and does not call it");
        return false;
    }
    interpreter->kind = kind;
    if (!interpreter->active)
        class_calls_start();
    interpreter->active = true;
    registration_renew(interpreter);
    return true;
}

void activation_deactivate(void)
{
    if (pyapi_load())
        return;
    struct interpreter *interpreter = interpreter_find(py.interpreter_get());
    if (!interpreter || !interpreter->active)
        return;
    interpreter->active = false;
    interpreter->hot_index = INTERPRETER_INDEX_COLD;
    py_evaluator *current = py.get_evaluator(interpreter->handle);
    interpreter->buried = current != hook_for(interpreter, py.minor) && current != py.evaluator;
    if (current == hook_for(interpreter, py.minor))
        py.set_evaluator(interpreter->handle, interpreter->evaluator);
    class_calls_stop();
}

/* CPython 3.15's own sys.deactivate_stack_trampoline() removes any hook, ours too. */
bool activation_is_active(void)
{
    if (pyapi_load())
        return false;
    struct interpreter *interpreter = interpreter_find(py.interpreter_get());
    return interpreter && interpreter->active &&
           py.get_evaluator(interpreter->handle) != py.evaluator;
}
