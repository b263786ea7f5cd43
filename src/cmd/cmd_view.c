/* pitviper view: a recording as one HTML file with the viewer in it, opened in the browser.
 * src/export/viewer_page.h makes it. */
#include "base/cleanup.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/load_profile.h"
#include "cmd/output_file.h"
#include "cmd/terminal.h"
#include "cmd/web_browser.h"
#include "export/viewer_page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_BASE = OPTION_LONG_ONLY, OPTION_NO_OPEN, OPTION_NO_SOURCE };

struct view {
    const char *input;
    const char *base;   /* NULL: nothing to compare with */
    const char *output; /* NULL: beside the input */
    bool no_open;
    bool no_source;
};

/* The recording's whole name and ".html": a name that nothing else has. NULL: memory is short. */
static char *default_output(const char *input)
{
    char *path;
    size_t length = strlen(input);
    if (strcmp(input, "-") == 0)
        return strdup("perf.data.html");
    while (length > 1 && input[length - 1] == '/') /* recordings may be folders */
        length--;
    return asprintf(&path, "%.*s.html", (int)length, input) < 0 ? NULL : path;
}

/* --- writing ---------------------------------------------------------------------------------- */

static int write_content(FILE *out, const void *page)
{
    return viewer_page_write(out, page);
}

static int write_page(const char *path, const struct viewer_page *page)
{
    int error = output_file_write(path, write_content, page);
    terminal_progress_end();
    if (error == -ENOMEM)
        command_error(&cmd_view, "%s: memory is short for a recording of this size", path);
    else if (error < 0)
        command_error(&cmd_view, "%s: could not be written: %s; -o names another place", path,
                      strerror(-error));
    return error;
}

/* --- showing ---------------------------------------------------------------------------------- */

static void show(const struct view *view, const char *path)
{
    if (strcmp(path, "-") == 0)
        return;
    bool has_display = web_browser_has_display();
    const char *advice = "open it in a browser, here or on any other machine";
    if (!view->no_open && has_display && web_browser_open(path))
        advice = "opened in the browser";
    else if (!view->no_open && has_display)
        advice = "no browser could be started (xdg-open, $BROWSER): open it yourself";
    text_print(stdout, path, strlen(path), 0);
    printf(": %s\n", advice);
}

/* --- the command ------------------------------------------------------------------------------ */

/* STATUS_OK when the command is to be run; -1 after --help. */
static int read_options(struct view *view, const struct command *self, int argc, char **argv)
{
    struct options options;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return -1;
        if (option == OPTIONS_WRONG)
            return STATUS_USAGE;
        if (option == 'i')
            view->input = options.value;
        if (option == 'o')
            view->output = options.value;
        if (option == OPTION_BASE)
            view->base = options.value;
        view->no_open |= option == OPTION_NO_OPEN;
        view->no_source |= option == OPTION_NO_SOURCE;
    }
    if (load_profile_choose(&options, &view->input) != STATUS_OK)
        return STATUS_USAGE;
    if (view->base && strcmp(view->base, "-") == 0 && strcmp(view->input, "-") == 0) {
        command_error(self, "only one recording can come from standard input");
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* Reads a recording that has samples; `status` becomes worse when it is damaged. */
static struct profile *load(const char *path, int *status)
{
    struct profile_options options = load_profile_options();
    struct profile *profile = NULL;
    terminal_begin("pitviper view: reading");
    if (load_profile(&cmd_view, path, &options, &profile) != STATUS_OK) {
        *status = STATUS_FAILED;
        return NULL;
    }
    if (load_profile_judge(&cmd_view, path, profile, "shown") != STATUS_OK)
        *status = STATUS_FAILED;
    if (!profile->samples.count) { /* there would be nothing to see */
        profile_free(profile);
        return NULL;
    }
    return profile;
}

static int make_page(const struct view *view, struct viewer_page *page)
{
    CLEANUP(cleanup_free) char *beside = view->output ? NULL : default_output(view->input);
    CLEANUP(cleanup_free) char *title = viewer_page_title(view->input, view->base);
    const char *path = view->output ? view->output : beside;
    if (!path || !title) {
        load_profile_error(&cmd_view, view->input, -ENOMEM, NULL);
        return STATUS_FAILED;
    }
    page->title = title;
    page->progress = terminal_progress;
    terminal_begin("pitviper view: writing");
    if (write_page(path, page) < 0)
        return STATUS_FAILED;
    show(view, path);
    return STATUS_OK;
}

static int run(const struct command *self, int argc, char **argv)
{
    struct view view = {0};
    int status = read_options(&view, self, argc, argv);
    if (status != STATUS_OK)
        return status < 0 ? STATUS_OK : status;
    struct profile *base = NULL, *profile = load(view.input, &status);
    if (profile && view.base)
        base = load(view.base, &status);
    if (profile && (base || !view.base)) {
        struct viewer_page page = {.profile = profile, .base = base, .sources = !view.no_source};
        terminal_set_status(status);
        if (make_page(&view, &page) != STATUS_OK)
            status = STATUS_FAILED;
    }
    profile_free(profile);
    profile_free(base);
    return status;
}

const struct command cmd_view = {
    .name = "view",
    .arguments = "[FILE]",
    .summary = "look at a recording in the browser: flame graph, timeline, source",
    .details =
        "Writes FILE, a recording of perf or of pitviper record (perf.data), as one HTML file "
        "that\n"
        "has everything in it: the viewer, the samples with their names, the source text of the\n"
        "Python files. It needs no network and no server, so it can be sent to a colleague; then\n"
        "it is opened in the browser where there is a display.\n"
        "\n"
        "    pitviper view -i perf.data\n"
        "    pitviper view -i after.data --base before.data\n"
        "\n"
        "The exit status is 0 when all went well, 1 when the recording is damaged (what there is\n"
        "is shown) or the page could not be written, 2 when the command line is wrong.\n",
    .options =
        (const struct option_spec[]){
            {"input", 'i', "FILE", "the recording (perf.data); - is standard input"},
            {"output", 'o', "FILE",
             "the page (the recording's name and .html); - is standard output"},
            {"base", OPTION_BASE, "FILE", "compare with this recording: what grew, what shrank"},
            {"no-open", OPTION_NO_OPEN, NULL, "don't start a browser"},
            {"no-source", OPTION_NO_SOURCE, NULL, "leave source text out"},
            {0}},
    .run = run,
};
