/* pitviper export: a recording in the formats of other tools. The formats are in src/export; here
 * are the options, and where the bytes go. */
#include "base/gzip_file.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/load_profile.h"
#include "cmd/output_file.h"
#include "cmd/terminal.h"
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPTION_FOLD = OPTION_LONG_ONLY,
    OPTION_LINES,
    OPTION_EVENT,
    OPTION_PID,
    OPTION_TID,
};
enum { MOST_FORMATS = 16 };

struct export_request {
    const char *path;
    const char *output; /* NULL: the format's own */
    const char *event;  /* NULL: the first that has samples */
    const struct export_format *format;
    struct export_settings settings;
};

static int set_format(struct export_request *request, const char *name)
{
    request->format = export_format_find(name);
    if (request->format)
        return 0;
    const char *names[MOST_FORMATS];
    char list[256] = "";
    size_t count = 0;
    for (; export_formats[count].name; count++) {
        names[count] = export_formats[count].name;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", count ? ", " : "", names[count]);
    }
    const char *nearest = text_nearest(name, names, count);
    if (nearest)
        command_error(&cmd_export, "-f: there is no format '%s'; did you mean '%s'?", name,
                      nearest);
    else
        command_error(&cmd_export, "-f: there is no format '%s'; there are: %s", name, list);
    return OPTIONS_WRONG;
}

static int set_option(struct export_request *request, int option, const char *value)
{
    struct export_settings *settings = &request->settings;
    switch (option) {
    case 'f':
        return set_format(request, value);
    case 'i':
        request->path = value;
        break;
    case 'o':
        request->output = value;
        break;
    case 'n':
        settings->count_samples = true;
        break;
    case 'c':
        settings->wanted.comms = value;
        break;
    case OPTION_FOLD:
        settings->fold = true;
        break;
    case OPTION_LINES:
        settings->lines = true;
        break;
    case OPTION_EVENT:
        request->event = value;
        break;
    case OPTION_PID:
        settings->wanted.pids = value;
        break;
    case OPTION_TID:
        settings->wanted.tids = value;
        break;
    default:
        return OPTIONS_WRONG;
    }
    return 0;
}

/* Whether an option was given that says what is to be in the output. */
static bool chooses_samples(const struct export_request *request)
{
    const struct export_settings *settings = &request->settings;
    return settings->fold || settings->lines || request->event || settings->wanted.comms ||
           settings->wanted.pids || settings->wanted.tids;
}

/* STATUS_OK when the command is to be run; -1 after --help. */
static int read_options(struct export_request *request, const struct command *self, int argc,
                        char **argv)
{
    struct options options;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return -1;
        if (option == OPTIONS_WRONG || set_option(request, option, options.value) < 0)
            return STATUS_USAGE;
    }
    if (load_profile_choose(&options, &request->path) != STATUS_OK)
        return STATUS_USAGE;
    if (!request->format) {
        command_error(self, "which format? Name it with -f; see 'pitviper help export'");
        return STATUS_USAGE;
    }
    if (request->settings.count_samples && !request->format->can_choose_weights) {
        command_error(self, "-n: %s has both samples and what they weigh", request->format->name);
        return STATUS_USAGE;
    }
    if (request->format->is_whole && chooses_samples(request)) {
        command_error(self,
                      "%s has all of the recording, to choose from in the browser; it takes "
                      "no options but -i and -o",
                      request->format->name);
        return STATUS_USAGE;
    }
    if (!request->output)
        request->output = request->format->output;
    if (strcmp(request->output, "-") == 0 && request->format->is_packed && isatty(STDOUT_FILENO)) {
        command_error(self, "%s is not for a terminal; -o FILE names a file",
                      request->format->name);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* The event by its name, or the first that has samples, as in the page of report. */
static int find_event(struct export_request *request, const struct profile *profile)
{
    uint16_t *event = &request->settings.event;
    for (*event = 0; *event < profile->events.count; ++*event) {
        const struct profile_event *candidate = &profile->events.items[*event];
        if (request->event ? strcmp(profile_text(profile, candidate->name), request->event) == 0
                           : candidate->samples > 0)
            return STATUS_OK;
    }
    if (request->event) {
        command_error(
            &cmd_export, "%s: has no event '%s'; the first is '%s'", request->path, request->event,
            profile->events.count ? profile_text(profile, profile->events.items[0].name) : "");
        return STATUS_FAILED;
    }
    *event = 0;
    return STATUS_OK;
}

static bool ends_in_gz(const char *path)
{
    size_t length = strlen(path);
    return length > 3 && strcmp(path + length - 3, ".gz") == 0;
}

struct content {
    const struct export_request *request;
    const struct profile *profile;
};

/* Writes through gzip where that is wanted. 0 or a negative errno. */
static int write_profile(FILE *out, const void *what)
{
    const struct content *content = what;
    const struct export_request *request = content->request;
    bool is_packed = request->format->is_packed || ends_in_gz(request->output);
    FILE *to = is_packed ? gzip_file_open(out) : out;
    struct export_view view;
    int error = to ? export_view_init(&view, content->profile, &request->settings,
                                      request->format->has_lines)
                   : -ENOMEM;
    errno = 0;
    if (error == 0) {
        error = request->format->write(&view, to);
        export_view_done(&view);
    }
    bool has_failed = to && ferror(to);
    if (to && to != out)
        has_failed |= fclose(to) != 0;
    has_failed |= fflush(out) != 0 || ferror(out);
    return error < 0 ? error : has_failed ? -(errno ? errno : EIO) : 0;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct export_request request = {0};
    int status = read_options(&request, self, argc, argv);
    if (status != STATUS_OK)
        return status < 0 ? STATUS_OK : status;
    terminal_begin("pitviper export");
    struct profile_options loading = load_profile_options();
    struct profile *profile;
    if (load_profile(self, request.path, &loading, &profile) != STATUS_OK)
        return STATUS_FAILED;
    status = load_profile_judge(self, request.path, profile, "exported");
    terminal_set_status(status);
    request.settings.source = request.path;
    if (find_event(&request, profile) != STATUS_OK) {
        profile_free(profile);
        return STATUS_FAILED;
    }
    struct content content = {.request = &request, .profile = profile};
    int error = output_file_write(request.output, write_profile, &content);
    profile_free(profile);
    if (error == -ENOMEM)
        load_profile_error(self, request.path, error, NULL);
    else if (error < 0)
        command_error(self, "%s: could not be written: %s",
                      strcmp(request.output, "-") == 0 ? "the output" : request.output,
                      strerror(-error));
    else if (strcmp(request.output, "-") != 0)
        fprintf(stderr, "pitviper export: wrote %s\n", request.output);
    return error < 0 ? STATUS_FAILED : status;
}

const struct command cmd_export = {
    .name = "export",
    .arguments = "[FILE]",
    .summary = "write a recording in the format of another tool",
    .details =
        "Writes what FILE, a recording of perf or of pitviper record (perf.data), says in a "
        "format\n"
        "of other tools:\n"
        "\n"
        "    folded      one line per stack, as flamegraph.pl reads it   (standard output)\n"
        "    speedscope  for speedscope, a profile per thread            profile.speedscope.json\n"
        "    firefox     for profiler.firefox.com and samply load        profile.json.gz\n"
        "    pprof       pprof's protocol buffer                         profile.pb.gz\n"
        "    svg         a picture: the flame graph                      profile.svg\n"
        "    callgrind   for KCachegrind and callgrind_annotate          callgrind.out.pitviper\n"
        "    html        a page to look at, as 'pitviper view' writes it  profile.html\n"
        "\n"
        "Stacks are complete, as recorded; --fold leaves out the interpreter's own functions.\n"
        "\n"
        "The exit status is 0 when all went well, 1 when the recording is damaged (what there is\n"
        "is written) or the output could not be written, 2 when the command line is wrong.\n",
    .options =
        (const struct option_spec[]){
            {"format", 'f', "FORMAT", "one of those above"},
            {"input", 'i', "FILE", "the recording (perf.data); - is standard input"},
            {"output", 'o', "FILE", "where to; - is standard output; FILE.gz is packed"},
            {"fold", OPTION_FOLD, NULL, "leave out the interpreter's own functions"},
            {"lines", OPTION_LINES, NULL, "tell Python functions apart by line"},
            {"show-nr-samples", 'n', NULL, "count samples, not what they stand for"},
            {"event", OPTION_EVENT, "NAME", "samples of this event (the first that has any)"},
            {"comms", 'c', "LIST", "only threads of these names"},
            {"pid", OPTION_PID, "LIST", "only these processes"},
            {"tid", OPTION_TID, "LIST", "only these threads"},
            {0}},
    .run = run,
};
