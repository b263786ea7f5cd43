#include "cmd/preload.h"

#include "base/cleanup.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the shared object may lie, seen from the folder of this program: a build tree, an
 * installation, and the Python package when both came with the wheel. One file fits every CPython,
 * so any match will do. */
static const char *const PLACES[] = {
    "pitviper.so",
    "../lib*/pitviper/pitviper.so",
    "../lib/*/pitviper/pitviper.so",
    "../lib/python3*/*-packages/pitviper/_pitviper.so",
};

/* Appends the place to the folder and looks there. True and the path, without links and dots. */
static bool look_at(const char *folder, const char *place, char ret_path[PATH_MAX])
{
    char pattern[PATH_MAX + 64];
    snprintf(pattern, sizeof pattern, "%s/%s", folder, place);
    glob_t found;
    bool matches = glob(pattern, 0, NULL, &found) == 0;
    if (matches)
        matches = realpath(found.gl_pathv[0], ret_path) != NULL;
    globfree(&found);
    return matches;
}

bool preload_find(const struct command *self, char ret_path[PATH_MAX])
{
    const char *given = getenv("PITVIPER_LIBRARY");
    if (given && *given) {
        if (realpath(given, ret_path) && access(ret_path, R_OK) == 0)
            return true;
        command_error(self, "cannot read PITVIPER_LIBRARY '%s': %s", given, strerror(errno));
        return false;
    }
    char folder[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    for (size_t i = 0; slash && i < sizeof PLACES / sizeof *PLACES; i++) {
        *slash = '\0';
        if (look_at(folder, PLACES[i], ret_path))
            return true;
    }
    command_error(self, "cannot find pitviper.so beside this program or in ../lib/pitviper; "
                        "PITVIPER_LIBRARY can say where it is");
    return false;
}

bool preload_add(const char *name, const char *part)
{
    CLEANUP(cleanup_free) char *value = NULL;
    const char *list = getenv(name);
    if (!list || !*list)
        return setenv(name, part, 1) == 0;
    return asprintf(&value, "%s:%s", part, list) >= 0 && setenv(name, value, 1) == 0;
}

bool preload_set(const struct command *self, const char *library)
{
    if (strpbrk(library, " :")) {
        command_error(self, "'%s' cannot be preloaded: there is a blank or a colon in its path",
                      library);
        return false;
    }
    if (preload_add("LD_PRELOAD", library))
        return true;
    command_error(self, "out of memory");
    return false;
}
