/* Layout: columns are two spaces apart, numbers on the left, the keys behind them, each as wide as
 * its longest cell or its name.
 *
 *     # Children      Self       Samples  Command  Shared Object         Symbol
 *     # ........  ........  ............  .......  ....................  ..............
 *     #
 *         21.46%     0.00%             0  python3  [unknown]             [.] 0x00007fb95f656240
 *
 * A key that a filter makes the same in all rows is named in the head instead ("# comm: python3").
 */
#include "report/table.h"

#include "base/text.h"
#include "base/vector.h"
#include "report/chain_draw.h"
#include "report/row_order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PERCENT_WIDTH = 8, SAMPLES_WIDTH = 12, UNRESOLVED_WIDTH = 16 };

struct table {
    FILE *out;
    struct report_settings settings; /* as they fit the event */
    struct counts counts;
    uint32_t *rows;
    size_t row_count;
    size_t widths[SETTINGS_MOST_COLUMNS];
    bool hidden[SETTINGS_MOST_COLUMNS]; /* named in the head */
};

static const char *filter_of(const struct report_settings *settings, const struct column *column)
{
    if (column == &column_comm)
        return settings->samples_wanted.comms;
    if (column == &column_dso)
        return settings->dsos;
    return column == &column_symbol ? settings->symbols : NULL;
}

static void print_head(FILE *out, const struct profile *profile,
                       const struct report_settings *settings)
{
    fputs("# To display the perf.data header info, please use --header/--header-only options.\n"
          "#\n",
          out);
    for (size_t i = 0; i < settings->column_count; i++) {
        const char *filter = filter_of(settings, settings->columns[i]);
        if (report_list_is_single(filter)) {
            fprintf(out, "# %s: ", settings->columns[i]->filter);
            text_print(out, filter, strlen(filter), 0);
            fputc('\n', out);
        }
    }
    fprintf(out, "#\n# Total Lost Samples: %" PRIu64 "\n#\n", profile->losses.lost_samples);
}

static void print_event(FILE *out, const struct profile *profile, const struct counts *counts)
{
    static const char units[] = {' ', 'K', 'M', 'G'};
    uint64_t samples = counts->samples;
    size_t unit = 0;
    for (; samples > 1000 && unit < sizeof units - 1; unit++)
        samples /= 1000;
    struct strings_text name =
        strings_get(&profile->strings, profile->events.items[counts->event].name);
    fprintf(out, "# Samples: %" PRIu64 "%c of event '", samples, units[unit]);
    text_print(out, name.bytes, name.length, 0);
    fprintf(out, "'\n# Event count (approx.): %" PRIu64 "\n#\n", counts->weight);
}

/* Rows without a name make perf's column of modules wide enough for an address. */
static bool is_unresolved(const struct profile *profile, uint32_t frame)
{
    return frame == PROFILE_NONE ||
           profile->functions.items[profile->frames.items[frame].function].kind ==
               PROFILE_FUNCTION_UNRESOLVED;
}

static size_t cell_width(const struct table *table, const struct column *column, uint32_t row)
{
    struct column_source source = row_source(&table->counts, row);
    struct column_cell cell = {0};
    (column->measure ? column->measure : column->cell)(&source, &cell);
    size_t width = column_cell_width(&cell);
    if (column == &column_dso && width < UNRESOLVED_WIDTH &&
        is_unresolved(source.profile, source.frame))
        return UNRESOLVED_WIDTH;
    return width;
}

static void measure(struct table *table)
{
    for (size_t c = 0; c < table->settings.column_count; c++) {
        const struct column *column = table->settings.columns[c];
        table->widths[c] = strlen(column->header);
        for (size_t i = 0; i < table->row_count; i++) {
            size_t width = cell_width(table, column, table->rows[i]);
            if (table->widths[c] < width)
                table->widths[c] = width;
        }
        table->hidden[c] = report_list_is_single(filter_of(&table->settings, column));
    }
}

static void print_names(const struct table *table)
{
    bool children = table->settings.children;
    fprintf(table->out, "# %*s", PERCENT_WIDTH, children ? "Children" : "Overhead");
    if (children)
        fprintf(table->out, "  %*s", PERCENT_WIDTH, "Self");
    if (table->settings.samples)
        fprintf(table->out, "  %*s", SAMPLES_WIDTH, "Samples");
    for (size_t c = 0; c < table->settings.column_count; c++)
        if (!table->hidden[c])
            fprintf(table->out, "  %-*s", (int)table->widths[c],
                    table->settings.columns[c]->header);
    fputc('\n', table->out);
}

static void print_dots_of(FILE *out, size_t count)
{
    while (count--)
        fputc('.', out);
}

static void print_dots(const struct table *table)
{
    fputs("# ", table->out);
    print_dots_of(table->out, PERCENT_WIDTH);
    if (table->settings.children) {
        fputs("  ", table->out);
        print_dots_of(table->out, PERCENT_WIDTH);
    }
    if (table->settings.samples) {
        fputs("  ", table->out);
        print_dots_of(table->out, SAMPLES_WIDTH);
    }
    for (size_t c = 0; c < table->settings.column_count; c++) {
        if (table->hidden[c])
            continue;
        fputs("  ", table->out);
        print_dots_of(table->out, table->widths[c]);
    }
    fputs("\n#\n", table->out);
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static void print_row(const struct table *table, uint32_t number)
{
    const struct counts_row *row = &table->counts.rows.items[number];
    struct column_source source = row_source(&table->counts, number);
    uint64_t whole = table->counts.weight;
    FILE *out = table->out;
    if (table->settings.children)
        fprintf(out, "   %6.2f%%", percent(row->total_weight, whole));
    fprintf(out, "   %6.2f%%", percent(row->self_weight, whole));
    if (table->settings.samples)
        fprintf(out, "   %11" PRIu64, row->self_count);
    size_t last = table->settings.column_count;
    while (last > 0 && table->hidden[last - 1])
        last--;
    for (size_t c = 0; c < last; c++) {
        if (table->hidden[c])
            continue;
        struct column_cell cell = {0};
        const struct column *column = table->settings.columns[c];
        column->cell(&source, &cell);
        size_t excess = column_cell_width(&cell);
        excess = excess > table->widths[c] ? excess - table->widths[c] : 0;
        cell.length -= excess < cell.length ? excess : cell.length;
        fprintf(out, "  %s", cell.lead);
        if (cell.length)
            text_print(out, cell.text, cell.length, 0);
        fputs(cell.tail, out);
        size_t width = column_cell_width(&cell);
        if ((c + 1 < last || column->pads) && width < table->widths[c])
            fprintf(out, "%*s", (int)(table->widths[c] - width), "");
    }
    fputc('\n', out);
}

static int print_rows(struct table *table)
{
    struct chain_trees trees;
    if (chain_trees_init(&trees, &table->counts) < 0)
        return -ENOMEM;
    int result = 0;
    bool has_chains = table->settings.chains.mode != CHAIN_NONE;
    for (size_t i = 0; i < table->row_count && result == 0; i++) {
        const struct counts_row *row = &table->counts.rows.items[table->rows[i]];
        if (percent(row->total_weight, table->counts.weight) < table->settings.percent_limit)
            continue;
        print_row(table, table->rows[i]);
        const struct chain_node *root = NULL;
        if (has_chains)
            result = chain_tree_make(&trees, row, &root);
        if (root)
            result = chain_draw(table->out, &table->counts, root);
    }
    chain_trees_done(&trees);
    return result;
}

static int print_event_table(FILE *out, const struct profile *profile,
                             const struct report_settings *settings, uint16_t event)
{
    struct table table = {.out = out, .settings = *settings};
    if (!profile->events.items[event].has_callchains) {
        table.settings.children = false;
        table.settings.chains.mode = CHAIN_NONE;
    }
    struct steps steps;
    if (steps_init(&steps, profile, &table.settings) < 0)
        return -ENOMEM;
    int result = counts_init(&table.counts, &steps, &table.settings, event);
    if (result == 0) {
        result = row_order_make(&table.counts, &table.rows, &table.row_count);
        if (result == 0) {
            measure(&table);
            print_event(out, profile, &table.counts);
            print_names(&table);
            print_dots(&table);
            result = print_rows(&table);
            fputs("\n\n", out);
        }
        free(table.rows);
        counts_done(&table.counts);
    }
    steps_done(&steps);
    return result;
}

int table_print(FILE *out, const struct profile *profile, const struct report_settings *settings)
{
    print_head(out, profile, settings);
    int result = 0;
    for (uint16_t event = 0; event < profile->events.count && result == 0; event++)
        if (profile->events.items[event].samples)
            result = print_event_table(out, profile, settings, event);
    return result;
}
