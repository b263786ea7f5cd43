/* env -i, subprocess.run(..., env={...}), and whoever else gives a program an environment of its
 * own would end the recording there. So what is missing is added on the way, with a list of what
 * that was, and the new program takes it out again before it looks:
 *
 *     program       execve(path, argv, {"PATH=/bin"})
 *     the kernel    {"PATH=/bin", "LD_PRELOAD=...", "PITVIPER_RECORD=...", ..., LIST "=012"}
 *     new program   main sees {"PATH=/bin"}; what it starts gets the rest again
 *
 * Where the shared object can't be read, as behind a chroot or in a container, it is taken out of
 * the list instead: the loader would complain, on the program's standard error. To an environment
 * of thousands of variables nothing is added. */
#include "interp/exec_environment.h"

#include "base/asan_options.h"
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

enum { VARIABLE_PRELOAD, VARIABLE_FOLDER, VARIABLE_OPTIONS, VARIABLE_ASAN, VARIABLES };

enum {
    LIST_BYTES = sizeof LIST "=" + VARIABLES,
    MOST_BYTES = 16 << 10, /* of a thread's stack, which may be a small one: 2000 variables */
};

static const char *const NAMES[VARIABLES] = {PRELOAD, SAMPLE_RING_FOLDER, SAMPLE_RING_OPTIONS,
                                             ASAN_OPTIONS_NAME};

/* "NAME=value" as this process has them; of lists only our own part. */
static char kept[VARIABLES][PATH_MAX];
static bool is_known;

/* Our value, or our part of it. */
static const char *ours(size_t variable)
{
    return kept[variable] + strlen(NAMES[variable]) + strlen("=");
}

/* These are lists, with room for what the program itself wants; ours comes first. */
static bool is_list(size_t variable)
{
    return variable == VARIABLE_PRELOAD || variable == VARIABLE_ASAN;
}

/* A variable that a program is given, and its value; NULL when it is not there. */
static char *const *find_entry(char *const envp[], size_t variable)
{
    size_t length = strlen(NAMES[variable]);
    for (; envp && *envp; envp++)
        if (strncmp(*envp, NAMES[variable], length) == 0 && (*envp)[length] == '=')
            return envp;
    return NULL;
}

static const char *find(char *const envp[], size_t variable)
{
    char *const *entry = find_entry(envp, variable);
    return entry ? *entry + strlen(NAMES[variable]) + strlen("=") : NULL;
}

static bool is_border(char c)
{
    return c == '\0' || c == ':' || c == ' ';
}

/* Where a list has it, which is not empty; NULL: nowhere. */
static const char *find_part(const char *list, const char *part)
{
    const char *place = list;
    for (; (place = strstr(place, part)); place++)
        if ((place == list || is_border(place[-1])) && is_border(place[strlen(part)]))
            return place;
    return NULL;
}

static bool is_missing(char *const envp[], size_t variable)
{
    const char *value = find(envp, variable);
    return !value || (is_list(variable) && !find_part(value, ours(variable)));
}

/* It stands first when we have put it there. */
static void remove_part(size_t variable)
{
    const char *list = getenv(NAMES[variable]);
    size_t length = strlen(ours(variable));
    if (!list || strncmp(list, ours(variable), length) != 0)
        return;
    if (list[length] == ':')
        setenv(NAMES[variable], list + length + 1, 1);
    else
        unsetenv(NAMES[variable]);
}

static void remove_added(const char *list)
{
    for (size_t i = 0; i < VARIABLES; i++) {
        if (!strchr(list, '0' + (int)i))
            continue;
        if (is_list(i))
            remove_part(i);
        else
            unsetenv(NAMES[i]);
    }
    unsetenv(LIST);
}

static const char *value_of(size_t variable)
{
    Dl_info own;
    switch (variable) {
    case VARIABLE_PRELOAD:
        return dladdr(kept, &own) ? own.dli_fname : NULL;
    case VARIABLE_ASAN:
        return ASAN_OPTIONS_ANY_ORDER;
    default:
        return getenv(NAMES[variable]);
    }
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

static bool is_reachable(void)
{
    return access(ours(VARIABLE_PRELOAD), R_OK) == 0;
}

/* What a list takes that the program has and that ours is added to, or taken out of. */
static size_t bytes_of_list(char *const envp[], size_t variable)
{
    const char *theirs = is_list(variable) ? find(envp, variable) : NULL;
    return theirs ? strlen(kept[variable]) + strlen(":") + strlen(theirs) + 1 : 0;
}

/* Enough for whatever is to be done: that may be another thing when it is done. */
size_t exec_environment_bytes(char *const envp[], bool is_recorded)
{
    if (!is_known)
        return 0;
    bool is_whole = true;
    size_t bytes = (count_of(envp) + VARIABLES + 2) * sizeof *envp + LIST_BYTES;
    for (size_t i = 0; i < VARIABLES; i++) {
        is_whole &= !is_missing(envp, i);
        bytes += bytes_of_list(envp, i);
    }
    bool needs_change =
        is_reachable() ? is_recorded && !is_whole : !is_missing(envp, VARIABLE_PRELOAD);
    return needs_change && bytes <= MOST_BYTES ? bytes : 0;
}

/* Our object, and the colon behind it, out of the list of those to preload; `end` is behind the
 * last entry. */
static void leave_out_library(char **entries, char **end, char *out)
{
    char *const *found = find_entry(entries, VARIABLE_PRELOAD);
    const char *list = found ? find(found, VARIABLE_PRELOAD) : NULL;
    const char *place = list ? find_part(list, ours(VARIABLE_PRELOAD)) : NULL;
    if (!place)
        return;
    const char *rest = place + strlen(ours(VARIABLE_PRELOAD));
    rest += *rest != '\0';
    char **entry = &entries[found - entries];
    if (place == list && !*rest) {
        memmove(entry, entry + 1, (size_t)(end - entry) * sizeof *entry); /* with the NULL */
        return;
    }
    char *behind = mempcpy(out, *entry, (size_t)(place - *entry));
    memcpy(behind, rest, strlen(rest) + 1);
    *entry = out;
}

/* Puts ours in front of a list that the program has. Returns what is behind it. */
static char *join(char *out, size_t variable, char **entry)
{
    const char *theirs = *entry + strlen(NAMES[variable]) + strlen("=");
    *entry = out;
    return stpcpy(stpcpy(stpcpy(out, kept[variable]), ":"), theirs) + 1;
}

/* Adds what is missing to those up to `end`. */
static void add_missing(char **entries, char **end, char *list)
{
    char *text = list + LIST_BYTES, *added = stpcpy(list, LIST "=");
    for (size_t i = 0; i < VARIABLES; i++) {
        if (!is_missing(entries, i))
            continue;
        *added++ = (char)('0' + i);
        char *const *theirs = find_entry(entries, i);
        if (theirs) {
            text = join(text, i, &entries[theirs - entries]);
        } else {
            *end++ = kept[i];
            *end = NULL;
        }
    }
    *added = '\0';
    *end++ = list;
    *end = NULL;
}

char *const *exec_environment_complete(char *const envp[], void *room)
{
    if (!room)
        return envp;
    char **all = room, **end = all + count_of(envp);
    char *text = (char *)(end + VARIABLES + 2);
    if (end != all)
        memcpy(all, envp, (size_t)(end - all) * sizeof *all);
    *end = NULL;
    if (is_reachable())
        add_missing(all, end, text);
    else
        leave_out_library(all, end, text);
    return all;
}
