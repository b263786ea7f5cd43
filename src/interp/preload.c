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
 * When libpython is loaded later (programs that embed Python as a plug-in), it is not seen. */
#include "interp/old_mappings.h"
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

static bool done;
static const char *obstacle; /* why this Python is not supported */
static int (*is_initialized)(void);

/* Standard error is the program's, but it asked for us and would wonder. */
static void say_obstacle(void)
{
    char line[256];
    int length =
        snprintf(line, sizeof line, "pitviper: perf trampoline not available: %s\n", obstacle);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return;
}

static int on_audit_event(const char *event, struct py_object *arguments, void *data)
{
    (void)event;
    (void)arguments;
    (void)data;
    if (done || !is_initialized())
        return 0;
    done = true;
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

/* Whether this copy of the object is the preloaded one. The package brings another, which Python
 * loads for itself alone; that one is not what the linker finds under this name. */
static bool is_preloaded(void)
{
    return dlsym(RTLD_DEFAULT, "pitviper_shared_init") == (void *)pitviper_shared_init;
}

__attribute__((constructor)) static void on_load(void)
{
    if (!is_preloaded())
        return;
    old_mappings_cover();
    sampler_start();
    const char *wish = getenv("PITVIPER");
    if (!wish || !*wish || strcmp(wish, "0") == 0)
        return;
    *(void **)&is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    if (!is_initialized || is_initialized())
        return; /* no Python, or we are being imported by it */
    int (*add_audit_hook)(int (*)(const char *, struct py_object *, void *), void *);
    *(void **)&add_audit_hook = dlsym(RTLD_DEFAULT, "PySys_AddAuditHook");
    if (!add_audit_hook)
        return; /* older than 3.8 */
    obstacle = pyapi_load();
    add_audit_hook(on_audit_event, NULL);
}
