/* Large rows first; then, of two rows that one thread made, the one with the longer chains (the
 * shorter ones in callee order); then self; then the texts of the keys.
 *
 * The second rule compares only rows of the same thread, so this is no order: with a, c of one
 * thread and b of another, a < b < c < a is possible. No sorting algorithm has a right answer
 * there, but perf has one answer: it puts row after row, in the order of the keys, into a red-black
 * tree. We do that too, and so print what it prints. */
#include "report/row_order.h"

#include <errno.h>
#include <stdlib.h>

struct column_source row_source(const struct counts *counts, uint32_t number)
{
    const struct counts_row *row = &counts->rows.items[number];
    return (struct column_source){.profile = counts->profile,
                                  .sample = row->first_sample,
                                  .frame = row->frame,
                                  .level = row->level};
}

static int compare_keys(const struct counts *counts, uint32_t a, uint32_t b, bool arranging)
{
    struct column_source left = row_source(counts, a), right = row_source(counts, b);
    for (size_t i = 0; i < counts->settings->column_count; i++) {
        const struct column *column = counts->settings->columns[i];
        int result = arranging && column->arrange ? column->arrange(&left, &right)
                                                  : column->compare(&left, &right);
        if (result)
            return result;
    }
    return 0;
}

static int compare_arranged(const void *a, const void *b, void *counts)
{
    return compare_keys(counts, *(const uint32_t *)a, *(const uint32_t *)b, true);
}

static uint32_t thread_of(const struct counts *counts, const struct counts_row *row)
{
    return counts->profile->samples.items[row->first_sample].thread;
}

/* Whether row a is to stand before row b. */
static bool is_before(const struct counts *counts, uint32_t a, uint32_t b)
{
    const struct counts_row *left = &counts->rows.items[a], *right = &counts->rows.items[b];
    if (left->total_weight != right->total_weight)
        return left->total_weight > right->total_weight;
    if (counts->settings->children) {
        bool has_chains = counts->settings->chains.mode != CHAIN_NONE;
        if (has_chains && left->deepest != right->deepest &&
            thread_of(counts, left) == thread_of(counts, right)) {
            bool is_caller = report_settings_order(counts->settings) == CHAIN_CALLER;
            return is_caller ? left->deepest > right->deepest : left->deepest < right->deepest;
        }
        if (left->self_weight != right->self_weight)
            return left->self_weight > right->self_weight;
    }
    return compare_keys(counts, a, b, false) < 0;
}

/* --- a red-black tree of rows, by insertion only --------------------------------------------- */

enum { NIL = 0 };

/* Nodes are numbered from 1 on. NIL is black. */
struct order_node {
    uint32_t parent;
    uint32_t child[2]; /* before, behind */
    uint32_t row;
    bool is_red;
};

struct order_tree {
    struct order_node *nodes;
    uint32_t root;
};

static unsigned side_of(const struct order_tree *tree, uint32_t node)
{
    return tree->nodes[tree->nodes[node].parent].child[1] == node;
}

/* Moves a node down to `side`; its child on the other side takes its place. */
static void rotate(struct order_tree *tree, uint32_t node, unsigned side)
{
    struct order_node *nodes = tree->nodes;
    uint32_t up = nodes[node].child[!side], parent = nodes[node].parent;
    nodes[node].child[!side] = nodes[up].child[side];
    if (nodes[up].child[side] != NIL)
        nodes[nodes[up].child[side]].parent = node;
    nodes[up].parent = parent;
    if (parent == NIL)
        tree->root = up;
    else
        nodes[parent].child[nodes[parent].child[1] == node] = up;
    nodes[up].child[side] = node;
    nodes[node].parent = up;
}

static void rebalance(struct order_tree *tree, uint32_t node)
{
    struct order_node *nodes = tree->nodes;
    while (nodes[nodes[node].parent].is_red) {
        uint32_t parent = nodes[node].parent, grandparent = nodes[parent].parent;
        unsigned side = side_of(tree, parent);
        uint32_t uncle = nodes[grandparent].child[!side];
        if (nodes[uncle].is_red) {
            nodes[parent].is_red = nodes[uncle].is_red = false;
            nodes[grandparent].is_red = true;
            node = grandparent;
            continue;
        }
        if (side_of(tree, node) != side) {
            rotate(tree, parent, side);
            parent = node;
        }
        nodes[parent].is_red = false;
        nodes[grandparent].is_red = true;
        rotate(tree, grandparent, !side);
        break;
    }
    nodes[tree->root].is_red = false;
}

static void insert(struct order_tree *tree, const struct counts *counts, uint32_t node)
{
    struct order_node *nodes = tree->nodes;
    uint32_t parent = NIL, next = tree->root;
    unsigned side = 0;
    while (next != NIL) {
        parent = next;
        side = !is_before(counts, nodes[node].row, nodes[next].row);
        next = nodes[next].child[side];
    }
    nodes[node].parent = parent;
    nodes[node].is_red = true;
    if (parent == NIL)
        tree->root = node;
    else
        nodes[parent].child[side] = node;
    rebalance(tree, node);
}

/* The rows from the first to the last. */
static void read_out(const struct order_tree *tree, uint32_t *rows)
{
    const struct order_node *nodes = tree->nodes;
    uint32_t node = tree->root;
    while (node != NIL && nodes[node].child[0] != NIL)
        node = nodes[node].child[0];
    for (; node != NIL; rows++) {
        *rows = nodes[node].row;
        if (nodes[node].child[1] != NIL) {
            node = nodes[node].child[1];
            while (nodes[node].child[0] != NIL)
                node = nodes[node].child[0];
        } else {
            while (nodes[node].parent != NIL && side_of(tree, node) == 1)
                node = nodes[node].parent;
            node = nodes[node].parent;
        }
    }
}

static bool is_shown(const struct counts *counts, uint32_t number)
{
    const struct report_settings *settings = counts->settings;
    const struct counts_row *row = &counts->rows.items[number];
    if (row->first_sample == UINT32_MAX || (!settings->children && row->first_group == COUNTS_NONE))
        return false;
    if (!settings->dsos && !settings->symbols)
        return true;
    struct column_source source = row_source(counts, number);
    struct column_cell dso = {0}, symbol = {.text = ""};
    column_dso.cell(&source, &dso);
    if (row->frame != PROFILE_NONE)
        column_symbol_cell(counts->profile, row->frame, &symbol);
    return report_list_has(settings->dsos, dso.text) &&
           report_list_has(settings->symbols, symbol.text);
}

int row_order_make(const struct counts *counts, uint32_t **ret_rows, size_t *ret_count)
{
    uint32_t *rows = calloc(counts->rows.count + 1, sizeof *rows);
    struct order_tree tree = {.nodes = calloc(counts->rows.count + 1, sizeof *tree.nodes)};
    if (!rows || !tree.nodes) {
        free(rows);
        free(tree.nodes);
        return -ENOMEM;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < counts->rows.count; i++)
        if (is_shown(counts, i))
            rows[count++] = i;
    if (count)
        qsort_r(rows, count, sizeof *rows, compare_arranged, (void *)counts);
    for (uint32_t i = 0; i < count; i++) {
        tree.nodes[i + 1].row = rows[i];
        insert(&tree, counts, i + 1);
    }
    read_out(&tree, rows);
    free(tree.nodes);
    *ret_rows = rows;
    *ret_count = count;
    return 0;
}
