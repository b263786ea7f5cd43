/* pitviper report: what a recording says.
 *
 * Without options that ask for perf's table it is a page for people who think in Python; with any
 * of them (--stdio, -n, -g, --sort, …) it is the table, to the letter. */
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/load_profile.h"
#include "cmd/terminal.h"
#include "profile/profile.h"
#include "report/summary.h"
#include "report/table.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_FUNCTIONS = 20, PAGE_LINES = 3, PAGE_MANY_LINES = 20, OUTPUT_BUFFER_BYTES = 1 << 16 };

enum {
    OPTION_STDIO = OPTION_LONG_ONLY,
    OPTION_CHILDREN,
    OPTION_NO_CHILDREN,
    OPTION_PERCENT_LIMIT,
    OPTION_PID,
    OPTION_TID,
    OPTION_INLINE,
    OPTION_LINES,
    OPTION_NO_INLINE,
    OPTION_MAX_STACK,
};

struct report {
    const char *path;
    bool json;
    bool is_table;       /* an option was given that is about the table: `table_option` */
    unsigned most_lines; /* of a function on the page */
    bool has_max_stack;
    bool wants_chains; /* -g was given with something other than none */
    const char *table_option;
    struct report_settings settings;
    struct profile_options loading;
};

static int wrong_argument(const char *option, const char *value, const char *wanted)
{
    command_error(&cmd_report, "%s: '%s' is not %s; see 'pitviper help report'", option, value,
                  wanted);
    return OPTIONS_WRONG;
}

/* The argument of -g, or NULL where there is none: then callers come first, as with perf. */
static int set_call_graph(struct report *report, const char *value)
{
    const char *wrong;
    int length;
    struct chain_settings *chains = &report->settings.chains;
    if (!value)
        chains->order = CHAIN_CALLER;
    else if (chain_settings_parse(chains, value, &wrong, &length) < 0) {
        command_error(&cmd_report,
                      "-g: '%.*s' is none of graph, fractal, flat, folded, none, caller, callee, "
                      "function, address, srcline, percent, period, count, or a number",
                      length, wrong);
        return OPTIONS_WRONG;
    }
    report->wants_chains = chains->mode != CHAIN_NONE;
    report->loading.lines |= chains->key != CHAIN_FUNCTION;
    return 0;
}

static int set_sort(struct report *report, const char *value)
{
    const char *wrong;
    int length;
    int result = report_settings_sort(&report->settings, value, &wrong, &length);
    if (result == -E2BIG) {
        command_error(&cmd_report, "--sort: at most %d columns", SETTINGS_MOST_COLUMNS);
        return OPTIONS_WRONG;
    }
    if (result < 0) {
        char name[32];
        snprintf(name, sizeof name, "%.*s", length, wrong);
        size_t count = 0;
        while (column_names[count])
            count++;
        const char *nearest = text_nearest(name, column_names, count);
        command_error(&cmd_report, "--sort: there is no column '%s'%s%s%s", name,
                      nearest ? "; did you mean '" : "; see 'pitviper help report'",
                      nearest ? nearest : "", nearest ? "'?" : "");
        return OPTIONS_WRONG;
    }
    report->loading.lines |= strstr(value, "src") != NULL;
    return 0;
}

static int set_number(const char *option, const char *text, double most, double *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtod(text, &end);
    if (end == text || *end || errno || !isfinite(*ret_number) || *ret_number < 0 ||
        *ret_number > most)
        return wrong_argument(option, text, "a number that makes sense here");
    return 0;
}

/* Options of the page and of loading; 1 when it is one of them. */
static int set_common_option(struct report *report, int option, const char *value)
{
    double number;
    switch (option) {
    case 'i':
        report->path = value;
        return 1;
    case 'j':
        report->json = true;
        return 1;
    case OPTION_LINES:
        report->most_lines = PAGE_MANY_LINES;
        return 1;
    case OPTION_INLINE:
        report->loading.inlines = true;
        return 1;
    case OPTION_NO_INLINE:
        report->loading.inlines = false;
        return 1;
    case OPTION_MAX_STACK:
        if (set_number("--max-stack", value, 1 << 20, &number) < 0)
            return OPTIONS_WRONG;
        report->loading.max_stack = (uint32_t)number;
        report->has_max_stack = true;
        return 1;
    default:
        return 0;
    }
}

static int set_table_option(struct report *report, int option, const char *value)
{
    struct report_settings *settings = &report->settings;
    report->is_table = true;
    switch (option) {
    case 'g':
        return set_call_graph(report, value);
    case 's':
        return set_sort(report, value);
    case 'n':
        settings->samples = true;
        break;
    case 'c':
        settings->samples_wanted.comms = value;
        break;
    case 'd':
        settings->dsos = value;
        break;
    case 'S':
        settings->symbols = value;
        break;
    case OPTION_PID:
        settings->samples_wanted.pids = value;
        break;
    case OPTION_TID:
        settings->samples_wanted.tids = value;
        break;
    case OPTION_CHILDREN:
        settings->children = true;
        break;
    case OPTION_NO_CHILDREN:
        settings->children = false;
        break;
    case OPTION_PERCENT_LIMIT:
        if (set_number("--percent-limit", value, 100, &settings->percent_limit) < 0)
            return OPTIONS_WRONG;
        settings->chains.min_percent =
            settings->percent_limit; /* as perf; a later -g has its own */
        break;
    default:
        break;
    }
    return 0;
}

/* STATUS_OK when the command is to be run; -1 after --help. */
static int read_options(struct report *report, const struct command *self, int argc, char **argv)
{
    struct options options;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return -1;
        int result = option == OPTIONS_WRONG ? OPTIONS_WRONG
                                             : set_common_option(report, option, options.value);
        if (result == 0)
            result = set_table_option(report, option, options.value);
        if (result == OPTIONS_WRONG)
            return STATUS_USAGE;
    }
    if (load_profile_choose(&options, &report->path) != STATUS_OK)
        return STATUS_USAGE;
    if (report->json && report->is_table) {
        command_error(self, "--json is for the page, not for perf's table: leave out the options "
                            "of the table");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* The one line about what is wrong with the recording or does not fit it; the exit status. */
static int judge(const struct report *report, const struct profile *profile)
{
    int status = load_profile_judge(&cmd_report, report->path, profile, "reported");
    bool has_chains = false;
    for (size_t i = 0; i < profile->events.count; i++)
        has_chains |= profile->events.items[i].has_callchains;
    if (status == STATUS_OK && report->wants_chains && !has_chains) {
        command_error(&cmd_report,
                      "%s: has no call chains for -g to show; record with 'perf record -g'",
                      report->path);
        return STATUS_FAILED;
    }
    return status;
}

static int print_page(const struct report *report, const struct profile *profile)
{
    struct summary summary;
    if (summary_init(&summary, profile) < 0)
        return -ENOMEM;
    struct summary_style style = {.colour = terminal_has_colour(),
                                  .most_functions = PAGE_FUNCTIONS,
                                  .most_lines = report->most_lines};
    if (report->json)
        summary_print_json(stdout, &summary);
    else
        summary_print_text(stdout, &summary, style);
    summary_done(&summary);
    return 0;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct report report = {.settings = report_settings_default(),
                            .most_lines = PAGE_LINES,
                            .loading = profile_options_default()};
    int status = read_options(&report, self, argc, argv);
    if (status != STATUS_OK)
        return status < 0 ? STATUS_OK : status;
    report.loading.outermost =
        report.is_table && report_settings_order(&report.settings) == CHAIN_CALLER;
    struct profile_options whole = load_profile_options();
    report.loading.python_lines = !report.is_table && whole.python_lines;
    if (!report.is_table && !report.has_max_stack)
        report.loading.max_stack = whole.max_stack;
    terminal_begin("pitviper report");
    struct profile *profile;
    if (load_profile(self, report.path, &report.loading, &profile) != STATUS_OK)
        return STATUS_FAILED;
    status = judge(&report, profile);
    terminal_set_status(status);
    static char buffer[OUTPUT_BUFFER_BYTES];
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    int error = report.is_table ? table_print(stdout, profile, &report.settings)
                                : print_page(&report, profile);
    profile_free(profile);
    if (error < 0) {
        load_profile_error(self, report.path, error, NULL);
        return STATUS_FAILED;
    }
    return status;
}

const struct command cmd_report = {
    .name = "report",
    .arguments = "[FILE]",
    .summary = "show where the time went in a recording",
    .details =
        "Shows what FILE, a recording of pitviper record or of perf (perf.data), says: one page\n"
        "with the hottest Python functions and lines, what runs below Python, and how good the\n"
        "recording is. Names come from perf maps and jitdumps directly: there is no inject step.\n"
        "\n"
        "With --stdio, or any other option of perf's table, prints what 'perf report --stdio'\n"
        "prints for the same file.\n"
        "\n"
        "The exit status is 0 when all went well, 1 when the recording is damaged or lacks what\n"
        "was asked for (what there is is shown), 2 when the command line is wrong.\n",
    .options =
        (const struct option_spec[]){
            {"input", 'i', "FILE", "the recording (perf.data); - is standard input"},
            {"json", 'j', NULL, "the page as JSON, for scripts"},
            {"lines", OPTION_LINES, NULL, "more lines of each Python function on the page"},
            {"stdio", OPTION_STDIO, NULL, "perf's table"},
            {"show-nr-samples", 'n', NULL, "a column with the number of samples"},
            {"call-graph", 'g', "[HOW]",
             "call chains, such as graph,0.5,caller; none: without; see pitviper-report(1)"},
            {"children", OPTION_CHILDREN, NULL,
             "rows for callers, with what they called (default)"},
            {"no-children", OPTION_NO_CHILDREN, NULL, "rows for sampled functions only"},
            {"sort", 's', "KEYS",
             "columns that make rows: comm, dso, sym, pid, tid, cpu, srcline, srcfile"},
            {"percent-limit", OPTION_PERCENT_LIMIT, "N",
             "leave out rows and branches below N percent"},
            {"comms", 'c', "LIST", "only threads of these names"},
            {"dsos", 'd', "LIST", "only rows of these modules"},
            {"symbols", 'S', "LIST", "only rows of these functions"},
            {"pid", OPTION_PID, "LIST", "only these processes"},
            {"tid", OPTION_TID, "LIST", "only these threads"},
            {"inline", OPTION_INLINE, NULL, "show inlined functions"},
            {"no-inline", OPTION_NO_INLINE, NULL, "don't (default)"},
            {"max-stack", OPTION_MAX_STACK, "N", "at most N frames of a call chain (127)"},
            {0}},
    .run = run,
};
