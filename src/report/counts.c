/* Counting, in four passes, none of which does more than a few table look-ups for each thing:
 *
 *     1. samples into groups                 one look-up a sample
 *     2. the chains of the groups into nodes one look-up a frame that is new
 *     3. weights of the nodes, bottom up     parents come before children in the table
 *     4. rows of callers, top down           a row counts a chain where it first appears in it
 *
 * Where a function calls itself, its row must have the chain once: the row counts at the node that
 * has no other node of the row above it ("outermost" in caller order). Which rows are open above a
 * node is known while walking the tree.
 *
 *     main        row main counts here
 *      `- f       row f counts here, with everything below
 *          `- g
 *              `- f   row f is open: nothing to do */
#include "report/counts.h"

#include <errno.h>
#include <stdlib.h>

/* Where a stack was last entered. */
struct known_stack {
    uint32_t context_plus_one; /* 0: nowhere yet */
    uint32_t node;
};

/* Indexes that are only needed while counting. */
struct builder {
    struct counts *counts;
    struct hashtable contexts; /* by hash of the sample columns */
    struct hashtable groups;   /* by (context, stack, leaf) */
    struct hashtable children; /* by (node, step): hash_u64 is one to one */
    struct hashtable rows;     /* by (context, place) */
    VECTOR(uint32_t) first_sample_of_context;
    VECTOR(uint32_t) path;
    struct known_stack *stacks; /* one for each of the profile's; caller order only; owned */
    bool is_caller;
};

static uint64_t pair(uint32_t high, uint32_t low)
{
    return hash_u64((uint64_t)high << 32 | low);
}

static int add_node(struct counts *counts, uint32_t parent, uint32_t step, uint32_t row)
{
    struct counts_node node = {.parent = parent,
                               .step = step,
                               .row = row,
                               .first_child = COUNTS_NONE,
                               .next_sibling = COUNTS_NONE,
                               .next_of_row = COUNTS_NONE,
                               .first_sample = UINT32_MAX};
    uint32_t number = (uint32_t)counts->nodes.count;
    if (parent != COUNTS_NONE) {
        node.depth = counts->nodes.items[parent].depth + 1;
        node.next_sibling = counts->nodes.items[parent].first_child;
    }
    if (vector_push(&counts->nodes, node) < 0)
        return -ENOMEM;
    if (parent != COUNTS_NONE)
        counts->nodes.items[parent].first_child = number;
    return 0;
}

/* Samples with the same values in all sample columns share a context. Their identities are compared
 * with those of the context's first sample. */
static bool same_context(const struct counts *counts, const struct profile_sample *a,
                         const struct profile_sample *b)
{
    for (size_t i = 0; i < counts->settings->column_count; i++) {
        const struct column *column = counts->settings->columns[i];
        if (column->of_sample &&
            column->of_sample(counts->profile, a) != column->of_sample(counts->profile, b))
            return false;
    }
    return true;
}

static int find_context(struct builder *builder, uint32_t number, uint32_t *ret_context)
{
    struct counts *counts = builder->counts;
    const struct profile_sample *samples = counts->profile->samples.items;
    uint64_t hash = 0, value;
    for (size_t i = 0; i < counts->settings->column_count; i++) {
        const struct column *column = counts->settings->columns[i];
        if (column->of_sample)
            hash = hash_u64(hash ^ column->of_sample(counts->profile, &samples[number]));
    }
    struct hashtable_probe probe = hashtable_probe(&builder->contexts, hash);
    while (hashtable_next(&probe, &value) && value < builder->first_sample_of_context.count) {
        uint32_t first = builder->first_sample_of_context.items[value];
        if (same_context(counts, &samples[first], &samples[number])) {
            *ret_context = (uint32_t)value;
            return 0;
        }
    }
    *ret_context = (uint32_t)counts->tops.count;
    if (hashtable_add(&builder->contexts, hash, counts->tops.count) < 0 ||
        vector_push(&counts->tops, (uint32_t)counts->nodes.count) < 0 ||
        vector_push(&builder->first_sample_of_context, number) < 0)
        return -ENOMEM;
    return add_node(counts, COUNTS_NONE, COUNTS_NONE, COUNTS_NONE);
}

static int add_sample(struct builder *builder, uint32_t number)
{
    struct counts *counts = builder->counts;
    const struct profile_sample *sample = &counts->profile->samples.items[number];
    counts->weight += sample->period;
    counts->samples++;
    if (!sample_filter_passes(&counts->settings->samples_wanted, counts->profile, sample))
        return 0;
    uint32_t context;
    if (find_context(builder, number, &context) < 0)
        return -ENOMEM;
    uint64_t hash = pair(context, sample->stack) ^ ((uint64_t)sample->leaf << 20), value;
    struct hashtable_probe probe = hashtable_probe(&builder->groups, hash);
    while (hashtable_next(&probe, &value)) {
        struct counts_group *known = &counts->groups.items[value];
        if (known->context == context && known->stack == sample->stack &&
            known->leaf == sample->leaf) {
            known->weight += sample->period;
            known->count++;
            return 0;
        }
    }
    struct counts_group group = {.weight = sample->period,
                                 .count = 1,
                                 .first_sample = number,
                                 .context = context,
                                 .stack = sample->stack,
                                 .leaf = sample->leaf};
    if (hashtable_add(&builder->groups, hash, counts->groups.count) < 0)
        return -ENOMEM;
    return vector_push(&counts->groups, group);
}

/* The row of a place; places without a frame (samples with an empty stack) have a row, too. */
static int find_row(struct builder *builder, uint32_t context, uint32_t frame, uint32_t *ret_row)
{
    struct counts *counts = builder->counts;
    const struct steps *steps = counts->steps;
    uint32_t place =
        frame == PROFILE_NONE ? COUNTS_NONE : steps->items.items[steps->of_frame[frame]].place;
    uint64_t value;
    if (hashtable_get(&builder->rows, pair(context, place), &value)) {
        *ret_row = (uint32_t)value;
        return 0;
    }
    struct counts_row row = {.context = context,
                             .place = place,
                             .first_group = COUNTS_NONE,
                             .first_node = COUNTS_NONE,
                             .first_sample = UINT32_MAX,
                             .frame = frame};
    *ret_row = (uint32_t)counts->rows.count;
    if (hashtable_set(&builder->rows, pair(context, place), counts->rows.count) < 0)
        return -ENOMEM;
    return vector_push(&counts->rows, row);
}

/* The node below `*node` for a frame. */
static int descend(struct builder *builder, uint32_t context, uint32_t frame, uint32_t *node)
{
    struct counts *counts = builder->counts;
    uint32_t step = counts->steps->of_frame[frame];
    uint64_t key = pair(*node, step), value;
    if (hashtable_get(&builder->children, key, &value)) {
        *node = (uint32_t)value;
        return 0;
    }
    uint32_t row, parent = *node;
    *node = (uint32_t)counts->nodes.count;
    if (find_row(builder, context, frame, &row) < 0 ||
        hashtable_set(&builder->children, key, *node) < 0)
        return -ENOMEM;
    return add_node(counts, parent, step, row);
}

/* Caller order: the profile's stacks are a tree of this kind already. Goes up to the nearest stack
 * whose node is known, and down again. Where another context used the stack in the meantime, that
 * is a longer way to the same node. */
static int caller_node(struct builder *builder, uint32_t context, uint32_t stack, uint32_t *node)
{
    const struct counts *counts = builder->counts;
    const struct profile_stack *stacks = counts->profile->stacks.items;
    builder->path.count = 0;
    *node = counts->tops.items[context];
    for (; stack != PROFILE_ROOT; stack = stacks[stack].parent) {
        if (builder->stacks[stack].context_plus_one == context + 1) {
            *node = builder->stacks[stack].node;
            break;
        }
        if (vector_push(&builder->path, stack) < 0)
            return -ENOMEM;
    }
    while (builder->path.count) {
        stack = builder->path.items[--builder->path.count];
        if (descend(builder, context, stacks[stack].frame, node) < 0)
            return -ENOMEM;
        builder->stacks[stack] =
            (struct known_stack){.context_plus_one = context + 1, .node = *node};
    }
    return 0;
}

static int callee_node(struct builder *builder, uint32_t context, uint32_t stack, uint32_t *node)
{
    const struct profile_stack *stacks = builder->counts->profile->stacks.items;
    *node = builder->counts->tops.items[context];
    for (; stack != PROFILE_ROOT; stack = stacks[stack].parent)
        if (descend(builder, context, stacks[stack].frame, node) < 0)
            return -ENOMEM;
    return 0;
}

static int place_group(struct builder *builder, uint32_t number)
{
    struct counts *counts = builder->counts;
    struct counts_group *group = &counts->groups.items[number];
    int result = builder->is_caller
                     ? caller_node(builder, group->context, group->stack, &group->node)
                     : callee_node(builder, group->context, group->stack, &group->node);
    if (result < 0 || find_row(builder, group->context, group->leaf, &group->row) < 0)
        return -ENOMEM;
    struct counts_row *row = &counts->rows.items[group->row];
    struct counts_node *node = &counts->nodes.items[group->node];
    group->next_of_row = row->first_group;
    row->first_group = number;
    row->self_weight += group->weight;
    row->self_count += group->count;
    if (row->first_sample > group->first_sample) {
        row->first_sample = group->first_sample;
        row->frame = group->leaf;
    }
    if (row->deepest < node->depth)
        row->deepest = node->depth;
    node->weight += group->weight;
    node->count += group->count;
    if (node->first_sample > group->first_sample)
        node->first_sample = group->first_sample;
    if (node->deepest < node->depth)
        node->deepest = node->depth;
    return 0;
}

static void sum_up(struct counts *counts)
{
    for (size_t i = counts->nodes.count; i-- > 0;) {
        const struct counts_node *node = &counts->nodes.items[i];
        if (node->parent == COUNTS_NONE)
            continue;
        struct counts_node *parent = &counts->nodes.items[node->parent];
        parent->weight += node->weight;
        parent->count += node->count;
        if (parent->first_sample > node->first_sample)
            parent->first_sample = node->first_sample;
        if (parent->deepest < node->deepest)
            parent->deepest = node->deepest;
    }
}

static void open_row(struct counts *counts, uint32_t number)
{
    struct counts_node *node = &counts->nodes.items[number];
    struct counts_row *row = &counts->rows.items[node->row];
    row->total_weight += node->weight;
    row->total_count += node->count;
    node->next_of_row = row->first_node;
    row->first_node = number;
    if (row->first_sample > node->first_sample)
        row->first_sample = node->first_sample;
    uint32_t length = node->deepest - node->depth + 1;
    if (row->deepest < length)
        row->deepest = length;
}

/* The next node in the order of walking, keeping count of the rows that are open above it. */
static uint32_t walk_on(const struct counts *counts, uint32_t *open, uint32_t number)
{
    const struct counts_node *nodes = counts->nodes.items;
    if (nodes[number].first_child != COUNTS_NONE)
        return nodes[number].first_child;
    for (;; number = nodes[number].parent) {
        if (nodes[number].row == COUNTS_NONE)
            return COUNTS_NONE;
        open[nodes[number].row]--;
        if (nodes[number].next_sibling != COUNTS_NONE)
            return nodes[number].next_sibling;
    }
}

/* Whether the row of a group is also that of one of its frames: then the walk counts it there. */
static bool is_on_path(const struct counts *counts, const struct counts_group *group)
{
    const struct counts_node *nodes = counts->nodes.items;
    for (uint32_t n = group->node; nodes[n].row != COUNTS_NONE; n = nodes[n].parent)
        if (nodes[n].row == group->row)
            return true;
    return false;
}

static int count_children(struct counts *counts)
{
    uint32_t *open = calloc(counts->rows.count + 1, sizeof *open);
    if (!open)
        return -ENOMEM;
    for (size_t i = 0; i < counts->tops.count; i++) {
        uint32_t number = counts->nodes.items[counts->tops.items[i]].first_child;
        while (number != COUNTS_NONE) {
            if (open[counts->nodes.items[number].row]++ == 0)
                open_row(counts, number);
            number = walk_on(counts, open, number);
        }
    }
    free(open);
    for (size_t i = 0; i < counts->groups.count; i++) {
        const struct counts_group *group = &counts->groups.items[i];
        if (!is_on_path(counts, group)) {
            counts->rows.items[group->row].total_weight += group->weight;
            counts->rows.items[group->row].total_count += group->count;
        }
    }
    return 0;
}

/* perf's letter in brackets. A frame in no mapping has that of the frame before it in the chain's
 * order, the first one that of the sample: of the sample that made the row. */
static char level_of(const struct counts *counts, const struct counts_row *row, bool is_caller,
                     uint32_t *path, size_t room)
{
    const struct profile *profile = counts->profile;
    const struct profile_sample *sample = &profile->samples.items[row->first_sample];
    const struct steps *steps = counts->steps;
    if (row->frame == PROFILE_NONE || row->frame == sample->leaf ||
        steps->items.items[steps->of_frame[sample->leaf]].place == row->place)
        return sample->cpumode;
    size_t count = 0;
    for (uint32_t s = sample->stack; s != PROFILE_ROOT && count < room;
         s = profile->stacks.items[s].parent)
        path[count++] = profile->stacks.items[s].frame;
    char level = sample->cpumode;
    for (size_t i = 0; i < count; i++) {
        uint32_t frame = path[is_caller ? count - 1 - i : i];
        const struct profile_frame *place = &profile->frames.items[frame];
        if (profile->functions.items[place->function].module != 0)
            level = place->is_kernel ? 'k' : '.';
        if (steps->items.items[steps->of_frame[frame]].place == row->place)
            break;
    }
    return level;
}

static int set_levels(struct counts *counts, bool is_caller)
{
    size_t deepest = 1;
    for (size_t i = 0; i < counts->groups.count; i++) {
        size_t depth = counts->profile->stacks.items[counts->groups.items[i].stack].depth;
        deepest = deepest > depth ? deepest : depth;
    }
    uint32_t *path = calloc(deepest, sizeof *path);
    if (!path)
        return -ENOMEM;
    for (size_t i = 0; i < counts->rows.count; i++) {
        struct counts_row *row = &counts->rows.items[i];
        if (row->first_sample != UINT32_MAX)
            row->level = level_of(counts, row, is_caller, path, deepest);
    }
    free(path);
    return 0;
}

static int build(struct builder *builder)
{
    struct counts *counts = builder->counts;
    const struct profile *profile = counts->profile;
    int result = 0;
    builder->stacks = calloc(profile->stacks.count, sizeof *builder->stacks);
    if (!builder->stacks)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->samples.count && result == 0; i++)
        if (profile->samples.items[i].event == counts->event)
            result = add_sample(builder, i);
    for (uint32_t i = 0; i < counts->groups.count && result == 0; i++)
        result = place_group(builder, i);
    if (result < 0)
        return result;
    sum_up(counts);
    if (counts->settings->children) {
        result = count_children(counts);
    } else {
        for (size_t i = 0; i < counts->rows.count; i++) {
            counts->rows.items[i].total_weight = counts->rows.items[i].self_weight;
            counts->rows.items[i].total_count = counts->rows.items[i].self_count;
        }
    }
    return result < 0 ? result : set_levels(counts, builder->is_caller);
}

int counts_init(struct counts *counts, const struct steps *steps,
                const struct report_settings *settings, uint16_t event)
{
    *counts = (struct counts){
        .profile = steps->profile, .settings = settings, .steps = steps, .event = event};
    struct builder builder = {.counts = counts,
                              .is_caller = report_settings_order(settings) == CHAIN_CALLER};
    int result = build(&builder);
    hashtable_done(&builder.contexts);
    hashtable_done(&builder.groups);
    hashtable_done(&builder.children);
    hashtable_done(&builder.rows);
    vector_done(&builder.first_sample_of_context);
    vector_done(&builder.path);
    free(builder.stacks);
    if (result < 0)
        counts_done(counts);
    return result;
}

void counts_done(struct counts *counts)
{
    vector_done(&counts->nodes);
    vector_done(&counts->groups);
    vector_done(&counts->rows);
    vector_done(&counts->tops);
}
