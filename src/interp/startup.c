/* The documented ways to ask for trampolines at the start:
 *
 *     -X pitviper=perf|perf_jit   PITVIPER=perf|perf_jit          every version
 *     -X perf                     PYTHONPERFSUPPORT=1             3.9 to 3.11; CPython's own later
 *     -X perf_jit                 PYTHON_PERF_JIT_SUPPORT=1       3.9 to 3.12; CPython's own later
 *
 * An option wins over the environment, and perf_jit over perf, as in CPython. Its variables hold a
 * whole number other than 0, and are ignored with -E and -I; PITVIPER is not one of them, so that
 * `pitviper run` reaches isolated interpreters too. */
#include "interp/startup.h"

#include "base/number.h"
#include "interp/activation.h"
#include "interp/pyapi.h"
#include "interp/sys_functions.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_WITH_PERF = 12, FIRST_WITH_PERF_JIT = 13 };

enum wish { WISH_NOTHING = -1, WISH_MAP = SYMBOL_MAP, WISH_DUMP = SYMBOL_DUMP };

/* One line on standard error, past Python: it may not be set up, or be redirected. */
static void complain(const char *message, const char *value)
{
    char line[512];
    int length = snprintf(line, sizeof line, "pitviper: %s%s\n", message, value);
    if (length > 0) {
        size_t bytes = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
        for (size_t i = 0; i < bytes; i++) {
            if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
                line[i] = '?'; /* a value may hold anything, but this is one line */
        }
        line[bytes - 1] = '\n';
        if (write(STDERR_FILENO, line, bytes) < 0)
            return; /* nobody is left to tell */
    }
}

static enum wish wish_of_value(const char *value, const char *source)
{
    if (strcmp(value, "perf") == 0)
        return WISH_MAP;
    if (strcmp(value, "perf_jit") == 0)
        return WISH_DUMP;
    complain(source, value);
    return WISH_NOTHING;
}

static enum wish wish_of_options(void)
{
    struct py_object *options = py.sys_get("_xoptions");
    if (!options)
        return WISH_NOTHING;
    struct py_object *ours = py.dict_get(options, "pitviper");
    if (ours) {
        bool is_text = py.is_instance(ours, py.unicode_type) == 1;
        const char *value = is_text ? py.unicode_utf8(ours, NULL) : "(nothing)";
        py.err_clear();
        return wish_of_value(value ? value : "?", "-X pitviper takes perf or perf_jit, not: ");
    }
    if (py.minor < FIRST_WITH_PERF_JIT && py.dict_get(options, "perf_jit"))
        return WISH_DUMP;
    if (py.minor < FIRST_WITH_PERF && py.dict_get(options, "perf"))
        return WISH_MAP;
    return WISH_NOTHING;
}

/* A whole number other than 0 that an int can hold, and nothing else. */
static bool is_set(const char *name)
{
    const char *text = getenv(name);
    if (!text)
        return false;
    text += strspn(text, " \t\n\v\f\r");
    uint64_t most = *text == '-' ? -(int64_t)INT_MIN : INT_MAX, number;
    text += *text == '-' || *text == '+';
    return number_take(&text, 10, &number) && *text == '\0' && number && number <= most;
}

static bool environment_is_ignored(void)
{
    struct py_object *flags = py.sys_get("flags");
    struct py_object *ignored = flags ? py.get_attribute(flags, "ignore_environment") : NULL;
    bool answer = ignored && py.is_true(ignored) == 1;
    py.err_clear();
    py_release(ignored);
    return answer;
}

/* 3.12 has done what -X perf asks for; its variable for the other mode comes second. */
static bool has_option_of_cpython(void)
{
    struct py_object *options = py.sys_get("_xoptions");
    return options && py.minor >= FIRST_WITH_PERF && py.dict_get(options, "perf");
}

static enum wish wish_of_environment(void)
{
    const char *ours = getenv("PITVIPER");
    if (ours && *ours && strcmp(ours, "0") != 0)
        return wish_of_value(ours, "PITVIPER takes perf or perf_jit, not: ");
    if (environment_is_ignored() || has_option_of_cpython())
        return WISH_NOTHING;
    if (py.minor < FIRST_WITH_PERF_JIT && is_set("PYTHON_PERF_JIT_SUPPORT"))
        return WISH_DUMP;
    if (py.minor < FIRST_WITH_PERF && is_set("PYTHONPERFSUPPORT"))
        return WISH_MAP;
    return WISH_NOTHING;
}

/* Turns the exception that is set into a line. */
static void complain_of_exception(void)
{
    struct py_object *type = NULL, *exception = NULL, *traceback = NULL;
    py.err_fetch(&type, &exception, &traceback);
    struct py_object *text = exception ? py.str(exception) : NULL;
    const char *message = text ? py.unicode_utf8(text, NULL) : NULL;
    complain(message ? message : "the trampolines cannot be switched on", "");
    py.err_clear();
    py_release(text);
    py_release(traceback);
    py_release(exception);
    py_release(type);
}

/* Whether this interpreter has been here before: in virtual environments, `site` goes through its
 * start-up hooks twice. */
static bool is_second_time(void)
{
    static const char MARK[] = "pitviper.startup";
    struct py_object *dict = py.interpreter_dict(py.interpreter_get());
    if (!dict || py.dict_get(dict, MARK))
        return true;
    if (py.dict_set(dict, MARK, py.none) < 0)
        py.err_clear();
    return false;
}

static void run(void)
{
    if (pyapi_load() || is_second_time())
        return;
    sys_functions_install();
    enum wish wish = wish_of_options();
    if (wish == WISH_NOTHING)
        wish = wish_of_environment();
    if (wish != WISH_NOTHING && !activation_activate((enum symbol_kind)wish))
        complain_of_exception();
}

void startup_run(void)
{
    int saved_errno = errno;
    run();
    errno = saved_errno;
}
