/* The borders of all ranges cut the address space into cells. Over the cells stands a segment tree,
 * kept without pointers: of n cells, cell i is node n + i, the parent of node k is k / 2, the root
 * is node 1.
 *
 *     node 1                +-------------------------------+
 *     nodes 2, 3            |               |               |
 *     nodes 4..7 (n = 4)    | cell 0 | cell 1 | cell 2 | cell 3 |
 *
 * A range is noted at the few nodes that together make up exactly its cells (at most two per
 * level); each node lists its ranges in the order in which they hide each other. What is valid at
 * an address is then on the path from its cell to the root: on each node the last range that is
 * not too late, and of those the one that hides the others.
 *
 * Real code seldom overlaps, so nearly all ranges are one cell and sit at its leaf. To skip the
 * empty nodes of the path, each node carries a bit mask of the levels at or above it that have
 * ranges at all; usually that is the single bit 0, and a look-up is a binary search plus one
 * entry. */
#include "base/rangemap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Keeps node numbers within 32 bits and the depth of the tree within the 32 bits of a mask. */
enum { MOST_RANGES = 1 << 30 };

/* One border of one range. */
struct event {
    uint64_t address;
    uint32_t range;  /* index into the ranges, sorted by time */
    uint32_t is_end; /* 0: the range starts here, 1: it ends */
};

/* The cells of a range: [first, end). */
struct cells {
    uint32_t first;
    uint32_t end;
};

void rangemap_done(struct rangemap *map)
{
    vector_done(&map->ranges);
    free(map->borders);
    free(map->levels);
    free(map->first_version);
    free(map->versions);
    *map = (struct rangemap){0};
}

int rangemap_add(struct rangemap *map, struct rangemap_range range)
{
    if (range.start >= range.end)
        return -EINVAL;
    if (map->ranges.count >= MOST_RANGES)
        return -ENOMEM;
    range.order = (uint32_t)map->ranges.count;
    return vector_push(&map->ranges, range);
}

static int compare_time(const void *left, const void *right)
{
    const struct rangemap_range *a = left, *b = right;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void sort_ranges_by_time(struct rangemap *map)
{
    for (size_t i = 1; i < map->ranges.count; i++) {
        if (map->ranges.items[i - 1].time > map->ranges.items[i].time) {
            qsort(map->ranges.items, map->ranges.count, sizeof *map->ranges.items, compare_time);
            return;
        }
    }
}

/* Radix sort by address, least significant byte first, stable. Passes in which all addresses have
 * the same byte are skipped; with code in a few places those are most of the eight. Returns the
 * one of the two arrays that holds the result. */
static struct event *sort_events(struct event *events, struct event *scratch, size_t count)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t positions[256] = {0};
        for (size_t i = 0; i < count; i++)
            positions[events[i].address >> shift & 255]++;
        if (positions[events[0].address >> shift & 255] == count)
            continue;
        size_t position = 0;
        for (size_t byte = 0; byte < 256; byte++) {
            size_t next = position + positions[byte];
            positions[byte] = position;
            position = next;
        }
        for (size_t i = 0; i < count; i++)
            scratch[positions[events[i].address >> shift & 255]++] = events[i];
        struct event *swap = events;
        events = scratch;
        scratch = swap;
    }
    return events;
}

/* Notes one border's events: the cells of the ranges that start or end there. `depth` is the number
 * of ranges that cover the address just before the border. */
static size_t note_border(struct rangemap *map, const struct event *events, size_t count,
                          size_t depth, struct cells *cells)
{
    uint32_t border = (uint32_t)map->border_count;
    map->borders[map->border_count++] = events[0].address;
    for (size_t i = 0; i < count; i++) {
        if (events[i].is_end) {
            cells[events[i].range].end = border;
            depth--;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!events[i].is_end) {
            cells[events[i].range].first = border;
            map->overlap_count += depth > 0;
            depth++;
        }
    }
    return depth;
}

/* Sets `borders` and finds the cells of every range. */
static int cut_into_cells(struct rangemap *map, struct cells *cells)
{
    size_t count = map->ranges.count * 2;
    CLEANUP(cleanup_free) struct event *events = malloc(count * 2 * sizeof *events);
    map->borders = malloc(count * sizeof *map->borders);
    if (!events || !map->borders)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->ranges.count; i++) {
        events[2 * i] = (struct event){.address = map->ranges.items[i].start, .range = i};
        events[2 * i + 1] =
            (struct event){.address = map->ranges.items[i].end, .range = i, .is_end = 1};
    }
    const struct event *sorted = sort_events(events, events + count, count);
    size_t depth = 0;
    for (size_t i = 0; i < count;) {
        size_t same = 1;
        while (i + same < count && sorted[i + same].address == sorted[i].address)
            same++;
        depth = note_border(map, sorted + i, same, depth, cells);
        i += same;
    }
    return 0;
}

/* The next node of those that make up exactly the cells [*left, *right) (both as nodes), or 0. */
static inline size_t next_node(size_t *left, size_t *right)
{
    while (*left < *right) {
        if (*left & 1)
            return (*left)++;
        if (*right & 1)
            return --*right;
        *left >>= 1;
        *right >>= 1;
    }
    return 0;
}

/* How many cells there are, and so the node number of the first one. */
static size_t cell_count(const struct rangemap *map)
{
    return map->border_count - 1;
}

/* Lists every range, in order of time, at its nodes. First the lists are counted, then filled. */
static int fill_nodes(struct rangemap *map, const struct cells *cells)
{
    size_t base = cell_count(map), nodes = 2 * base;
    map->first_version = calloc(nodes + 1, sizeof *map->first_version);
    if (!map->first_version)
        return -ENOMEM;
    uint32_t *ends = map->first_version + 1; /* ends[k] becomes where the list of node k ends */
    size_t total = 0;
    for (size_t i = 0; i < map->ranges.count; i++) {
        size_t left = base + cells[i].first, right = base + cells[i].end, node;
        while ((node = next_node(&left, &right))) {
            ends[node]++;
            total++;
        }
    }
    if (total > UINT32_MAX)
        return -ENOMEM;
    map->versions = malloc(total * sizeof *map->versions);
    if (!map->versions)
        return -ENOMEM;
    /* Counts become starts, and while the lists are filled the starts become ends. */
    uint32_t start = 0;
    for (size_t node = 0; node < nodes; node++) {
        uint32_t versions = ends[node];
        ends[node] = start;
        start += versions;
    }
    for (size_t i = 0; i < map->ranges.count; i++) {
        const struct rangemap_range *range = &map->ranges.items[i];
        size_t left = base + cells[i].first, right = base + cells[i].end, node;
        while ((node = next_node(&left, &right))) {
            map->versions[ends[node]++] = (struct rangemap_version){
                .time = range->time, .order = (uint32_t)i, .value = range->value};
        }
    }
    return 0;
}

static int fill_levels(struct rangemap *map)
{
    size_t nodes = 2 * cell_count(map);
    map->levels = calloc(nodes, sizeof *map->levels);
    if (!map->levels)
        return -ENOMEM;
    for (size_t node = 1; node < nodes; node++) {
        uint32_t here = map->first_version[node] < map->first_version[node + 1];
        map->levels[node] = map->levels[node / 2] << 1 | here;
    }
    return 0;
}

int rangemap_build(struct rangemap *map)
{
    if (!map->ranges.count)
        return 0;
    sort_ranges_by_time(map);
    CLEANUP(cleanup_free) struct cells *cells = malloc(map->ranges.count * sizeof *cells);
    if (!cells)
        return -ENOMEM;
    int error = cut_into_cells(map, cells);
    if (!error)
        error = fill_nodes(map, cells);
    if (!error)
        error = fill_levels(map);
    vector_done(&map->ranges);
    return error;
}

/* The cell of an address; the caller has checked that there is one. The loop has no branch that
 * depends on the data, so the processor runs ahead of it. */
static size_t find_cell(const struct rangemap *map, uint64_t address)
{
    const uint64_t *first = map->borders;
    size_t count = map->border_count;
    while (count > 1) {
        size_t half = count / 2;
        __builtin_prefetch(&first[half / 2]);
        __builtin_prefetch(&first[half + half / 2]);
        first += first[half] <= address ? half : 0;
        count -= half;
    }
    return (size_t)(first - map->borders);
}

/* The last of a node's versions that is valid at `time`, or NULL. */
static const struct rangemap_version *version_at(const struct rangemap *map, size_t node,
                                                 uint64_t time)
{
    const struct rangemap_version *first = map->versions + map->first_version[node];
    const struct rangemap_version *end = map->versions + map->first_version[node + 1];
    if (end[-1].time <= time)
        return end - 1;
    while (first < end) {
        const struct rangemap_version *middle = first + (end - first) / 2;
        if (middle->time <= time)
            first = middle + 1;
        else
            end = middle;
    }
    return first > map->versions + map->first_version[node] ? first - 1 : NULL;
}

bool rangemap_find(const struct rangemap *map, uint64_t address, uint64_t time,
                   uint32_t *ret_value)
{
    if (!map->border_count || address < map->borders[0] ||
        address >= map->borders[map->border_count - 1])
        return false;
    size_t leaf = cell_count(map) + find_cell(map, address);
    const struct rangemap_version *best = NULL;
    for (uint32_t levels = map->levels[leaf]; levels; levels &= levels - 1) {
        const struct rangemap_version *version =
            version_at(map, leaf >> __builtin_ctz(levels), time);
        if (version && (!best || version->order > best->order))
            best = version;
    }
    if (!best || best->value == RANGEMAP_NOTHING)
        return false;
    *ret_value = best->value;
    return true;
}
