/* Which of many address ranges was the valid one at an address and a time?
 *
 * Ranges come with the time from which they are valid. A later range hides earlier ones where they
 * overlap, from its time on; of two with the same time the one added last hides the other. That is
 * how generated code behaves: memory is used again, wholly or in part.
 *
 *     rangemap_add(&map, range) ...                      in any order
 *     rangemap_build(&map)                               once
 *     rangemap_find(&map, address, time, &value)         true when something covers it
 *
 * With n ranges, building takes O(n log n) time and memory and a look-up O(log n) time (O(log² n)
 * where ranges overlap), whatever the ranges: hostile input cannot make it explode. */
#ifndef PITVIPER_BASE_RANGEMAP_H
#define PITVIPER_BASE_RANGEMAP_H

#include "base/rangetree.h"

/* A range, or a group of ranges that overlap each other. */
struct rangemap_island {
    uint64_t start;
    uint64_t end;   /* first address behind it */
    uint64_t time;  /* of the one range; valid when not `shared` */
    uint32_t value; /* likewise */
    bool shared;    /* several ranges: the tree knows */
};

struct rangemap {
    VECTOR(struct rangetree_range) ranges; /* as added; released by rangemap_build */

    /* From rangemap_build on; see rangemap.c. */
    VECTOR(struct rangemap_island) islands; /* ascending, disjoint */
    uint64_t *blocks;                       /* start of every RANGEMAP_BLOCKth island; owned */
    size_t block_count;
    struct rangetree tree; /* the ranges that overlap others */
    size_t overlap_count;  /* ranges that start inside another one */
};

enum { RANGEMAP_BLOCK = 16 };

/* As a range's value: nothing is valid there from that time on. */
#define RANGEMAP_NOTHING UINT32_MAX

/* For rangemap_find: after everything. */
#define RANGEMAP_LATEST UINT64_MAX

/* A zeroed struct rangemap is valid and empty. */
void rangemap_done(struct rangemap *map);

/* 0, or -ENOMEM, or -EINVAL when start >= end. */
int rangemap_add(struct rangemap *map, struct rangetree_range range);

/* 0 or -ENOMEM; on failure the map can only be released. */
int rangemap_build(struct rangemap *map);

bool rangemap_find(const struct rangemap *map, uint64_t address, uint64_t time,
                   uint32_t *ret_value);

#endif
