/* Callgrind's format, for KCachegrind and callgrind_annotate: what each line of each function took
 * itself, and what each call took with all that it led to:
 *
 *     ob=(1) python3              object, file, function: a number, and the name at first use
 *     fl=(1) /app.py
 *     fn=(1) work
 *     12 1001001 1                line, cost of the line itself: weight, samples
 *     cfi=(2) /lib.py             a call: object, file, function called …
 *     cfn=(2) helper
 *     calls=37 40                 … how often, the line where that begins, …
 *     13 37037037 37              … the calling line, cost of the call with all below it
 *
 * Samples count no calls: the number is that of samples which saw the call. Below all stacks stands
 * a function with the name of the command, so that everything was called by something.
 *
 * callgrind_annotate takes what the calls of a function took for the function's total. One that
 * calls itself, directly or through others, must not have a sample twice then, so only the call of
 * its outermost appearance in a stack counts:
 *
 *     python3 > main > f > g > f > h    python3>main, main>f, f>g, f>h have the sample; g>f has not
 */
#include "base/hashtable.h"
#include "base/text.h"
#include "export/export.h"
#include "export/weights.h"

#include <inttypes.h>
#include <string.h>

#define NO_CALL UINT32_MAX

/* The cost of a line of a function, or of a call in it. */
struct cost {
    uint32_t name;
    uint32_t line;
    uint32_t callee; /* NO_CALL: the line itself */
    uint64_t weight;
    uint64_t samples;
};

struct callgrind {
    const struct export_view *view;
    FILE *out;
    VECTOR(struct cost) costs;
    struct hashtable cost_of; /* by hash of (name, line, callee) */
    uint32_t *seen;           /* per name: the row that met it last, + 1 */
    struct strings files;     /* numbers of those that were named already */
    struct strings objects;
    bool *is_named; /* per name: its function was named */
    VECTOR(uint32_t) path;
};

/* Commands are functions, too: behind all others. */
static uint32_t command_name(const struct callgrind *grind, uint32_t comm)
{
    return (uint32_t)grind->view->names.items.count + comm;
}

static int add_cost(struct callgrind *grind, struct cost cost)
{
    uint64_t hash = hash_u64(hash_u64((uint64_t)cost.name << 32 | cost.line) ^ cost.callee), value;
    struct hashtable_probe probe = hashtable_probe(&grind->cost_of, hash);
    while (hashtable_next(&probe, &value)) {
        struct cost *known = &grind->costs.items[value];
        if (known->name == cost.name && known->line == cost.line && known->callee == cost.callee) {
            known->weight += cost.weight;
            known->samples += cost.samples;
            return 0;
        }
    }
    if (hashtable_add(&grind->cost_of, hash, grind->costs.count) < 0)
        return -ENOMEM;
    return vector_push(&grind->costs, cost);
}

/* Adds a stack, from the outermost function on. */
static int add_stack(struct callgrind *grind, const struct export_weight_row *row, uint32_t number)
{
    const struct export_node *nodes = grind->view->nodes.items;
    grind->path.count = 0;
    for (uint32_t node = row->node; node; node = nodes[node].parent)
        if (vector_push(&grind->path, node) < 0)
            return -ENOMEM;
    struct cost cost = {
        .name = command_name(grind, row->comm), .weight = row->weight, .samples = row->samples};
    for (size_t i = grind->path.count; i-- > 0;) {
        const struct export_node *node = &nodes[grind->path.items[i]];
        cost.callee = node->name;
        if (grind->seen[node->name] != number && add_cost(grind, cost) < 0)
            return -ENOMEM;
        grind->seen[node->name] = number;
        cost.name = node->name;
        cost.line = node->line;
    }
    cost.callee = NO_CALL;
    return add_cost(grind, cost);
}

static int add_all(struct callgrind *grind)
{
    struct export_weights weights;
    if (export_weights_init(&weights, grind->view) < 0)
        return -ENOMEM;
    int result = 0;
    for (size_t i = 0; i < weights.rows.count && result == 0; i++)
        result = add_stack(grind, &weights.rows.items[i], (uint32_t)i + 1);
    export_weights_done(&weights);
    return result;
}

static int compare(const void *a, const void *b)
{
    const struct cost *left = a, *right = b;
    if (left->name != right->name)
        return left->name < right->name ? -1 : 1;
    /* Lines of the function itself first. */
    if ((left->callee == NO_CALL) != (right->callee == NO_CALL))
        return left->callee == NO_CALL ? -1 : 1;
    if (left->line != right->line)
        return left->line < right->line ? -1 : 1;
    return left->callee < right->callee ? -1 : left->callee > right->callee;
}

/* "fl=(3) name", or "fl=(3)" when it was named before. */
static int write_named(FILE *out, const char *key, struct strings *known, struct strings_text text)
{
    uint32_t before = (uint32_t)known->texts.count, number;
    if (strings_intern(known, text.bytes, text.length, &number) < 0)
        return -ENOMEM;
    fprintf(out, "%s=(%" PRIu32 ")", key, number + 1);
    if (number == before) {
        fputc(' ', out);
        text_print(out, text.bytes, text.length, 0);
    }
    fputc('\n', out);
    return 0;
}

/* Which function the next lines are about. */
static int write_function(struct callgrind *grind, bool is_call, uint32_t number)
{
    const struct profile *profile = grind->view->profile;
    struct strings_text unknown = {"???", 3}; /* as valgrind itself */
    struct strings_text name, file = unknown, object = unknown;
    if (number < grind->view->names.items.count) {
        const struct export_name *from = &grind->view->names.items.items[number];
        name = from->name;
        object = strings_get(&profile->strings, profile->modules.items[from->module].path);
        if (from->file.length)
            file = from->file;
    } else {
        name = strings_get(&profile->strings, number - (uint32_t)grind->view->names.items.count);
        file = (struct strings_text){"[command]", strlen("[command]")};
    }
    if (write_named(grind->out, is_call ? "cob" : "ob", &grind->objects, object) < 0 ||
        write_named(grind->out, is_call ? "cfi" : "fl", &grind->files, file) < 0)
        return -ENOMEM;
    fprintf(grind->out, "%s=(%" PRIu32 ")", is_call ? "cfn" : "fn", number + 1);
    if (!grind->is_named[number]) {
        fputc(' ', grind->out);
        text_print(grind->out, name.bytes, name.length, 0);
    }
    grind->is_named[number] = true;
    fputc('\n', grind->out);
    return 0;
}

static int write_costs(struct callgrind *grind)
{
    for (size_t i = 0; i < grind->costs.count; i++) {
        const struct cost *cost = &grind->costs.items[i];
        if (!i || cost[-1].name != cost->name) {
            fputc('\n', grind->out);
            if (write_function(grind, false, cost->name) < 0)
                return -ENOMEM;
            if (cost->callee != NO_CALL) /* readers expect a line of its own in every function */
                fprintf(grind->out, "%" PRIu32 " 0 0\n", cost->line);
        }
        if (cost->callee != NO_CALL) {
            if (write_function(grind, true, cost->callee) < 0)
                return -ENOMEM;
            fprintf(grind->out, "calls=%" PRIu64 " %" PRIu32 "\n", cost->samples,
                    grind->view->names.items.items[cost->callee].line);
        }
        fprintf(grind->out, "%" PRIu32 " %" PRIu64 " %" PRIu64 "\n", cost->line, cost->weight,
                cost->samples);
    }
    return 0;
}

static void write_head(const struct callgrind *grind)
{
    const struct export_view *view = grind->view;
    const char *unit = view->unit == EXPORT_NANOSECONDS ? "Nanoseconds" : "Events";
    fputs("# callgrind format\nversion: 1\ncreator: pitviper " PITVIPER_VERSION "\ncmd: ",
          grind->out);
    text_print(grind->out, view->settings.source, strlen(view->settings.source), 0);
    fputs("\ndesc: Trigger: ", grind->out);
    text_print(grind->out, export_event_name(view), strlen(export_event_name(view)), 0);
    fprintf(grind->out, "\npositions: line\nevents: %s Samples\nsummary: %" PRIu64 " %" PRIu32 "\n",
            unit, view->weight, view->sample_count);
}

int export_callgrind(const struct export_view *view, FILE *out)
{
    struct callgrind grind = {.view = view, .out = out};
    int result = strings_init(&grind.files);
    if (result < 0)
        return result;
    if (strings_init(&grind.objects) < 0) {
        strings_done(&grind.files);
        return -ENOMEM;
    }
    grind.seen = calloc(view->names.items.count + 1, sizeof *grind.seen);
    grind.is_named = calloc(view->names.items.count + view->profile->strings.texts.count,
                            sizeof *grind.is_named);
    result = grind.seen && grind.is_named ? add_all(&grind) : -ENOMEM;
    if (result == 0) {
        if (grind.costs.count)
            qsort(grind.costs.items, grind.costs.count, sizeof *grind.costs.items, compare);
        write_head(&grind);
        result = write_costs(&grind);
    }
    free(grind.seen);
    free(grind.is_named);
    vector_done(&grind.costs);
    vector_done(&grind.path);
    hashtable_done(&grind.cost_of);
    strings_done(&grind.files);
    strings_done(&grind.objects);
    return result;
}
