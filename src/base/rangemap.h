/* Which of many address ranges was the valid one at an address and a time?
 *
 * Ranges come with the time from which they are valid. A later range hides earlier ones where they
 * overlap, from its time on; of two with the same time the one added last hides the other. That is
 * how generated code behaves: memory is used again, wholly or in part.
 *
 *     rangemap_add(&map, start, end, time, value) ...    in any order
 *     rangemap_build(&map)                               once
 *     rangemap_find(&map, address, time, &value)         true when something covers it
 *
 * With n ranges, building takes O(n log n) time and memory and a look-up O(log n) steps at two
 * different depths, whatever the ranges: hostile input cannot make it explode. */
#ifndef PITVIPER_BASE_RANGEMAP_H
#define PITVIPER_BASE_RANGEMAP_H

#include "base/vector.h"

#include <stdbool.h>
#include <stdint.h>

struct rangemap_range {
    uint64_t start; /* first address */
    uint64_t end;   /* first address behind it; > start */
    uint64_t time;  /* valid from then on, in the caller's unit */
    uint32_t value; /* the caller's */
    uint32_t order; /* set by rangemap_add: decides between equal times */
};

struct rangemap_version {
    uint64_t time;
    uint32_t order; /* rank among all ranges by (time, order of adding): the higher hides */
    uint32_t value;
};

struct rangemap {
    VECTOR(struct rangemap_range) ranges; /* as added; released by rangemap_build */

    /* From rangemap_build on; see rangemap.c. */
    uint64_t *borders;                 /* sorted, distinct; cell i is [borders[i], borders[i+1]) */
    uint32_t *levels;                  /* per node: bit k = the node k levels above it has versions */
    uint32_t *first_version;           /* per node, and one more: index into `versions` */
    struct rangemap_version *versions; /* per node, ascending by order */
    size_t border_count;
    size_t overlap_count; /* ranges that start inside another one */
};

/* Value for rangemap_add: nothing is valid there from that time on. */
#define RANGEMAP_NOTHING UINT32_MAX

/* For rangemap_find: after everything. */
#define RANGEMAP_LATEST UINT64_MAX

/* A zeroed struct rangemap is valid and empty. */
void rangemap_done(struct rangemap *map);

/* 0, or -ENOMEM, or -EINVAL when start >= end. */
int rangemap_add(struct rangemap *map, struct rangemap_range range);

/* 0 or -ENOMEM; on failure the map can only be released. */
int rangemap_build(struct rangemap *map);

bool rangemap_find(const struct rangemap *map, uint64_t address, uint64_t time,
                   uint32_t *ret_value);

#endif
