/* The page for people, and the same for programs. Percentages are of all samples of the event. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "report/source_file.h"
#include "report/summary.h"

#include <inttypes.h>
#include <string.h>

enum { NAME_LIMIT = 48, FEWEST_NAME_COLUMNS = 8, SOURCE_LIMIT = 72, LINE_COLUMNS = 7 };
enum { MOST_WAITS = 20, WAIT_COLUMNS = 14 };

static const double LEAST_LINE_PERCENT = 1, LEAST_WAIT_PERCENT = 1;

static const struct {
    const char *label;
    const char *word;
} places[SUMMARY_PLACE_KINDS] = {
    [SUMMARY_INTERPRETER] = {"interpreter", "interpreter"},
    [SUMMARY_GC] = {"garbage collection", "gc"},
    [SUMMARY_EXTENSION] = {"C extension", "extension"},
    [SUMMARY_LIBC] = {"libc", "libc"},
    [SUMMARY_KERNEL] = {"kernel", "kernel"},
    [SUMMARY_LIBRARY] = {"library", "library"},
    [SUMMARY_OUTSIDE] = {"no Python function in the stack", "outside"},
};

const char *summary_place_label(enum summary_place_kind kind)
{
    return places[kind].label;
}

const char *summary_place_word(enum summary_place_kind kind)
{
    return places[kind].word;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

double summary_complete_percent(const struct profile_losses *losses)
{
    return percent(losses->complete, losses->samples);
}

/* --- text ---------------------------------------------------------------------------------- */

struct page {
    FILE *out;
    const struct summary *summary;
    struct summary_style style;
};

static void paint(const struct page *page, const char *code)
{
    if (page->style.colour)
        fprintf(page->out, "\033[%sm", code);
}

/* Hot is red: that is what pit vipers see. */
static void print_percent(const struct page *page, uint64_t weight)
{
    double share = percent(weight, page->summary->weight);
    bool is_hot = share >= 10, is_warm = share >= 2;
    if (is_hot || is_warm)
        paint(page, is_hot ? "31" : "33");
    fprintf(page->out, "%6.2f%%", share);
    if (is_hot || is_warm)
        paint(page, "0");
}

static void print_title(const struct page *page)
{
    const struct summary *summary = page->summary;
    const struct profile *profile = summary->profile;
    char number[TEXT_NUMBER_BYTES];
    const char *source = profile->info.source ? profile->info.source : "recording";
    text_print(page->out, source, strlen(source), 0);
    fprintf(page->out, ": %s samples", text_number(summary->samples, number));
    if (profile->events.count) {
        const char *event = profile_text(profile, profile->events.items[summary->event].name);
        fputs(" of ", page->out);
        text_print(page->out, event, strlen(event), 0);
    }
    fprintf(page->out, ", %s %s\n\n", text_number(summary->processes, number),
            summary->processes == 1 ? "process" : "processes");
}

static const struct profile_function *function_of(const struct page *page, size_t i)
{
    return &page->summary->profile->functions.items[page->summary->functions.items[i].function];
}

/* Characters, not bytes, for what is UTF-8. */
static size_t columns_of(struct strings_text text)
{
    size_t columns = 0;
    for (size_t i = 0; i < text.length; i++)
        columns += ((unsigned char)text.bytes[i] & 0xc0) != 0x80;
    return columns < NAME_LIMIT ? columns : NAME_LIMIT;
}

static struct strings_text name_of(const struct page *page, size_t i)
{
    return strings_get(&page->summary->profile->strings, function_of(page, i)->python_name);
}

static void print_function(const struct page *page, size_t i, size_t width)
{
    const struct summary_function *row = &page->summary->functions.items[i];
    const struct profile_function *function = function_of(page, i);
    const struct strings *strings = &page->summary->profile->strings;
    struct strings_text name = name_of(page, i), file = strings_get(strings, function->file);
    char number[TEXT_NUMBER_BYTES];
    print_percent(page, row->self_weight);
    fputs("  ", page->out);
    print_percent(page, row->total_weight);
    if (page->summary->waiting_samples) {
        fputs("  ", page->out);
        print_percent(page, row->waiting_weight);
    }
    fprintf(page->out, "  %9s  ", text_number(row->self_samples, number));
    text_print(page->out, name.bytes, name.length, NAME_LIMIT);
    size_t columns = columns_of(name);
    fprintf(page->out, "%*s  ", (int)(width > columns ? width - columns : 0), "");
    text_print(page->out, file.bytes, file.length, 0);
    if (function->line)
        fprintf(page->out, ":%" PRIu32, function->line);
    fputc('\n', page->out);
}

/* The lines under their function. One line alone that the row above names already says nothing. */
static void print_lines(const struct page *page, size_t i)
{
    const struct summary_function *row = &page->summary->functions.items[i];
    const struct profile_function *function = function_of(page, i);
    const struct summary_line *lines = page->summary->lines.items + row->first_line;
    const char *path = profile_text(page->summary->profile, function->file);
    CLEANUP(source_file_done) struct source_file source = {0};
    char number[TEXT_NUMBER_BYTES];
    if (row->line_count == 1 && lines[0].line == function->line)
        return;
    for (size_t l = 0; l < row->line_count && l < page->style.most_lines; l++) {
        if (percent(lines[l].weight, page->summary->weight) < LEAST_LINE_PERCENT)
            break;
        if (l == 0)
            source_file_open(&source, path);
        struct source_line text = source_file_line(&source, lines[l].line);
        print_percent(page, lines[l].weight);
        fprintf(page->out, "%s           %9s    :%-*" PRIu32,
                page->summary->waiting_samples ? "         " : "",
                text_number(lines[l].samples, number), text.length ? LINE_COLUMNS : 0,
                lines[l].line);
        text_print(page->out, text.bytes, text.length, SOURCE_LIMIT);
        fputc('\n', page->out);
    }
}

/* How many rows a list would have more. */
static void print_rest(const struct page *page, size_t count)
{
    char number[TEXT_NUMBER_BYTES];
    if (count)
        fprintf(page->out, "                             and %s more (--json has all)\n",
                text_number(count, number));
}

static void print_functions(const struct page *page)
{
    size_t all = page->summary->functions.count, shown = all, width = FEWEST_NAME_COLUMNS;
    if (page->style.most_functions && shown > page->style.most_functions)
        shown = page->style.most_functions;
    for (size_t i = 0; i < shown; i++) {
        size_t columns = columns_of(name_of(page, i));
        width = width > columns ? width : columns;
    }
    paint(page, "1");
    fprintf(page->out, "   self    total%s    samples  %-*s  file:line",
            page->summary->waiting_samples ? "  waiting" : "", (int)width, "function");
    paint(page, "0");
    fputc('\n', page->out);
    for (size_t i = 0; i < shown; i++) {
        print_function(page, i, width);
        print_lines(page, i);
    }
    print_rest(page, all - shown);
}

static bool is_of_wall_time(const struct summary *summary)
{
    const struct profile *profile = summary->profile;
    return summary->event < profile->events.count &&
           strncmp(profile_text(profile, profile->events.items[summary->event].name), "wall", 4) ==
               0;
}

/* Of a recording of `pitviper record` without samples. */
static void print_advice_to_get_samples(const struct page *page)
{
    bool is_wall = is_of_wall_time(page->summary);
    fprintf(page->out,
            "There are no samples in this recording: the program %s,\n"
            "or could not be recorded, as `pitviper record` has said at its end.\n"
            "More samples of a short program:\n"
            "  pitviper record -F 9999 CMD\n",
            is_wall ? "was too short" : "was too short, or only waited");
    if (!is_wall)
        fputs("Where a program waits:\n"
              "  pitviper record -e wall CMD\n",
              page->out);
}

static void print_advice(const struct page *page)
{
    if (perfdata_is_own(&page->summary->profile->info)) { /* which sees all Python */
        if (!page->summary->samples) {
            print_advice_to_get_samples(page);
            return;
        }
        fputs("There are no Python functions in this recording: no Python was at work.\n"
              "For functions of C:\n"
              "  pitviper report --stdio --no-children\n",
              page->out);
        return;
    }
    fputs("There are no Python functions in this recording: nothing told perf their names.\n"
          "To record them:\n"
          "  pitviper record python3 app.py\n"
          "or with perf itself:\n"
          "  perf record -F 999 -g pitviper run -- python3 app.py\n"
          "or, for a Python without frame pointers (`pitviper doctor` knows),\n"
          "  perf record -F 999 -k mono --call-graph dwarf pitviper run --jit -- python3 app.py\n",
          page->out);
}

static void print_places(const struct page *page)
{
    const struct summary *summary = page->summary;
    char number[TEXT_NUMBER_BYTES];
    if (!summary->places.count)
        return;
    fputc('\n', page->out);
    paint(page, "1");
    fputs(summary->functions.count ? "where the time below Python goes" : "where the time goes",
          page->out);
    paint(page, "0");
    fputc('\n', page->out);
    for (size_t i = 0; i < summary->places.count; i++) {
        const struct summary_place *place = &summary->places.items[i];
        print_percent(page, place->weight);
        fprintf(page->out, "           %9s  %s", text_number(place->samples, number),
                summary_place_label(place->kind));
        if (place->module != PROFILE_NONE) {
            struct strings_text name = strings_get(
                &summary->profile->strings, summary->profile->modules.items[place->module].name);
            fputc(' ', page->out);
            text_print(page->out, name.bytes, name.length, 0);
        }
        fputc('\n', page->out);
    }
}

static void print_wait(const struct page *page, const struct summary_wait *wait)
{
    const struct profile *profile = page->summary->profile;
    char number[TEXT_NUMBER_BYTES];
    print_percent(page, wait->weight);
    fprintf(page->out, "           %9s  %-*s  ", text_number(wait->samples, number), WAIT_COLUMNS,
            waits_label(wait->kind));
    if (wait->function == PROFILE_NONE) {
        fputs("no Python function in the stack\n", page->out);
        return;
    }
    const struct profile_function *function = &profile->functions.items[wait->function];
    struct strings_text name = strings_get(&profile->strings, function->python_name);
    struct strings_text file = strings_get(&profile->strings, function->file);
    text_print(page->out, name.bytes, name.length, NAME_LIMIT);
    fputs("  ", page->out);
    text_print(page->out, file.bytes, file.length, 0);
    if (wait->line)
        fprintf(page->out, ":%" PRIu32, wait->line);
    fputc('\n', page->out);
}

/* They are in order of their weight. */
static size_t count_waits_to_show(const struct summary *summary)
{
    size_t count = 0;
    while (count < summary->waits.count && count < MOST_WAITS &&
           percent(summary->waits.items[count].weight, summary->weight) >= LEAST_WAIT_PERCENT)
        count++;
    return count;
}

/* For what, and where: only in recordings of wall-clock time. */
static void print_waits(const struct page *page)
{
    const struct summary *summary = page->summary;
    if (!summary->waiting_samples)
        return;
    fputc('\n', page->out);
    paint(page, "1");
    fprintf(page->out, "waiting: %.1f %% of the time, for",
            percent(summary->waiting_weight, summary->weight));
    paint(page, "0");
    fputc('\n', page->out);
    size_t shown = count_waits_to_show(summary);
    for (size_t i = 0; i < shown; i++)
        print_wait(page, &summary->waits.items[i]);
    print_rest(page, summary->waits.count - shown);
}

static void print_quality(const struct page *page)
{
    const struct profile_losses *losses = &page->summary->profile->losses;
    char number[TEXT_NUMBER_BYTES];
    fprintf(page->out, "\nsamples %s", text_number(losses->samples, number));
    fprintf(page->out, ", lost %s", text_number(losses->lost_samples, number));
    fprintf(page->out, ", truncated %s", text_number(losses->truncated, number));
    fprintf(page->out, ", broken %s", text_number(losses->broken, number));
    if (losses->without_stack)
        fprintf(page->out, ", without callers %s", text_number(losses->without_stack, number));
    fprintf(page->out, ": %.1f %% complete\n", summary_complete_percent(losses));
    const char *trigger = profile_trigger(page->summary->profile);
    if (*trigger) {
        fputs("interrupted by ", page->out);
        text_print(page->out, trigger, strlen(trigger), 0);
        fputc('\n', page->out);
    }
}

void summary_print_text(FILE *out, const struct summary *summary, struct summary_style style)
{
    struct page page = {.out = out, .summary = summary, .style = style};
    print_title(&page);
    if (summary->functions.count)
        print_functions(&page);
    else
        print_advice(&page);
    print_places(&page);
    print_waits(&page);
    print_quality(&page);
}

/* --- JSON ---------------------------------------------------------------------------------- */

static void json_lines(struct json *json, const struct summary *summary,
                       const struct summary_function *row)
{
    json_begin_array(json, "lines");
    for (size_t i = 0; i < row->line_count; i++) {
        const struct summary_line *line = &summary->lines.items[row->first_line + i];
        json_begin_object(json, NULL);
        json_number(json, "line", line->line);
        json_number(json, "self_samples", line->samples);
        json_number(json, "self_periods", line->weight);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_functions(struct json *json, const struct summary *summary)
{
    const struct profile *profile = summary->profile;
    json_begin_array(json, "functions");
    for (size_t i = 0; i < summary->functions.count; i++) {
        const struct summary_function *row = &summary->functions.items[i];
        const struct profile_function *function = &profile->functions.items[row->function];
        struct strings_text name = strings_get(&profile->strings, function->python_name);
        struct strings_text file = strings_get(&profile->strings, function->file);
        json_begin_object(json, NULL);
        json_string(json, "name", name.bytes, name.length);
        json_string(json, "file", file.bytes, file.length);
        json_number(json, "line", function->line);
        json_number(json, "self_samples", row->self_samples);
        json_number(json, "total_samples", row->total_samples);
        json_number(json, "self_periods", row->self_weight);
        json_number(json, "total_periods", row->total_weight);
        if (summary->waiting_samples) {
            json_number(json, "waiting_samples", row->waiting_samples);
            json_number(json, "waiting_periods", row->waiting_weight);
        }
        json_lines(json, summary, row);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_places(struct json *json, const struct summary *summary)
{
    const struct profile *profile = summary->profile;
    json_begin_array(json, "below_python");
    for (size_t i = 0; i < summary->places.count; i++) {
        const struct summary_place *place = &summary->places.items[i];
        json_begin_object(json, NULL);
        json_text(json, "kind", summary_place_word(place->kind));
        if (place->module != PROFILE_NONE) {
            struct strings_text name =
                strings_get(&profile->strings, profile->modules.items[place->module].name);
            json_string(json, "module", name.bytes, name.length);
        }
        json_number(json, "samples", place->samples);
        json_number(json, "periods", place->weight);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_waits(struct json *json, const struct summary *summary)
{
    const struct profile *profile = summary->profile;
    if (!summary->waiting_samples)
        return;
    json_begin_object(json, "waiting");
    json_number(json, "samples", summary->waiting_samples);
    json_number(json, "periods", summary->waiting_weight);
    json_begin_array(json, "places");
    for (size_t i = 0; i < summary->waits.count; i++) {
        const struct summary_wait *wait = &summary->waits.items[i];
        json_begin_object(json, NULL);
        json_text(json, "kind", waits_word(wait->kind));
        if (wait->function != PROFILE_NONE) {
            const struct profile_function *function = &profile->functions.items[wait->function];
            struct strings_text name = strings_get(&profile->strings, function->python_name);
            struct strings_text file = strings_get(&profile->strings, function->file);
            json_string(json, "name", name.bytes, name.length);
            json_string(json, "file", file.bytes, file.length);
            json_number(json, "line", wait->line);
        }
        json_number(json, "samples", wait->samples);
        json_number(json, "periods", wait->weight);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

void summary_print_json(FILE *out, const struct summary *summary)
{
    const struct profile *profile = summary->profile;
    const struct profile_losses *losses = &profile->losses;
    struct json json;
    json_init(&json, out);
    json_begin_object(&json, NULL);
    json_text(&json, "file", profile->info.source);
    json_text(&json, "event",
              profile->events.count
                  ? profile_text(profile, profile->events.items[summary->event].name)
                  : NULL);
    json_number(&json, "samples", summary->samples);
    json_number(&json, "periods", summary->weight);
    json_number(&json, "processes", summary->processes);
    json_functions(&json, summary);
    json_places(&json, summary);
    json_waits(&json, summary);
    json_begin_object(&json, "quality");
    json_text(&json, "trigger", profile_trigger(profile));
    json_number(&json, "samples", losses->samples);
    json_number(&json, "complete", losses->complete);
    json_number(&json, "truncated", losses->truncated);
    json_number(&json, "broken", losses->broken);
    json_number(&json, "without_callers", losses->without_stack);
    json_number(&json, "lost_samples", losses->lost_samples);
    json_number(&json, "lost_records", losses->lost_records);
    json_end_object(&json);
    json_end_object(&json);
}
