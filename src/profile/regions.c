/* A sorted array. perf notes when something is mapped, never when it is unmapped; so a new region
 * over an old one is how the end of the old one becomes known:
 *
 *     before    |------ a ------|   |-- b --|
 *     new              |---- n ------|
 *     after     |--a---|---- n ------|--b---|       b starts later in its file now
 *
 * Processes have a few hundred regions and look-ups are many more than changes, which are kept
 * simple therefore. */
#include "profile/regions.h"

#include <string.h>

void regions_done(struct regions *regions)
{
    vector_done(&regions->items);
}

/* Index of the first region that ends behind an address. */
static size_t first_behind(const struct regions *regions, uint64_t avma)
{
    size_t first = 0, behind = regions->items.count;
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (regions->items.items[middle].end_avma <= avma)
            first = middle + 1;
        else
            behind = middle;
    }
    return first;
}

const struct region *regions_find(const struct regions *regions, uint64_t avma)
{
    size_t i = first_behind(regions, avma);
    if (i == regions->items.count || regions->items.items[i].start_avma > avma)
        return NULL;
    return &regions->items.items[i];
}

int regions_copy(struct regions *regions, const struct regions *from)
{
    size_t count = from->items.count;
    if (count && vector_reserve(&regions->items, count) < 0)
        return -ENOMEM;
    if (count)
        memcpy(regions->items.items, from->items.items, count * sizeof *from->items.items);
    regions->items.count = count;
    return 0;
}

/* Puts `with_count` regions in the place of `count` ones; room has been made before. */
static void replace(struct regions *regions, size_t at, size_t count, const struct region *with,
                    size_t with_count)
{
    struct region *items = regions->items.items;
    memmove(&items[at + with_count], &items[at + count],
            (regions->items.count - at - count) * sizeof *items);
    memcpy(&items[at], with, with_count * sizeof *items);
    regions->items.count += with_count - count;
}

int regions_add(struct regions *regions, const struct region *region, bool *ret_replaced)
{
    uint64_t start = region->start_avma, end = region->end_avma;
    *ret_replaced = false;
    if (start >= end)
        return -EINVAL;
    if (regions->items.count + 2 > REGIONS_MOST)
        return -E2BIG;
    if (vector_reserve(&regions->items, regions->items.count + 2) < 0)
        return -ENOMEM;

    size_t at = first_behind(regions, start), behind = at;
    while (behind < regions->items.count && regions->items.items[behind].start_avma < end)
        behind++;

    struct region pieces[3];
    size_t count = 0;
    if (behind > at && regions->items.items[at].start_avma < start) {
        pieces[count] = regions->items.items[at];
        pieces[count++].end_avma = start;
    }
    pieces[count++] = *region;
    if (behind > at && regions->items.items[behind - 1].end_avma > end) {
        struct region *rest = &pieces[count++];
        *rest = regions->items.items[behind - 1];
        rest->fileoff += end - rest->start_avma;
        rest->start_avma = end;
    }
    for (size_t i = at; i < behind; i++)
        *ret_replaced |= regions->items.items[i].module != region->module ||
                         regions->items.items[i].fileoff - regions->items.items[i].start_avma !=
                             region->fileoff - start;
    replace(regions, at, behind - at, pieces, count);
    return 0;
}
