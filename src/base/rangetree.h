/* Overlapping ranges in space and time: the part of the range map that is only needed where ranges
 * overlap. Use rangemap.h, which explains the rules. */
#ifndef PITVIPER_BASE_RANGETREE_H
#define PITVIPER_BASE_RANGETREE_H

#include "base/vector.h"

#include <stdbool.h>
#include <stdint.h>

struct rangetree_range {
    uint64_t start; /* first address */
    uint64_t end;   /* first address behind it; > start */
    uint64_t time;  /* valid from then on, in the caller's unit */
    uint32_t value; /* the caller's */
    uint32_t order; /* of adding: decides between equal times */
};

struct rangetree_version {
    uint64_t time;
    uint32_t rank; /* among all ranges by (time, order): the higher hides the lower */
    uint32_t value;
};

struct rangetree {
    uint64_t *borders; /* sorted, distinct; cell i is [borders[i], borders[i+1]) */
    size_t border_count;
    uint32_t *levels;                   /* per node: bit k = the node k levels above has versions */
    uint32_t *first_version;            /* per node, and one more: index into `versions` */
    struct rangetree_version *versions; /* per node, ascending by rank */
};

/* Sorts the ranges in place, by time. At most 2^30 of them. 0 or -ENOMEM; on failure the tree can
 * only be released. */
int rangetree_init(struct rangetree *tree, struct rangetree_range *ranges, size_t count);
void rangetree_done(struct rangetree *tree);

/* The value of the range that is valid there and then; false when there is none. */
bool rangetree_find(const struct rangetree *tree, uint64_t address, uint64_t time,
                    uint32_t *ret_value);

#endif
