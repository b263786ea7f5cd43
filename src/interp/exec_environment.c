/* env -i, subprocess.run(..., env={...}), and whoever else gives a program an environment of its
 * own would end the recording there. So what is missing is added on the way, with a list of what
 * that was, and the new program takes it out again before it looks:
 *
 *     program       execve(path, argv, {"PATH=/bin"})
 *     the kernel    {"PATH=/bin", "LD_PRELOAD=...", "PITVIPER_RECORD=...", ..., LIST "=012"}
 *     new program   main sees {"PATH=/bin"}; what it starts gets the rest again
 *
 * Where the shared object can't be read, as behind a chroot, nothing is added: the loader would
 * complain. Nor to an environment of thousands of variables. */
#include "interp/exec_environment.h"

#include "formats/sample_ring.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD"
#define LIST "PITVIPER_RECORD_ADDED"

enum {
    VARIABLES = 3,
    LIST_BYTES = sizeof LIST "=" + VARIABLES,
    MOST_BYTES = 16 << 10, /* of a thread's stack, which may be a small one: 2000 variables */
};

static const char *const NAMES[VARIABLES] = {PRELOAD, SAMPLE_RING_FOLDER, SAMPLE_RING_OPTIONS};

/* "NAME=value" as this process has them; of LD_PRELOAD only our own object. */
static char kept[VARIABLES][PATH_MAX];
static bool is_known;

static const char *library(void)
{
    return kept[0] + strlen(PRELOAD "=");
}

/* The value of a variable, NULL when it is not there. */
static const char *find(char *const envp[], const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; envp && envp[i]; i++)
        if (strncmp(envp[i], name, length) == 0 && envp[i][length] == '=')
            return envp[i] + length + 1;
    return NULL;
}

/* Whether our object is among those to preload. */
static bool has_library(const char *objects)
{
    const char *place = objects ? strstr(objects, library()) : NULL;
    char behind = place ? place[strlen(library())] : '\1';
    return behind == '\0' || behind == ':' || behind == ' ';
}

static bool is_missing(char *const envp[], size_t variable)
{
    const char *value = find(envp, NAMES[variable]);
    return variable == 0 ? !has_library(value) : !value;
}

/* It stands first when we have put it there. */
static void remove_library(void)
{
    const char *objects = getenv(PRELOAD);
    size_t length = strlen(library());
    if (!objects || strncmp(objects, library(), length) != 0)
        return;
    if (objects[length] == ':')
        setenv(PRELOAD, objects + length + 1, 1);
    else
        unsetenv(PRELOAD);
}

static void remove_added(const char *list)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        if (!strchr(list, '0' + (int)i))
            continue;
        if (i == 0)
            remove_library();
        else
            unsetenv(NAMES[i]);
    }
    unsetenv(LIST);
}

static const char *value_of(size_t variable)
{
    Dl_info own;
    if (variable > 0)
        return getenv(NAMES[variable]);
    return dladdr(kept, &own) ? own.dli_fname : NULL;
}

static bool keep(size_t variable)
{
    const char *value = value_of(variable);
    int written = snprintf(kept[variable], sizeof kept[variable], "%s=%s", NAMES[variable],
                           value ? value : "");
    return value && *value && written < (int)sizeof kept[variable];
}

void exec_environment_init(void)
{
    is_known = true;
    for (size_t i = 0; i < VARIABLES; i++)
        is_known &= keep(i);
    const char *list = getenv(LIST);
    if (list && is_known)
        remove_added(list);
}

static size_t count_of(char *const envp[])
{
    size_t count = 0;
    while (envp && envp[count])
        count++;
    return count;
}

size_t exec_environment_bytes(char *const envp[])
{
    bool is_whole = true;
    for (size_t i = 0; i < VARIABLES; i++)
        is_whole &= !is_missing(envp, i);
    if (!is_known || is_whole || access(library(), R_OK) < 0)
        return 0;
    const char *objects = find(envp, PRELOAD);
    size_t bytes = (count_of(envp) + VARIABLES + 2) * sizeof *envp + LIST_BYTES;
    if (objects)
        bytes += strlen(kept[0]) + strlen(":") + strlen(objects) + 1;
    return bytes <= MOST_BYTES ? bytes : 0;
}

char *const *exec_environment_complete(char *const envp[], void *room)
{
    if (!room)
        return envp;
    char **all = room, **out = all;
    char *list = (char *)(all + count_of(envp) + VARIABLES + 2), *objects = list + LIST_BYTES;
    char *added = stpcpy(list, LIST "=");
    bool has_others = false;
    for (size_t i = 0; envp && envp[i]; i++) {
        bool is_preload = strncmp(envp[i], PRELOAD "=", strlen(PRELOAD "=")) == 0;
        *out++ = envp[i];
        if (!is_preload || has_others || !is_missing(envp, 0))
            continue;
        stpcpy(stpcpy(stpcpy(objects, kept[0]), ":"), envp[i] + strlen(PRELOAD "="));
        out[-1] = objects;
        has_others = true;
    }
    for (size_t i = 0; i < VARIABLES; i++) {
        if (!is_missing(envp, i))
            continue;
        *added++ = (char)('0' + i);
        if (i > 0 || !has_others)
            *out++ = kept[i];
    }
    *added = '\0';
    *out++ = list;
    *out = NULL;
    return all;
}
