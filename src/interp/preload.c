/* The way in for `pitviper run`: the shared object is preloaded into every program that is started,
 * and must find out, before main, whether Python will ever run in it.
 *
 *     loader -> constructor below -> main -> Py_Initialize ... first audit event -> startup_run
 *
 * In a program without Python, or without PITVIPER in its environment, the constructor looks up one
 * symbol at most and is done. Otherwise it adds an audit hook (PEP 578), the only thing that may be
 * given to CPython before it starts. The first event after the interpreter calls itself initialized
 * comes from the main thread, with the GIL held, before `site` is imported and so before any code
 * of the program: that is where the trampolines are switched on. From then on the hook returns at
 * once.
 *
 * Finalizing removes all audit hooks. A program that embeds Python and starts it again gets a new
 * one: the functions of Py_AtExit are called behind that point.
 *
 * CPython frees the entries of its list of hooks by the allocator of that moment, which need not be
 * the one that made ours before Python looked at its options: with -X dev or PYTHONMALLOC=debug
 * that is a fatal error (in 3.9 to 3.15, whoever adds a hook so early). It announces the clearing
 * to the hooks, so for as long as that takes, we keep it from freeing this one entry, 24 bytes.
 *
 * When libpython is loaded later (programs that embed Python as a plug-in), it is not seen. */
#include "interp/old_mappings.h"
#include "interp/program_needs.h"
#include "interp/pyapi.h"
#include "interp/sampler.h"
#include "interp/startup.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct py_object *pitviper_shared_init(void); /* of module.c */

/* PyMemAllocatorEx; its form is public and has stayed since 3.5. */
struct allocator {
    void *context;
    void *(*malloc)(void *context, size_t bytes);
    void *(*calloc)(void *context, size_t items, size_t bytes);
    void *(*realloc)(void *context, void *memory, size_t bytes);
    void (*free)(void *context, void *memory);
};

enum { DOMAIN_RAW = 0 };

/* An entry of CPython's list of audit hooks. */
struct entry {
    struct entry *next;
    int (*hook)(const char *, struct py_object *, void *);
    void *data;
};

/* What is needed of the C API before pyapi_load, or where that refuses. */
static struct {
    int (*is_initialized)(void);
    int (*add_audit_hook)(int (*)(const char *, struct py_object *, void *), void *);
    int (*at_exit)(void (*)(void));
    void (*get_allocator)(int domain, struct allocator *);
    void (*set_allocator)(int domain, struct allocator *);
} early;

static bool done;
static const char *obstacle;         /* why this Python is not supported */
static struct allocator at_adding;   /* what made our entry */
static struct allocator at_clearing; /* what frees the others */

/* Tells the package, if it is installed, that the line has been written: see
 * python/pitviper/_unavailable.py. */
static void note_in_sys(void)
{
    int (*set)(const char *, struct py_object *);
    *(void **)&set = dlsym(RTLD_DEFAULT, "PySys_SetObject");
    struct py_object *none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    if (set && none)
        set("_pitviper_said", none);
}

/* Standard error is the program's, but it asked for us and would wonder. */
static void say_obstacle(void)
{
    note_in_sys();
    char line[256];
    int length =
        snprintf(line, sizeof line, "pitviper: perf trampoline not available: %s\n", obstacle);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

static int on_audit_event(const char *event, struct py_object *arguments, void *data);
static void add_hook(void);

static void free_but_ours(void *context, void *memory)
{
    const struct entry *entry = memory;
    if (!entry || entry->hook != on_audit_event)
        at_clearing.free(context, memory);
    else
        early.set_allocator(DOMAIN_RAW, &at_clearing);
}

static void on_clearing(void)
{
    early.get_allocator(DOMAIN_RAW, &at_clearing);
    struct allocator careful = at_clearing;
    careful.free = free_but_ours;
    if (at_clearing.free != at_adding.free)
        early.set_allocator(DOMAIN_RAW, &careful);
}

static int on_audit_event(const char *event, struct py_object *arguments, void *data)
{
    (void)arguments;
    (void)data;
    if (event[0] == 'c' && strcmp(event, "cpython._PySys_ClearAuditHooks") == 0)
        on_clearing();
    if (done || !early.is_initialized())
        return 0;
    done = true;
    early.at_exit(add_hook);
    if (obstacle) {
        say_obstacle();
        return 0;
    }
    struct py_object *type = NULL, *exception = NULL, *traceback = NULL;
    py.err_fetch(&type, &exception, &traceback);
    startup_run();
    py.err_restore(type, exception, traceback);
    return 0;
}

/* Before the start of Python, or between its end and the next start. */
static void add_hook(void)
{
    done = false;
    early.get_allocator(DOMAIN_RAW, &at_adding);
    early.add_audit_hook(on_audit_event, NULL);
}

/* Whether Python is here, and new enough for audit hooks (3.8). */
static bool find_functions(void)
{
    *(void **)&early.is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    if (!early.is_initialized)
        return false;
    *(void **)&early.add_audit_hook = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
    *(void **)&early.at_exit = dlsym(RTLD_DEFAULT, "Py_AtExit");
    *(void **)&early.get_allocator = dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
    *(void **)&early.set_allocator = dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
    return early.add_audit_hook && early.at_exit && early.get_allocator && early.set_allocator;
}

/* Whether this copy of the object is the preloaded one. The package brings another, which Python
 * loads for itself alone; that one is not what the linker finds under this name. */
static bool is_preloaded(void)
{
    return dlsym(RTLD_DEFAULT, "pitviper_shared_init") == (void *)pitviper_shared_init;
}

__attribute__((constructor)) static void on_load(void)
{
    if (!program_has_glibc() || !is_preloaded())
        return;
    old_mappings_cover();
    sampler_start();
    const char *wish = getenv("PITVIPER");
    if (!wish || !*wish || strcmp(wish, "0") == 0)
        return;
    if (!find_functions() || early.is_initialized())
        return; /* no Python, or we are being imported by it */
    obstacle = pyapi_load();
    add_hook();
}
