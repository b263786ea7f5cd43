/* The drawing, with perf's measures. A level is 11 characters wide: the bar (or a space once the
 * last child of that level has been drawn) and ten spaces. Before each child comes a line with
 * bars only.
 *
 *                 |
 *                 ---main                       a single root with all the weight of the row
 *                    work
 *                    |
 *                    |--60.00%--parse           levels = {true}
 *                    |          |
 *                    |           --20.00%--read levels = {true, false}
 *                    |
 *                     --30.00%--write           levels = {false}
 *                               flush           the rest of a run stands below its head
 *
 * Otherwise all roots are drawn as children, without the first two lines and three columns
 * further left. */
#include "report/chain_draw.h"

#include "base/text.h"
#include "base/vector.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MARGIN = 12, LEVEL_WIDTH = 11, FLAT_VALUE_MARGIN = 11, FLAT_MARGIN = 16 };

struct pen {
    FILE *out;
    const struct counts *counts;
    int margin;
    VECTOR(bool) levels; /* whether the bar goes on */
};

static void print_spaces(FILE *out, int count)
{
    fprintf(out, "%*s", count, "");
}

static void print_symbol(const struct pen *pen, uint32_t symbol)
{
    const struct counts *counts = pen->counts;
    uint32_t frame = counts->steps->symbols.items[symbol];
    const struct profile_frame *place = &counts->profile->frames.items[frame];
    const struct profile_function *function = &counts->profile->functions.items[place->function];
    if (function->kind == PROFILE_FUNCTION_UNRESOLVED) {
        fprintf(pen->out, "%#" PRIx64, place->ip_avma);
        return;
    }
    struct column_cell cell = {0};
    column_symbol_cell(counts->profile, frame, &cell);
    text_print(pen->out, cell.text, cell.length, 0);
    enum chain_key key = counts->settings->chains.key;
    if (key != CHAIN_FUNCTION && place->line) {
        const char *file = text_base_name(profile_text(counts->profile, place->file));
        fputc(' ', pen->out);
        text_print(pen->out, file, strlen(file), 0);
        fprintf(pen->out, ":%" PRIu32, place->line);
    } else if (key == CHAIN_ADDRESS) {
        fprintf(pen->out, " +%" PRIu32, place->offset);
    }
    fputs(cell.tail, pen->out);
}

/* The value of a branch: percent of `whole`, or what else was asked for. */
static void print_value(const struct pen *pen, uint64_t weight, uint64_t count, uint64_t whole)
{
    switch (pen->counts->settings->chains.value) {
    case CHAIN_PERIOD:
        fprintf(pen->out, "%" PRIu64, weight);
        break;
    case CHAIN_COUNT:
        fprintf(pen->out, "%" PRIu64, count);
        break;
    default:
        fprintf(pen->out, "%.2f%%", whole ? 100.0 * (double)weight / (double)whole : 0.0);
    }
}

/* --- graph and fractal --------------------------------------------------------------------- */

static void print_levels(const struct pen *pen, size_t count)
{
    print_spaces(pen->out, pen->margin);
    for (size_t i = 0; i < count; i++)
        fprintf(pen->out, "%-*s", LEVEL_WIDTH, pen->levels.items[i] ? "|" : "");
}

static uint64_t children_weight(const struct chain_node *node)
{
    return node->weight - node->end_weight;
}

/* The line of bars, and the beginning of the line of a child. */
static void begin_child(const struct pen *pen, bool is_last)
{
    size_t level = pen->levels.count - 1;
    pen->levels.items[level] = true;
    print_levels(pen, level + 1);
    fputc('\n', pen->out);
    pen->levels.items[level] = !is_last;
    print_levels(pen, level);
    fputs(is_last ? " --" : "|--", pen->out);
}

/* What the children that are too small to be shown add up to, which perf shows in fractal mode. */
static uint64_t rest_of_children(const struct chain_node *node, uint64_t whole)
{
    uint64_t rest = whole;
    for (const struct chain_node *child = node->first_child; child; child = child->next)
        rest -= child->weight;
    return rest;
}

/* `whole` is 100 %: in graph mode always everything. */
static int draw_children(struct pen *pen, const struct chain_node *node, uint64_t whole)
{
    if (!node->first_child)
        return 0;
    bool is_fractal = pen->counts->settings->chains.mode == CHAIN_FRACTAL;
    uint64_t rest = is_fractal ? rest_of_children(node, whole) : 0;
    if (vector_push(&pen->levels, true) < 0)
        return -ENOMEM;
    size_t level = pen->levels.count - 1;
    for (const struct chain_node *child = node->first_child; child; child = child->next) {
        begin_child(pen, !child->next && !rest);
        print_value(pen, child->weight, child->count, whole);
        fputs("--", pen->out);
        for (size_t i = 0; i < child->run_length; i++) {
            if (i)
                print_levels(pen, level + 1);
            print_symbol(pen, child->run[i]);
            fputc('\n', pen->out);
        }
        if (draw_children(pen, child, is_fractal ? children_weight(child) : whole) < 0)
            return -ENOMEM;
    }
    if (rest) {
        pen->levels.items[level] = false;
        print_levels(pen, level);
        fputs(" --", pen->out);
        print_value(pen, rest, 0, whole);
        fputs("--[...]\n", pen->out);
    }
    pen->levels.count--;
    return 0;
}

/* Where rows are functions in the first place, the first frame repeats the row: perf leaves it out.
 */
static bool skips_first(const struct report_settings *settings)
{
    return settings->column_count && settings->columns[0] == &column_symbol;
}

static int draw_graph(struct pen *pen, const struct chain_node *root)
{
    const struct chain_node *node = root;
    bool is_fractal = pen->counts->settings->chains.mode == CHAIN_FRACTAL;
    if (!root->first_child->next && root->first_child->weight == root->weight) {
        node = root->first_child;
        for (size_t i = skips_first(pen->counts->settings); i < node->run_length; i++) {
            print_spaces(pen->out, pen->margin);
            if (pen->margin == MARGIN) {
                fprintf(pen->out, "|\n%*s---", MARGIN, "");
                pen->margin += 3;
            }
            print_symbol(pen, node->run[i]);
            fputc('\n', pen->out);
        }
    }
    int result = draw_children(pen, node, is_fractal ? root->weight : pen->counts->weight);
    if (node->first_child || pen->margin != MARGIN)
        fputc('\n', pen->out);
    return result;
}

/* --- flat and folded ----------------------------------------------------------------------- */

/* A chain of the list. */
struct end {
    const struct chain_node *node; /* where it ends */
    size_t number; /* in perf's order of finding: longer ones before those in them */
};

static const struct chain_node *innermost_first_child(const struct chain_node *node)
{
    while (node->first_child)
        node = node->first_child;
    return node;
}

static int collect_ends(const struct chain_node *root, uint64_t smallest, struct end **ret_ends,
                        size_t *ret_count)
{
    VECTOR(struct end) ends = {0};
    for (const struct chain_node *node = innermost_first_child(root); node != root;
         node = node->next ? innermost_first_child(node->next) : node->parent) {
        struct end end = {.node = node, .number = ends.count};
        if (node->end_count && node->end_weight >= smallest && vector_push(&ends, end) < 0) {
            vector_done(&ends);
            return -ENOMEM;
        }
    }
    *ret_ends = ends.items;
    *ret_count = ends.count;
    return 0;
}

static int compare_ends(const void *a, const void *b)
{
    const struct end *left = a, *right = b;
    if (left->node->end_weight != right->node->end_weight)
        return left->node->end_weight > right->node->end_weight ? -1 : 1;
    return left->number < right->number ? -1 : left->number > right->number;
}

/* The frames from the root to the end of a node. */
static void print_chain(const struct pen *pen, const struct chain_node *node, const char *between,
                        int margin)
{
    if (node->parent && node->parent->run_length) {
        print_chain(pen, node->parent, between, margin);
        fputs(between, pen->out);
    }
    for (size_t i = 0; i < node->run_length; i++) {
        if (i)
            fputs(between, pen->out);
        print_spaces(pen->out, margin);
        print_symbol(pen, node->run[i]);
    }
}

static int draw_list(struct pen *pen, const struct chain_node *root)
{
    const struct chain_settings *chains = &pen->counts->settings->chains;
    bool is_flat = chains->mode == CHAIN_FLAT;
    uint64_t whole = pen->counts->weight;
    struct end *ends = NULL;
    size_t count;
    uint64_t smallest = (uint64_t)((double)whole * (chains->min_percent / 100));
    if (collect_ends(root, smallest, &ends, &count) < 0)
        return -ENOMEM;
    if (count)
        qsort(ends, count, sizeof *ends, compare_ends);
    for (size_t i = 0; i < count && (!chains->print_limit || i < chains->print_limit); i++) {
        const struct chain_node *end = ends[i].node;
        if (is_flat) {
            print_spaces(pen->out, FLAT_VALUE_MARGIN);
            print_value(pen, end->weight, end->count, whole);
            fputc('\n', pen->out);
        } else {
            print_value(pen, end->end_weight, end->end_count, whole);
            fputc(' ', pen->out);
        }
        print_chain(pen, end, is_flat ? "\n" : ";", is_flat ? FLAT_MARGIN : 0);
        fputs(is_flat ? "\n\n" : "\n", pen->out);
    }
    free(ends);
    return 0;
}

int chain_draw(FILE *out, const struct counts *counts, const struct chain_node *root)
{
    struct pen pen = {.out = out, .counts = counts, .margin = MARGIN};
    int result = 0;
    switch (counts->settings->chains.mode) {
    case CHAIN_GRAPH:
    case CHAIN_FRACTAL:
        result = draw_graph(&pen, root);
        break;
    case CHAIN_FLAT:
    case CHAIN_FOLDED:
        result = draw_list(&pen, root);
        break;
    case CHAIN_NONE:
        break;
    }
    vector_done(&pen.levels);
    return result;
}
