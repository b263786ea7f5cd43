/* pitviper run [--jit] -- CMD...
 *
 * Starts CMD with the shared object preloaded and PITVIPER set, and becomes it: exec, not fork, so
 * that its process, its signals and its exit status are its own, and `perf record pitviper run ...`
 * follows it. Everything that CMD starts inherits both variables. Programs without Python, static
 * and setuid ones simply run. */
#include "base/cleanup.h"
#include "cmd/command.h"
#include "cmd/preload.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_NOT_RUNNABLE = 126, STATUS_NOT_FOUND = 127 };

/* Ends the range before, if there is one, and starts the next. */
static void print_border(FILE *out, unsigned long last_end, unsigned long start)
{
    if (last_end)
        fprintf(out, "-%lx,", last_end);
    fprintf(out, "%lx", start);
}

/* Leaves a list of the places where this program has files mapped, for the shared object: see
 * interp/old_mappings.c. Without the list everything works, but for perf's memory. */
static void note_mappings(void)
{
    CLEANUP(cleanup_fclose) FILE *maps = fopen("/proc/self/maps", "re");
    CLEANUP(cleanup_free) char *list = NULL;
    size_t size;
    FILE *out = maps ? open_memstream(&list, &size) : NULL;
    if (!out)
        return;
    char line[PATH_MAX + 128];
    unsigned long start, end, last_end = 0;
    while (fgets(line, sizeof line, maps)) {
        if (!strchr(line, '/') || sscanf(line, "%lx-%lx", &start, &end) != 2)
            continue;
        if (start != last_end) /* the parts of a file lie side by side: one range */
            print_border(out, last_end, start);
        last_end = end;
    }
    if (last_end)
        fprintf(out, "-%lx", last_end);
    if (fclose(out) == 0 && list)
        setenv("PITVIPER_MAPPINGS", list, 1);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options;
    options_init(&options, self, argc, argv);
    const char *mode = "perf";
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return STATUS_OK;
        if (option == OPTIONS_WRONG)
            return STATUS_USAGE;
        mode = "perf_jit"; /* --jit is the only one there is */
    }
    char **command;
    if (options_rest(&options, &command) < 1) {
        command_error(self, "which program? see 'pitviper help run'");
        return STATUS_USAGE;
    }
    char library[PATH_MAX];
    if (!preload_find(self, library) || !preload_set(self, library))
        return STATUS_FAILED;
    if (setenv("PITVIPER", mode, 1) < 0) {
        command_error(self, "out of memory");
        return STATUS_FAILED;
    }
    note_mappings();
    execvp(command[0], command);
    int error = errno;
    command_error(self, "cannot run '%s': %s", command[0], strerror(error));
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE;
}

const struct command cmd_run = {
    .name = "run",
    .arguments = "[--] CMD...",
    .summary = "run a program so that perf and samply see its Python functions",
    .details =
        "Runs CMD with the names of Python functions on, in every CPython (3.9 to 3.15) that it\n"
        "starts; nothing has to be installed in them:\n\n"
        "  perf record -F 9999 -g pitviper run -- python my_script.py\n"
        "  perf record -F 9999 -k 1 --call-graph dwarf pitviper run --jit -- python my_script.py\n",
    .options =
        (const struct option_spec[]){
            {"jit", OPTION_LONG_ONLY, NULL, "with unwinding data (jitdump), for perf inject --jit"},
            {0}},
    .options_first = true,
    .run = run,
};
