/* Linear probing, at most five eighths full. Keys come from files, so the start of the search
 * depends on a number that differs from run to run: nobody can prepare keys that all collide. What
 * is found never depends on it. */
#include "profile/pairmap.h"

#include "base/hashtable.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64 };

static size_t slot_of(uint64_t high, uint32_t low, size_t mask)
{
    static uint64_t seed;
    if (!seed)
        seed = hash_bytes("pairmap", 7) | 1;
    uint64_t mixed = (high ^ seed) * 0x9e3779b97f4a7c15u;
    mixed ^= mixed >> 32;
    mixed = (mixed + low) * 0xd6e8feb86659fd93u;
    return (size_t)(mixed ^ mixed >> 32) & mask;
}

void pairmap_done(struct pairmap *map)
{
    free(map->slots);
    *map = (struct pairmap){0};
}

/* The slot of a key, or the free one where it belongs. There is always a free one. */
static struct pairmap_slot *find(const struct pairmap *map, uint64_t high, uint32_t low)
{
    for (size_t i = slot_of(high, low, map->mask);; i = (i + 1) & map->mask) {
        struct pairmap_slot *slot = &map->slots[i];
        if (!slot->value_plus_one || (slot->high == high && slot->low == low))
            return slot;
    }
}

bool pairmap_get(const struct pairmap *map, uint64_t high, uint32_t low, uint32_t *ret_value)
{
    if (!map->count)
        return false;
    const struct pairmap_slot *slot = find(map, high, low);
    *ret_value = slot->value_plus_one - 1;
    return slot->value_plus_one != 0;
}

static int grow(struct pairmap *map)
{
    size_t slots = map->slots ? (map->mask + 1) * 2 : FIRST_SLOTS;
    struct pairmap larger = {
        .slots = calloc(slots, sizeof *larger.slots), .mask = slots - 1, .count = map->count};
    if (!larger.slots)
        return -ENOMEM;
    for (size_t i = 0; map->slots && i <= map->mask; i++) {
        struct pairmap_slot slot = map->slots[i];
        if (slot.value_plus_one)
            *find(&larger, slot.high, slot.low) = slot;
    }
    free(map->slots);
    *map = larger;
    return 0;
}

int pairmap_set(struct pairmap *map, uint64_t high, uint32_t low, uint32_t value)
{
    if (!map->slots || map->count * 8 >= (map->mask + 1) * 5) {
        int error = grow(map);
        if (error < 0)
            return error;
    }
    struct pairmap_slot *slot = find(map, high, low);
    map->count += !slot->value_plus_one;
    *slot = (struct pairmap_slot){.high = high, .low = low, .value_plus_one = value + 1};
    return 0;
}
