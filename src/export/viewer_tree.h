/* The tree of stacks with new numbers: only what is used, equal ones once, and in an order that
 * compresses well. */
#ifndef PITVIPER_EXPORT_VIEWER_TREE_H
#define PITVIPER_EXPORT_VIEWER_TREE_H

#include "base/vector.h"
#include "profile/profile.h"

struct viewer_stack {
    uint32_t parent; /* precedes its children; the root's is the root itself */
    uint32_t frame;  /* the root's is 0 and says nothing */
};

/* A zeroed one is valid and empty. */
struct viewer_tree {
    VECTOR(struct viewer_stack) nodes; /* 0 is the root */
    uint32_t *node_of; /* per stack that the tree was made from: its node, or PROFILE_NONE; owned */
};

struct viewer_tree_source {
    const struct profile_stack *stacks; /* parents before children, the root first */
    size_t count;
    const bool *is_used;      /* per stack; callers of used ones are used too */
    const uint32_t *frame_of; /* per frame of the stacks: its new number */
};

/* Marks the callers of what is marked. */
void viewer_tree_mark_callers(const struct profile_stack *stacks, size_t count, bool *is_used);

/* 0 or -ENOMEM; on failure there is nothing to release. */
int viewer_tree_init(struct viewer_tree *tree, const struct viewer_tree_source *source);
void viewer_tree_done(struct viewer_tree *tree);

#endif
