/* The call chains of one row as the tree that is drawn: equal beginnings merged, runs without a
 * branch in one node, branches that are too small left out, the largest first. */
#ifndef PITVIPER_REPORT_CHAIN_TREE_H
#define PITVIPER_REPORT_CHAIN_TREE_H

#include "base/arena.h"
#include "report/counts.h"

struct chain_node {
    const uint32_t
        *run; /* symbols (see struct step), in the order of the chains; empty at the root */
    size_t run_length;
    uint64_t weight; /* of the chains that pass or end here */
    uint64_t count;
    uint64_t end_weight; /* of those that end here */
    uint64_t end_count;
    struct chain_node *parent;
    struct chain_node *first_child; /* the largest */
    struct chain_node *next;        /* sibling */
};

/* Makes trees, one after the other. */
struct chain_trees {
    const struct counts *counts;
    struct chain_weight *own; /* per node of the counts; see chain_tree.c */
    VECTOR(struct chain_branch) branches;
    VECTOR(uint32_t) run;
    VECTOR(struct chain_node *) made; /* children whose siblings are not complete */
    struct arena arena;               /* of the newest tree */
};

/* 0 or -ENOMEM; on failure there is nothing to release. The counts must outlive the trees. */
int chain_trees_init(struct chain_trees *trees, const struct counts *counts);
void chain_trees_done(struct chain_trees *trees);

/* The tree of a row: its root, which has the weights of the row. NULL when there is nothing large
 * enough to show. Valid until the next call. 0 or -ENOMEM. */
int chain_tree_make(struct chain_trees *trees, const struct counts_row *row,
                    const struct chain_node **ret_root);

#endif
