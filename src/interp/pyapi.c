/* Names to addresses, by dlsym: with RTLD_DEFAULT the search covers the executable, which holds the
 * interpreter in static builds, and libpython in shared ones. A symbol has one name in old versions
 * and another in new ones here and there, so a row of the table has two.
 *
 * What must never happen is that we work with structures that are laid out in another way than we
 * think. So everything that is known to change them is asked for first, and refused by name: PyPy,
 * free-threaded builds, builds with Py_DEBUG or Py_TRACE_REFS, versions that nobody has looked at,
 * other processors. */
#include "interp/pyapi.h"

#include "base/number.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_MINOR = 9, NEWEST_MINOR = 15 };

struct pyapi py;

struct symbol {
    size_t offset;          /* in struct pyapi */
    const char *name;       /* of the newest version */
    const char *older_name; /* or NULL */
};

#define SYMBOL(field, ...)                                                                         \
    {                                                                                              \
        offsetof(struct pyapi, field), __VA_ARGS__, NULL                                           \
    }
#define SYMBOL_RENAMED(field, name, older_name)                                                    \
    {                                                                                              \
        offsetof(struct pyapi, field), name, older_name                                            \
    }

static const struct symbol SYMBOLS[] = {
    SYMBOL(get_version, "Py_GetVersion"),
    SYMBOL(is_initialized, "Py_IsInitialized"),
    SYMBOL(add_audit_hook, "PySys_AddAuditHook"),
    SYMBOL(incref, "Py_IncRef"),
    SYMBOL(decref, "Py_DecRef"),
    SYMBOL(err_occurred, "PyErr_Occurred"),
    SYMBOL(err_fetch, "PyErr_Fetch"),
    SYMBOL(err_restore, "PyErr_Restore"),
    SYMBOL(err_clear, "PyErr_Clear"),
    SYMBOL(err_set_object, "PyErr_SetObject"),
    SYMBOL(err_set_string, "PyErr_SetString"),
    SYMBOL(err_format, "PyErr_Format"),
    SYMBOL(interpreter_get, "PyInterpreterState_Get"),
    SYMBOL(interpreter_id, "PyInterpreterState_GetID"),
    SYMBOL(interpreter_dict, "PyInterpreterState_GetDict"),
    SYMBOL(thread_get, "PyThreadState_Get"),
    SYMBOL(get_evaluator, "_PyInterpreterState_GetEvalFrameFunc"),
    SYMBOL(set_evaluator, "_PyInterpreterState_SetEvalFrameFunc"),
    SYMBOL(evaluator, "_PyEval_EvalFrameDefault"),
    SYMBOL_RENAMED(request_extra_index, "PyUnstable_Eval_RequestCodeExtraIndex",
                   "_PyEval_RequestCodeExtraIndex"),
    SYMBOL_RENAMED(set_extra, "PyUnstable_Code_SetExtra", "_PyCode_SetExtra"),
    SYMBOL(unicode_length, "PyUnicode_GetLength"),
    SYMBOL(unicode_read, "PyUnicode_ReadChar"),
    SYMBOL(unicode_utf8, "PyUnicode_AsUTF8AndSize"),
    SYMBOL(unicode_from_string, "PyUnicode_FromString"),
    SYMBOL(bool_from_long, "PyBool_FromLong"),
    SYMBOL(is_instance, "PyObject_IsInstance"),
    SYMBOL(is_true, "PyObject_IsTrue"),
    SYMBOL(get_attribute, "PyObject_GetAttrString"),
    SYMBOL(call, "PyObject_CallObject"),
    SYMBOL(call_with, "PyObject_Call"),
    SYMBOL(run, "PyRun_String"),
    SYMBOL(str, "PyObject_Str"),
    SYMBOL(build, "Py_BuildValue"),
    SYMBOL(tuple_get, "PyTuple_GetItem"),
    SYMBOL(dict_get, "PyDict_GetItemString"),
    SYMBOL(dict_set, "PyDict_SetItemString"),
    SYMBOL(capsule_new, "PyCapsule_New"),
    SYMBOL(capsule_pointer, "PyCapsule_GetPointer"),
    SYMBOL(sys_get, "PySys_GetObject"),
    SYMBOL(sys_set, "PySys_SetObject"),
    SYMBOL(function_new, "PyCFunction_NewEx"),
    SYMBOL(module_def_init, "PyModuleDef_Init"),
    SYMBOL(import_module, "PyImport_ImportModule"),
    SYMBOL(none, "_Py_NoneStruct"),
    SYMBOL(code_type, "PyCode_Type"),
    SYMBOL(unicode_type, "PyUnicode_Type"),
    SYMBOL(exc_value_error, "PyExc_ValueError"),
    SYMBOL(exc_type_error, "PyExc_TypeError"),
    SYMBOL(exc_import_error, "PyExc_ImportError"),
    SYMBOL(exc_recursion_error, "PyExc_RecursionError"),
    SYMBOL(exc_os_error, "PyExc_OSError"),
    SYMBOL(exc_runtime_error, "PyExc_RuntimeError"),
};

static void *find_symbol(const struct symbol *symbol)
{
    void *found = dlsym(RTLD_DEFAULT, symbol->name);
    if (!found && symbol->older_name)
        found = dlsym(RTLD_DEFAULT, symbol->older_name);
    return found;
}

/* "3.13.0 (main, ...) [GCC ...]" */
static const char *check_version(const char *version)
{
    const char *at = version;
    uint64_t major, minor;
    if (!number_take(&at, 10, &major) || *at++ != '.' || !number_take(&at, 10, &minor))
        return "this is not a CPython";
    if (strstr(version, "PyPy") || strstr(version, "GraalPy"))
        return "this is not a CPython";
    if (strstr(version, "free-threading"))
        return "free-threaded builds are not supported";
    if (major != 3 || minor < OLDEST_MINOR)
        return "this version is older than 3.9";
    if (minor > NEWEST_MINOR)
        return "this version is newer than 3.15 and unknown to this pitviper";
    py.minor = (int)minor;
    return NULL;
}

static const char *load(void)
{
#if !defined(__x86_64__)
    return "this processor architecture is not supported";
#endif
    const char *(*get_version)(void);
    *(void **)&get_version = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    if (!get_version)
        return "there is no Python in this process";
    const char *reason = check_version(get_version());
    if (reason)
        return reason;
    if (!dlsym(RTLD_DEFAULT, "PyModule_Create2"))
        return "builds with Py_TRACE_REFS are not supported";
    for (size_t i = 0; i < sizeof SYMBOLS / sizeof *SYMBOLS; i++) {
        void *found = find_symbol(&SYMBOLS[i]);
        if (!found)
            return "this build does not export a function that is needed";
        memcpy((char *)&py + SYMBOLS[i].offset, &found, sizeof found);
    }
    py.runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    *(void **)&py.visit_objects = dlsym(RTLD_DEFAULT, "PyUnstable_GC_VisitObjects");
    *(void **)&py.type_modified = dlsym(RTLD_DEFAULT, "PyType_Modified");
    py.generic_alloc = dlsym(RTLD_DEFAULT, "PyType_GenericAlloc");
    py.type_type = dlsym(RTLD_DEFAULT, "PyType_Type");
    py.object_type = dlsym(RTLD_DEFAULT, "PyBaseObject_Type");
    return NULL;
}

const char *pyapi_load(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static const char *reason;
    static bool loaded;
    pthread_mutex_lock(&lock);
    if (!loaded)
        reason = load();
    loaded = true;
    pthread_mutex_unlock(&lock);
    return reason;
}

/* 3.14 and later have sys._jit. The JIT of 3.13 can only be seen from outside. */
static bool jit_is_enabled(void)
{
    struct py_object *jit = py.sys_get("_jit");
    struct py_object *method = jit ? py.get_attribute(jit, "is_enabled") : NULL;
    struct py_object *answer = method ? py.call(method, NULL) : NULL;
    bool enabled = answer && py.is_true(answer) == 1;
    py.err_clear();
    py_release(answer);
    py_release(method);
    return enabled;
}

const char *pyapi_check_running(void)
{
    if (py.sys_get("gettotalrefcount") || py.sys_get("getobjects"))
        return "debug builds are not supported";
    if (jit_is_enabled())
        return "Cannot activate the perf trampoline if the JIT is active";
    return NULL;
}
