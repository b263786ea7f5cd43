/* Names are all there is to go by, and enough: CPython's functions have kept theirs, or have got
 * new ones that are listed here too (3.9 to 3.15). A compiler that splits a function appends a
 * suffix
 * (".cold", ".part.0", ".constprop.0", ".isra.0", ".lto_priv.0", ".llvm.123"), a symbol table may
 * append a version ("@@GLIBC_2.34"): these are cut off first. */
#include "profile/classify.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static const char *const evaluator[] = {
    "PyEval_EvalCode",        "PyEval_EvalCodeEx",
    "PyEval_EvalFrame",       "PyEval_EvalFrameEx",
    "_PyEval_EvalCode",       "_PyEval_EvalCodeWithName",
    "_PyEval_EvalFrame",      "_PyEval_EvalFrameDefault",
    "_PyEval_Vector",         "_PyEval_Vector_NoCopy",
    "_PyJIT_Entry",           "_Py_trampoline_func_start",
    "function_code_fastcall", "py_trampoline_evaluator",
    "run_eval_code_obj",      "run_mod",
};

static const char *const call[] = {
    "PyCFunction_Call",
    "PyImport_ImportModuleLevelObject",
    "PyObject_Call",
    "PyObject_CallFunction",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethod",
    "PyObject_CallMethodObjArgs",
    "PyObject_CallNoArgs",
    "PyObject_CallObject",
    "PyObject_CallOneArg",
    "PyObject_Vectorcall",
    "PyObject_VectorcallDict",
    "PyObject_VectorcallMethod",
    "PyVectorcall_Call",
    "PyVectorcall_Function",
    "_PyCFunction_FastCallDict",
    "_PyCFunction_FastCallKeywords",
    "_PyCFunction_Vectorcall",
    "_PyFunction_FastCallDict",
    "_PyFunction_Vectorcall",
    "_PyMethodDef_RawFastCallKeywords",
    "_PyObject_Call",
    "_PyObject_CallFunctionVa",
    "_PyObject_CallMethodIdObjArgs",
    "_PyObject_CallNoArg",
    "_PyObject_CallNoArgs",
    "_PyObject_CallNoArgsTstate",
    "_PyObject_Call_Prepend",
    "_PyObject_FastCall",
    "_PyObject_FastCallDict",
    "_PyObject_FastCallDictTstate",
    "_PyObject_MakeTpCall",
    "_PyObject_Vectorcall",
    "_PyObject_VectorcallDictTstate",
    "_PyObject_VectorcallTstate",
    "_PyVectorcall_Call",
    "call_function",
    "cfunction_call",
    "cfunction_vectorcall_FASTCALL",
    "cfunction_vectorcall_FASTCALL_KEYWORDS",
    "cfunction_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "cfunction_vectorcall_NOARGS",
    "cfunction_vectorcall_O",
    "classmethoddescr_call",
    "do_call_core",
    "gen_iternext",
    "import_find_and_load",
    "import_name",
    "gen_send",
    "gen_send_ex",
    "gen_send_ex2",
    "method_vectorcall",
    "method_vectorcall_FASTCALL",
    "method_vectorcall_FASTCALL_KEYWORDS",
    "method_vectorcall_FASTCALL_KEYWORDS_METHOD",
    "method_vectorcall_NOARGS",
    "method_vectorcall_O",
    "method_vectorcall_VARARGS",
    "method_vectorcall_VARARGS_KEYWORDS",
    "object_vacall",
    "slot_tp_call",
    "slot_tp_getattr_hook",
    "slot_tp_init",
    "slot_tp_iternext",
    "slot_tp_new",
    "trace_call_function",
    "type_call",
    "vectorcall_maybe",
    "vectorcall_method",
    "vectorcall_unbound",
    "wrapperdescr_call",
};

static const char *const start[] = {
    "PyRun_AnyFileExFlags",
    "PyRun_FileExFlags",
    "PyRun_InteractiveLoopFlags",
    "PyRun_SimpleFileExFlags",
    "PyRun_SimpleStringFlags",
    "PyRun_StringFlags",
    "Py_BytesMain",
    "Py_Main",
    "Py_RunMain",
    "_PyRun_AnyFile",
    "_PyRun_AnyFileObject",
    "_PyRun_File",
    "_PyRun_SimpleFile",
    "_PyRun_SimpleFileObject",
    "_PyRun_SimpleString",
    "_PyRun_SimpleStringFlagsWithName",
    "__clone",
    "__clone3",
    "__libc_start_call_main",
    "__libc_start_main",
    "_start",
    "clone",
    "clone3",
    "main",
    "pyrun_file",
    "pyrun_simple_file",
    "pymain_main",
    "pymain_run_file",
    "pymain_run_file_obj",
    "pymain_run_module",
    "pymain_run_python",
    "pymain_run_stdin",
    "pymain_run_command",
    "pythread_wrapper",
    "start_thread",
    "thread_run",
    "t_bootstrap",
};

static const char *const gc[] = {
    "PyGC_Collect",
    "_PyGC_Collect",
    "_PyGC_CollectNoFail",
    "_Py_RunGC",
    "collect",
    "collect_main",
    "collect_with_callback",
    "deduce_unreachable",
    "delete_garbage",
    "gc_collect",
    "gc_collect_full",
    "gc_collect_generations",
    "gc_collect_increment",
    "gc_collect_internal",
    "gc_collect_main",
    "gc_collect_region",
    "gc_collect_with_callback",
    "gc_collect_young",
    "move_unreachable",
    "subtract_refs",
    "update_refs",
};

static const char *const outermost[] = {
    "__clone",
    "__clone3",
    "__libc_start_call_main",
    "__libc_start_main",
    "_dl_start_user",
    "_start",
    "clone",
    "clone3",
    "ret_from_fork",
    "ret_from_fork_asm",
    "start_thread",
    "thread_start",
};

static const char *const libc_files[] = {
    "ld-linux*.so.*",  "ld-musl-*.so.*", "libc.so.6",  "libc-2.*.so", "libm.so.6",    "libm-2.*.so",
    "libpthread*.so*", "libdl.so.2",     "librt.so.1", "ld-2.*.so",   "libmvec.so.1", "[[]vdso[]]",
};

#define COUNT_OF(list) (sizeof(list) / sizeof(list)[0])

/* Lists are short and asked once per function: a walk will do. */
static bool is_in(const char *const *list, size_t count, const char *name, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(list[i]) == length && memcmp(list[i], name, length) == 0)
            return true;
    return false;
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

enum profile_module_kind classify_module(const char *path)
{
    const char *base = base_name(path);
    for (size_t i = 0; i < COUNT_OF(libc_files); i++)
        if (fnmatch(libc_files[i], base, 0) == 0)
            return PROFILE_MODULE_LIBC;
    if (fnmatch("libpython[23]*.so*", base, 0) == 0 || fnmatch("python[23]*", base, 0) == 0 ||
        strcmp(base, "python") == 0)
        return PROFILE_MODULE_INTERPRETER;
    if (fnmatch("*.cpython-*.so", base, 0) == 0 || ends_with(base, ".abi3.so") ||
        (fnmatch("*.so*", base, 0) == 0 &&
         (strstr(path, "/lib-dynload/") || strstr(path, "/site-packages/") ||
          strstr(path, "/dist-packages/"))))
        return PROFILE_MODULE_EXTENSION;
    return PROFILE_MODULE_OTHER;
}

enum profile_function_role classify_function(const char *name, size_t length)
{
    for (size_t i = 1; i < length; i++)
        if (name[i] == '.' || name[i] == '@')
            length = i;
    if (is_in(evaluator, COUNT_OF(evaluator), name, length) ||
        (length > 11 && memcmp(name, "_TAIL_CALL_", 11) == 0))
        return PROFILE_ROLE_EVALUATOR;
    if (is_in(call, COUNT_OF(call), name, length))
        return PROFILE_ROLE_CALL;
    if (is_in(start, COUNT_OF(start), name, length))
        return PROFILE_ROLE_START;
    return is_in(gc, COUNT_OF(gc), name, length) ? PROFILE_ROLE_GC : PROFILE_ROLE_NONE;
}

bool classify_is_outermost(const char *name)
{
    size_t length = strcspn(name, ".@");
    return is_in(outermost, COUNT_OF(outermost), name, length);
}

bool classify_python(const char *name, size_t length, struct classify_python *ret_python)
{
    if (length < 4 || memcmp(name, "py::", 4) != 0)
        return false;
    const char *colon = memchr(name + 4, ':', length - 4), *end = name + length;
    *ret_python = (struct classify_python){
        .name = name + 4,
        .name_length = (size_t)((colon ? colon : end) - name) - 4,
        .file = colon ? colon + 1 : end,
        .file_length = colon ? (size_t)(end - colon) - 1 : 0,
    };
    return true;
}
