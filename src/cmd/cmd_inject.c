/* pitviper inject --jit -i perf.data -o perf.jit.data: generated code becomes ELF files, and a copy
 * of the recording names them, so that perf itself shows Python functions. src/record/inject.h does
 * the work. */
#include "base/text.h"
#include "cmd/command.h"
#include "record/inject.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { OPTION_PER_FUNCTION = OPTION_LONG_ONLY };

static void print_failure(const struct inject_result *result, int error)
{
    const char *path = strcmp(result->failed_path, "-") == 0 ? "the input" : result->failed_path;
    switch (error) {
    case -EBADMSG:
    case -ENODATA:
    case -ENOTSUP:
        command_error(&cmd_inject, "%s: %s", path, result->problem);
        break;
    case -ENOENT:
        command_error(&cmd_inject, "%s: there is no such file or folder", path);
        break;
    default:
        command_error(&cmd_inject, "%s: %s: %s", path, result->problem, strerror(-error));
    }
}

/* `others`: how many are not shown. */
static void print_note(const struct inject_note *note, size_t others)
{
    char number[TEXT_NUMBER_BYTES], count[TEXT_NUMBER_BYTES + 16] = "", more[64] = "";
    if (note->count)
        snprintf(count, sizeof count, " (%s)", text_number(note->count, number));
    if (others)
        snprintf(more, sizeof more, "; and %zu more problems, see them with -v", others);
    command_error(&cmd_inject, "%s: %s%s%s%s%s", note->path, note->problem, count,
                  note->error ? ": " : "", note->error ? strerror(-note->error) : "", more);
}

/* One line: what was met first. Everything with -v. */
static void print_notes(const struct inject_result *result, bool verbose)
{
    size_t count = result->notes.count;
    for (size_t i = 0; i < count && verbose; i++)
        print_note(&result->notes.items[i], 0);
    if (count && !verbose)
        print_note(&result->notes.items[0], count - 1);
}

static int inject(const struct inject_request *request, bool verbose)
{
    struct inject_result result;
    int error = inject_run(request, &result);
    bool is_whole = result.notes.count == 0;
    if (error < 0)
        print_failure(&result, error);
    else
        print_notes(&result, verbose);
    if (error == 0 && is_whole && !result.markers) {
        command_error(&cmd_inject,
                      "%s: no process in it wrote a jitdump; record `pitviper run --jit -- CMD` or "
                      "`python -X perf_jit` (3.13 and later)",
                      request->input);
        is_whole = false;
    }
    if (verbose && error == 0)
        fprintf(stderr, "pitviper inject: %zu dumps, %zu functions, %zu images, %zu mappings\n",
                result.dumps, result.functions, result.images, result.mappings);
    inject_result_done(&result);
    return error == 0 && is_whole ? STATUS_OK : STATUS_FAILED;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct inject_request request = {.input = "perf.data"};
    bool jit = false, verbose = false;
    struct options options;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return STATUS_OK;
        if (option == OPTIONS_WRONG)
            return STATUS_USAGE;
        jit |= option == 'j';
        verbose |= option == 'v';
        request.per_function |= option == OPTION_PER_FUNCTION;
        if (option == 'i')
            request.input = options.value;
        if (option == 'o')
            request.output = options.value;
    }
    char **rest;
    if (options_rest(&options, &rest) != 0) {
        command_error(self, "takes no argument '%s'; see 'pitviper help inject'", rest[0]);
        return STATUS_USAGE;
    }
    if (!jit) {
        command_error(self, "what is to be injected? --jit is all there is");
        return STATUS_USAGE;
    }
    if (!request.output) {
        command_error(self, "where to? Name the new recording with -o FILE");
        return STATUS_USAGE;
    }
    return inject(&request, verbose);
}

const struct command cmd_inject = {
    .name = "inject",
    .arguments = "",
    .summary = "put names of generated code into a recording, for perf report",
    .details = "Copies a recording of perf, and writes an ELF image of the code that each process\n"
               "told about in a jitdump (/tmp/jit-PID.dump) beside the copy. perf report on the\n"
               "copy shows every Python function, with complete call chains and lines.\n"
               "\n"
               "    perf record --call-graph dwarf pitviper run --jit -- python3 app.py\n"
               "    pitviper inject --jit -i perf.data -o perf.jit.data\n"
               "    perf report -g -i perf.jit.data\n"
               "\n"
               "The exit status is 0 when all is well, 1 when something could not be read or\n"
               "written (what can be saved is), 2 when the command line is wrong.\n",
    .options =
        (const struct option_spec[]){
            {"jit", 'j', NULL, "generated code, from jitdump files"},
            {"input", 'i', "FILE", "the recording; - is standard input (default: perf.data)"},
            {"output", 'o', "FILE", "the copy; - is standard output"},
            {"per-function", OPTION_PER_FUNCTION, NULL,
             "an image per function, jitted-PID-N.so, as perf inject makes them"},
            {"verbose", 'v', NULL, "say what was found, and every problem"},
            {0}},
    .run = run,
};
