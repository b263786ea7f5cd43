/* A map from (64 bits, 32 bits) to 32 bits: most tables of a profile are found by such a key, such
 * as (address, address space) -> frame, or (parent, frame) -> stack. 16 bytes a slot, and one cache
 * miss a look-up, because millions of them are done. Entries are never removed. */
#ifndef PITVIPER_PROFILE_PAIRMAP_H
#define PITVIPER_PROFILE_PAIRMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pairmap_slot {
    uint64_t high;
    uint32_t low;
    uint32_t value_plus_one; /* 0: the slot is free */
};

/* A zeroed one is valid and empty. */
struct pairmap {
    struct pairmap_slot *slots; /* `mask + 1` of them, a power of two; owned */
    size_t mask;
    size_t count;
};

void pairmap_done(struct pairmap *map);

/* False when the key is not there. */
bool pairmap_get(const struct pairmap *map, uint64_t high, uint32_t low, uint32_t *ret_value);

/* Adds or replaces; any value but UINT32_MAX. 0 or -ENOMEM (the map is as it was). */
int pairmap_set(struct pairmap *map, uint64_t high, uint32_t low, uint32_t value);

#endif
