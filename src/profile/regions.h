/* What is mapped where in one address space, at one moment. */
#ifndef PITVIPER_PROFILE_REGIONS_H
#define PITVIPER_PROFILE_REGIONS_H

#include "base/vector.h"

#include <stdbool.h>
#include <stdint.h>

struct region {
    uint64_t start_avma;
    uint64_t end_avma; /* first address behind it */
    uint64_t fileoff;  /* of the first byte */
    uint64_t time_ns;  /* since when */
    uint32_t module;
    bool is_generated; /* code may have been made here: anonymous memory. perf then counts addresses
                          as they are, not from the start of a file */
};

enum { REGIONS_MOST = 65536 }; /* of one process: about what kernels allow */

struct regions {
    VECTOR(struct region) items; /* ascending, disjoint */
    bool is_shared; /* several processes have it (after a fork): copy before changing it */
};

void regions_done(struct regions *regions);

/* Adds a region; what was there before is cut away, as by mmap(2). *ret_replaced: something else
 * was there, so what is known about these addresses is out of date. 0, -ENOMEM, -EINVAL for an
 * empty range, -E2BIG when there are too many. */
int regions_add(struct regions *regions, const struct region *region, bool *ret_replaced);

/* Replaces what `regions` holds by a copy. 0 or -ENOMEM (then it is as it was). */
int regions_copy(struct regions *regions, const struct regions *from);

/* The region of an address, or NULL; valid until the next change. */
const struct region *regions_find(const struct regions *regions, uint64_t avma);

#endif
