/* Generated code seldom overlaps: of a million functions a handful share addresses with others. So
 * the ranges, sorted by address, are first gathered into islands: a range that touches no other is
 * an island of its own and needs no further structure; ranges that overlap form one island together
 * and go to the range tree, which sorts out who hides whom, and when.
 *
 *     ranges     |--a--|  |--b--|   |--c--|
 *                                      |--d----|
 *     islands    [--a--]  [--b--]   [--shared--]
 *
 * A look-up is a search for the island. To keep it within the processor's caches, the start of
 * every 16th island is kept apart: a million islands take 32 MB, their block starts 0.5 MB. */
#include "base/rangemap.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* What the tree can take: it numbers nodes with 32 bits. */
enum { MOST_RANGES = 1 << 30 };

/* A range by its address, for sorting. */
struct key {
    uint64_t start;
    uint32_t range; /* index into the ranges */
};

void rangemap_done(struct rangemap *map)
{
    vector_done(&map->ranges);
    vector_done(&map->islands);
    free(map->blocks);
    rangetree_done(&map->tree);
    *map = (struct rangemap){0};
}

int rangemap_add(struct rangemap *map, struct rangetree_range range)
{
    if (range.start >= range.end)
        return -EINVAL;
    if (map->ranges.count >= MOST_RANGES)
        return -ENOMEM;
    range.order = (uint32_t)map->ranges.count;
    return vector_push(&map->ranges, range);
}

/* Radix sort by start, least significant byte first. Passes in which all keys have the same byte
 * are skipped; with code in a few places those are most of the eight. Returns the one of the two
 * arrays that holds the result. */
static struct key *sort_keys(struct key *keys, struct key *scratch, size_t count)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t positions[256] = {0};
        for (size_t i = 0; i < count; i++)
            positions[keys[i].start >> shift & 255]++;
        if (positions[keys[0].start >> shift & 255] == count)
            continue;
        size_t position = 0;
        for (size_t byte = 0; byte < 256; byte++) {
            size_t next = position + positions[byte];
            positions[byte] = position;
            position = next;
        }
        for (size_t i = 0; i < count; i++)
            scratch[positions[keys[i].start >> shift & 255]++] = keys[i];
        struct key *swap = keys;
        keys = scratch;
        scratch = swap;
    }
    return keys;
}

/* Makes the island of the ranges keys[0..count) that overlap each other. Ranges of a shared island
 * are moved to the front of `shared`. */
static void add_island(struct rangemap *map, const struct key *keys, size_t count, uint64_t end,
                       struct rangetree_range *shared)
{
    const struct rangetree_range *first = &map->ranges.items[keys[0].range];
    map->islands.items[map->islands.count++] = (struct rangemap_island){.start = first->start,
                                                                        .end = end,
                                                                        .time = first->time,
                                                                        .value = first->value,
                                                                        .shared = count > 1};
    for (size_t i = 0; i < count && count > 1; i++)
        shared[i] = map->ranges.items[keys[i].range];
    map->overlap_count += count - 1;
}

/* How many of the ranges keys[0..left) belong to the island that starts with the first, and where
 * it ends. */
static size_t island_size(const struct rangemap *map, const struct key *keys, size_t left,
                          uint64_t *ret_end)
{
    size_t count = 1;
    uint64_t end = map->ranges.items[keys[0].range].end;
    for (; count < left && keys[count].start < end; count++) {
        uint64_t next_end = map->ranges.items[keys[count].range].end;
        if (next_end > end)
            end = next_end;
    }
    *ret_end = end;
    return count;
}

static int find_islands(struct rangemap *map, const struct key *keys)
{
    size_t ranges = map->ranges.count, shared_count = 0;
    CLEANUP(cleanup_free) struct rangetree_range *shared = malloc(ranges * sizeof *shared);
    if (!shared || vector_reserve(&map->islands, ranges) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < ranges;) {
        uint64_t end;
        size_t count = island_size(map, keys + i, ranges - i, &end);
        add_island(map, keys + i, count, end, shared + shared_count);
        shared_count += count > 1 ? count : 0;
        i += count;
    }
    return rangetree_init(&map->tree, shared, shared_count);
}

static int fill_blocks(struct rangemap *map)
{
    map->block_count = (map->islands.count + RANGEMAP_BLOCK - 1) / RANGEMAP_BLOCK;
    map->blocks = malloc(map->block_count * sizeof *map->blocks);
    if (!map->blocks)
        return -ENOMEM;
    for (size_t i = 0; i < map->block_count; i++)
        map->blocks[i] = map->islands.items[i * RANGEMAP_BLOCK].start;
    return 0;
}

int rangemap_build(struct rangemap *map)
{
    size_t count = map->ranges.count;
    if (!count)
        return 0;
    CLEANUP(cleanup_free) struct key *keys = malloc(2 * count * sizeof *keys);
    if (!keys)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        keys[i] = (struct key){.start = map->ranges.items[i].start, .range = i};
    int error = find_islands(map, sort_keys(keys, keys + count, count));
    if (!error)
        error = fill_blocks(map);
    vector_done(&map->ranges);
    return error;
}

/* The last island that starts at or before the address; there is one. Neither loop has a branch
 * that depends on the data, so the processor runs ahead of them. */
static const struct rangemap_island *find_island(const struct rangemap *map, uint64_t address)
{
    const uint64_t *block = map->blocks;
    for (size_t count = map->block_count; count > 1; count -= count / 2)
        block += block[count / 2] <= address ? count / 2 : 0;
    size_t first = (size_t)(block - map->blocks) * RANGEMAP_BLOCK;
    size_t left = map->islands.count - first;
    left = left < RANGEMAP_BLOCK ? left : RANGEMAP_BLOCK;
    const struct rangemap_island *island = &map->islands.items[first];
    /* The search would wait for one cache line after the other; this asks for all at once. */
    for (size_t i = 0; i < left; i += 2)
        __builtin_prefetch(&island[i]);
    for (size_t count = left; count > 1; count -= count / 2)
        island += island[count / 2].start <= address ? count / 2 : 0;
    return island;
}

bool rangemap_find(const struct rangemap *map, uint64_t address, uint64_t time, uint32_t *ret_value)
{
    if (!map->block_count || address < map->blocks[0])
        return false;
    const struct rangemap_island *island = find_island(map, address);
    if (address >= island->end)
        return false;
    uint32_t value = island->value;
    if (island->shared ? !rangetree_find(&map->tree, address, time, &value) : island->time > time)
        return false;
    *ret_value = value;
    return value != RANGEMAP_NOTHING;
}
