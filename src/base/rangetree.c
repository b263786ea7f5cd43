/* The borders of all ranges cut the address space into cells. Over the cells stands a segment tree,
 * kept without pointers: of n cells, cell i is node n + i, the parent of node k is k / 2, the root
 * is node 1.
 *
 *     node 1                +-----------------------------------+
 *     nodes 2, 3            |                 |                 |
 *     nodes 4..7 (n = 4)    | cell 0 | cell 1 | cell 2 | cell 3 |
 *
 * A range is noted at the few nodes that together make up exactly its cells (at most two per
 * level); each node lists its ranges in the order in which they hide each other. What is valid at
 * an address is then on the path from its cell to the root: on each node the last range that is
 * not too late, and of those the one that hides the others.
 *
 * To skip the empty nodes of the path, each node carries a bit mask of the levels at or above it
 * that have ranges at all. Memory that is used again for code of the same size has them at the leaf
 * only. */
#include "base/rangetree.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

void rangetree_done(struct rangetree *tree)
{
    free(tree->borders);
    free(tree->levels);
    free(tree->first_version);
    free(tree->versions);
    *tree = (struct rangetree){0};
}

static int compare_time(const void *left, const void *right)
{
    const struct rangetree_range *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static int compare_address(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* Sets `borders`: the starts and ends of all ranges, each once. */
static int find_borders(struct rangetree *tree, const struct rangetree_range *ranges, size_t count)
{
    tree->borders = malloc(2 * count * sizeof *tree->borders);
    if (!tree->borders)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        tree->borders[2 * i] = ranges[i].start;
        tree->borders[2 * i + 1] = ranges[i].end;
    }
    qsort(tree->borders, 2 * count, sizeof *tree->borders, compare_address);
    for (size_t i = 0; i < 2 * count; i++) {
        if (!i || tree->borders[i] != tree->borders[tree->border_count - 1])
            tree->borders[tree->border_count++] = tree->borders[i];
    }
    return 0;
}

/* How many cells there are, and so the node number of the first one. */
static size_t cell_count(const struct rangetree *tree)
{
    return tree->border_count - 1;
}

/* The node of the cell that an address lies in; of the last border, the node behind all cells. */
static size_t leaf_of(const struct rangetree *tree, uint64_t address)
{
    size_t first = 0, end = tree->border_count;
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (tree->borders[middle] <= address)
            first = middle;
        else
            end = middle;
    }
    return cell_count(tree) + first;
}

/* The next node of those that make up exactly the leaves [*left, *right), or 0. */
static size_t next_node(size_t *left, size_t *right)
{
    while (*left < *right) {
        if (*left & 1)
            return (*left)++;
        if (*right & 1)
            return --*right;
        *left >>= 1;
        *right >>= 1;
    }
    return 0;
}

/* Calls for every (range, node) pair: with `versions` NULL counts into ends[node], otherwise
 * appends the range at ends[node]. Returns the number of pairs. */
static size_t visit_nodes(const struct rangetree *tree, const struct rangetree_range *ranges,
                          size_t count, uint32_t *ends, struct rangetree_version *versions)
{
    size_t pairs = 0;
    for (size_t i = 0; i < count; i++) {
        size_t left = leaf_of(tree, ranges[i].start), right = leaf_of(tree, ranges[i].end), node;
        for (; (node = next_node(&left, &right)); pairs++) {
            if (versions)
                versions[ends[node]] = (struct rangetree_version){
                    .time = ranges[i].time, .rank = (uint32_t)i, .value = ranges[i].value};
            ends[node]++;
        }
    }
    return pairs;
}

/* Lists every range, in order of time, at its nodes: the lists are counted, then filled. */
static int fill_nodes(struct rangetree *tree, const struct rangetree_range *ranges, size_t count)
{
    size_t nodes = 2 * cell_count(tree);
    tree->first_version = calloc(nodes + 1, sizeof *tree->first_version);
    if (!tree->first_version)
        return -ENOMEM;
    uint32_t *ends = tree->first_version + 1; /* the end of a list is the start of the next */
    size_t pairs = visit_nodes(tree, ranges, count, ends, NULL);
    tree->versions = pairs <= UINT32_MAX ? malloc(pairs * sizeof *tree->versions) : NULL;
    if (!tree->versions)
        return -ENOMEM;
    /* Counts become starts; filling the lists then moves each to its end. */
    uint32_t start = 0;
    for (size_t node = 0; node < nodes; node++) {
        uint32_t length = ends[node];
        ends[node] = start;
        start += length;
    }
    visit_nodes(tree, ranges, count, ends, tree->versions);
    return 0;
}

static int fill_levels(struct rangetree *tree)
{
    size_t nodes = 2 * cell_count(tree);
    tree->levels = calloc(nodes, sizeof *tree->levels);
    if (!tree->levels)
        return -ENOMEM;
    for (size_t node = 1; node < nodes; node++) {
        uint32_t here = tree->first_version[node] < tree->first_version[node + 1];
        tree->levels[node] = tree->levels[node / 2] << 1 | here;
    }
    return 0;
}

int rangetree_init(struct rangetree *tree, struct rangetree_range *ranges, size_t count)
{
    *tree = (struct rangetree){0};
    if (!count)
        return 0;
    qsort(ranges, count, sizeof *ranges, compare_time);
    int error = find_borders(tree, ranges, count);
    if (!error)
        error = fill_nodes(tree, ranges, count);
    if (!error)
        error = fill_levels(tree);
    return error;
}

/* The last of a node's versions that is valid at `time`, or NULL. */
static const struct rangetree_version *version_at(const struct rangetree *tree, size_t node,
                                                  uint64_t time)
{
    const struct rangetree_version *first = tree->versions + tree->first_version[node];
    const struct rangetree_version *none = first;
    const struct rangetree_version *end = tree->versions + tree->first_version[node + 1];
    while (first < end) {
        const struct rangetree_version *middle = first + (end - first) / 2;
        if (middle->time <= time)
            first = middle + 1;
        else
            end = middle;
    }
    return first > none ? first - 1 : NULL;
}

bool rangetree_find(const struct rangetree *tree, uint64_t address, uint64_t time,
                    uint32_t *ret_value)
{
    if (!tree->border_count || address < tree->borders[0] ||
        address >= tree->borders[tree->border_count - 1])
        return false;
    size_t leaf = leaf_of(tree, address);
    const struct rangetree_version *best = NULL;
    for (uint32_t levels = tree->levels[leaf]; levels; levels &= levels - 1) {
        const struct rangetree_version *version =
            version_at(tree, leaf >> __builtin_ctz(levels), time);
        if (version && (!best || version->rank > best->rank))
            best = version;
    }
    if (best)
        *ret_value = best->value;
    return best != NULL;
}
