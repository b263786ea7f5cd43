/* A row's chains are of two kinds (see counts.h):
 *
 *     own      of samples in the row's function itself: whole chains, from the top of the tree
 *     passing  of samples in something that it called: from the function's node on
 *
 * perf keeps a tree for each row and adds each chain of each sample to it, frame by frame. Here
 * nothing is added: the row's tree is cut out of the one tree that all chains are in, from the
 * nodes where the row starts to count downwards. Nodes that stand for the same function are walked
 * together, and branches too small to be drawn are never entered. So a tree costs what its drawing
 * does.
 *
 * For that, each node needs to know how much of its weight is `own`: this is noted, before a tree
 * is made, by going up from the ends of the row's own chains; the rest is passing. */
#include "report/chain_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct chain_weight {
    uint64_t weight;
    uint64_t count;
};

/* A node that is walked, for one of the two kinds of chains. */
struct chain_branch {
    uint32_t node;
    uint32_t symbol;
    uint64_t weight;
    uint64_t count;
    bool is_own;
};

/* Branches of the same symbol, next to each other in the vector. */
struct span {
    size_t begin, end;
    uint64_t weight;
    uint64_t count;
};

int chain_trees_init(struct chain_trees *trees, const struct counts *counts)
{
    *trees = (struct chain_trees){.counts = counts};
    trees->own = calloc(counts->nodes.count + 1, sizeof *trees->own);
    return trees->own ? 0 : -ENOMEM;
}

void chain_trees_done(struct chain_trees *trees)
{
    free(trees->own);
    trees->own = NULL;
    vector_done(&trees->branches);
    vector_done(&trees->run);
    vector_done(&trees->made);
    arena_done(&trees->arena);
}

static void note_own(struct chain_trees *trees, const struct counts_row *row, bool forget)
{
    const struct counts *counts = trees->counts;
    for (uint32_t g = row->first_group; g != COUNTS_NONE; g = counts->groups.items[g].next_of_row) {
        const struct counts_group *group = &counts->groups.items[g];
        for (uint32_t n = group->node; n != COUNTS_NONE; n = counts->nodes.items[n].parent) {
            trees->own[n].weight += forget ? -group->weight : group->weight;
            trees->own[n].count += forget ? -group->count : group->count;
        }
    }
}

static int add_branch(struct chain_trees *trees, uint32_t number, bool is_own)
{
    const struct counts_node *node = &trees->counts->nodes.items[number];
    struct chain_weight own = trees->own[number];
    struct chain_branch branch = {
        .node = number,
        .symbol = trees->counts->steps->items.items[node->step].symbol,
        .weight = is_own ? own.weight : node->weight - own.weight,
        .count = is_own ? own.count : node->count - own.count,
        .is_own = is_own,
    };
    return branch.count ? vector_push(&trees->branches, branch) : 0;
}

static int add_children(struct chain_trees *trees, uint32_t number, bool is_own)
{
    const struct counts_node *nodes = trees->counts->nodes.items;
    for (uint32_t c = nodes[number].first_child; c != COUNTS_NONE; c = nodes[c].next_sibling)
        if (add_branch(trees, c, is_own) < 0)
            return -ENOMEM;
    return 0;
}

static int compare_branches(const void *a, const void *b)
{
    uint32_t left = ((const struct chain_branch *)a)->symbol;
    uint32_t right = ((const struct chain_branch *)b)->symbol;
    return left < right ? -1 : left > right;
}

/* The group of equal symbols that starts at `at`; the branches must be sorted from there on. */
static struct span span_at(const struct chain_trees *trees, size_t at)
{
    const struct chain_branch *branches = trees->branches.items;
    struct span span = {.begin = at, .end = at};
    while (span.end < trees->branches.count && branches[span.end].symbol == branches[at].symbol) {
        span.weight += branches[span.end].weight;
        span.count += branches[span.end].count;
        span.end++;
    }
    return span;
}

static uint64_t smallest_shown(const struct chain_trees *trees, uint64_t children_weight)
{
    const struct chain_settings *chains = &trees->counts->settings->chains;
    uint64_t whole = chains->mode == CHAIN_FRACTAL ? children_weight : trees->counts->weight;
    return (uint64_t)((double)whole * (chains->min_percent / 100));
}

/* The largest first; in lists, where chains are sorted later, by their symbols alone. */
static int compare_children(const void *a, const void *b, void *data)
{
    const struct counts *counts = data;
    const struct chain_node *left = *(struct chain_node *const *)a;
    const struct chain_node *right = *(struct chain_node *const *)b;
    if (left->weight != right->weight && !chain_mode_is_list(counts->settings->chains.mode))
        return left->weight > right->weight ? -1 : 1;
    return steps_compare_symbols(counts->steps, left->run[0], right->run[0]);
}

/* Sorts the children that were made since there were `begin` of them, and makes them a list. */
static struct chain_node *take_children(struct chain_trees *trees, size_t begin)
{
    struct chain_node **made = trees->made.items + begin;
    size_t count = trees->made.count - begin;
    trees->made.count = begin;
    if (!count)
        return NULL;
    qsort_r(made, count, sizeof *made, compare_children, (void *)trees->counts);
    for (size_t i = 0; i + 1 < count; i++)
        made[i]->next = made[i + 1];
    return made[0];
}

static int expand(struct chain_trees *trees, struct chain_node *node, size_t begin);

/* Follows a group of branches to where they part or end; the symbols on the way become the node's
 * run. What they part into is left at the end of the vector, sorted, from *ret_begin on. */
static int make_run(struct chain_trees *trees, struct chain_node *node, struct span span,
                    size_t *ret_begin)
{
    trees->run.count = 0;
    do {
        if (vector_push(&trees->run, trees->branches.items[span.begin].symbol) < 0)
            return -ENOMEM;
        *ret_begin = trees->branches.count;
        for (size_t i = span.begin; i < span.end; i++) {
            struct chain_branch branch = trees->branches.items[i];
            if (add_children(trees, branch.node, branch.is_own) < 0)
                return -ENOMEM;
        }
        if (trees->branches.count == *ret_begin)
            break; /* all chains end here */
        qsort(trees->branches.items + *ret_begin, trees->branches.count - *ret_begin,
              sizeof *trees->branches.items, compare_branches);
        span = span_at(trees, *ret_begin);
    } while (span.count == node->count);
    node->run_length = trees->run.count;
    node->run = (const uint32_t *)arena_copy(&trees->arena, trees->run.items,
                                             trees->run.count * sizeof *node->run);
    return node->run ? 0 : -ENOMEM;
}

/* A child node for a group of branches, with everything below it. */
static int make_child(struct chain_trees *trees, struct chain_node *parent, struct span span)
{
    struct chain_node *child = arena_alloc(&trees->arena, sizeof *child);
    if (!child)
        return -ENOMEM;
    child->parent = parent;
    child->weight = span.weight;
    child->count = span.count;
    size_t begin, mark = trees->branches.count;
    int result = make_run(trees, child, span, &begin);
    if (result == 0)
        result = expand(trees, child, begin);
    trees->branches.count = mark;
    return result < 0 ? result : vector_push(&trees->made, child);
}

/* The children of a node from the branches at `begin` to the end of the vector, in groups. */
static int expand(struct chain_trees *trees, struct chain_node *node, size_t begin)
{
    size_t end = trees->branches.count;
    uint64_t children_weight = 0, children_count = 0;
    for (size_t i = begin; i < end; i++) {
        children_weight += trees->branches.items[i].weight;
        children_count += trees->branches.items[i].count;
    }
    node->end_weight = node->weight - children_weight;
    node->end_count = node->count - children_count;
    uint64_t smallest = smallest_shown(trees, children_weight);
    size_t made = trees->made.count;
    for (size_t i = begin; i < end;) {
        struct span span = span_at(trees, i);
        i = span.end;
        if (span.weight >= smallest && make_child(trees, node, span) < 0)
            return -ENOMEM;
    }
    node->first_child = take_children(trees, made);
    return 0;
}

static int make_root(struct chain_trees *trees, const struct counts_row *row,
                     struct chain_node *root)
{
    const struct counts *counts = trees->counts;
    trees->branches.count = trees->made.count = 0;
    if (add_children(trees, counts->tops.items[row->context], true) < 0)
        return -ENOMEM;
    if (counts->settings->children)
        for (uint32_t n = row->first_node; n != COUNTS_NONE; n = counts->nodes.items[n].next_of_row)
            if (add_branch(trees, n, false) < 0)
                return -ENOMEM;
    if (trees->branches.count)
        qsort(trees->branches.items, trees->branches.count, sizeof *trees->branches.items,
              compare_branches);
    return expand(trees, root, 0);
}

int chain_tree_make(struct chain_trees *trees, const struct counts_row *row,
                    const struct chain_node **ret_root)
{
    *ret_root = NULL;
    if (trees->counts->settings->chains.mode != CHAIN_FRACTAL &&
        row->total_weight < smallest_shown(trees, 0))
        return 0;
    arena_done(&trees->arena);
    arena_init(&trees->arena);
    struct chain_node *root = arena_alloc(&trees->arena, sizeof *root);
    if (!root)
        return -ENOMEM;
    root->weight = row->total_weight;
    root->count = row->total_count;
    note_own(trees, row, false);
    int result = make_root(trees, row, root);
    note_own(trees, row, true);
    if (result == 0 && root->first_child)
        *ret_root = root;
    return result;
}
