/* Linkers make such an index themselves, since programs need one for exceptions:
 *
 *     .eh_frame_hdr   version 1 | 3 encodings | where .eh_frame is | count
 *                     start, description      ascending; both 4 bytes, counted from the header
 *                     start, description
 *                     …
 *
 * For libLLVM that is 0.8 MB to read instead of 5. But it says only where functions start, and
 * nothing says that it is right or has all of them. So there are two ways to an index: by the
 * header, which is a guess that is checked function by function as they are used; and by walking
 * through the section, where nothing is left to check. The latter is for sections without a header,
 * and for when the header does not help: see unwind_table.c.
 *
 * Functions are there in the order of the linker's input, which is not always that of addresses. */
#include "unwind/cfi_index.h"

#include <stdlib.h>

enum {
    TABLE_ENCODING =
        0x3b, /* from the header's start, 4 bytes with a sign: what all linkers write */
    TABLE_ENTRY_BYTES = 8,
};

static const struct cfi_range *range_at(const struct cfi_code *code, uint64_t svma)
{
    for (size_t i = 0; i < code->count; i++)
        if (svma >= code->ranges[i].start_svma && svma < code->ranges[i].end_svma)
            return &code->ranges[i];
    return NULL;
}

bool cfi_code_has(const struct cfi_code *code, const struct cfi_function *function)
{
    const struct cfi_range *range = range_at(code, function->start_svma);
    return range && function->size && function->size <= range->end_svma - function->start_svma;
}

/* --- by the header ---------------------------------------------------------------------------- */

static uint64_t from_header(const struct cfi_header *header, uint32_t distance)
{
    return header->svma + (uint64_t)(int64_t)(int32_t)distance;
}

/* Reads the next `count` rows of the header's table. -ENOTSUP when they don't ascend. */
static int read_rows(const struct cfi_header *header, struct cursor table, uint64_t count,
                     const struct cfi_section *section, struct cfi_index *index)
{
    uint64_t last_svma = 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = from_header(header, cursor_u32(&table));
        uint64_t place = from_header(header, cursor_u32(&table)) - section->svma;
        if ((i && start <= last_svma) || place >= section->cursor.length || place > UINT32_MAX)
            return -ENOTSUP;
        index->entries.items[index->entries.count++] =
            (struct cfi_index_entry){.start_svma = start, .place = (uint32_t)place};
        last_svma = start;
    }
    return 0;
}

int cfi_index_by_header(struct cfi_index *index, const struct cfi_header *header,
                        const struct cfi_section *section)
{
    struct cursor table = header->cursor;
    uint64_t count = cfi_pointer(&table, header->svma, header->count_encoding);
    if (!cursor_ok(&table) || header->table_encoding != TABLE_ENCODING ||
        header->eh_frame_svma != section->svma || !count ||
        count > cursor_left(&table) / TABLE_ENTRY_BYTES)
        return -ENOTSUP;
    struct cfi_index made = {0};
    int error = vector_reserve(&made.entries, count);
    if (!error)
        error = read_rows(header, table, count, section, &made);
    if (error < 0) {
        cfi_index_done(&made);
        return error;
    }
    cfi_index_done(index);
    *index = made;
    return 0;
}

/* --- by walking ------------------------------------------------------------------------------- */

static int compare_entries(const void *left, const void *right)
{
    const struct cfi_index_entry *a = left, *b = right;
    if (a->start_svma != b->start_svma)
        return a->start_svma < b->start_svma ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static void sort(struct cfi_index *index)
{
    struct cfi_index_entry *items = index->entries.items;
    for (size_t i = 1; i < index->entries.count; i++) {
        if (compare_entries(&items[i - 1], &items[i]) > 0) {
            qsort(items, index->entries.count, sizeof *items, compare_entries);
            return;
        }
    }
}

/* Of sorted entries with the same start the last one stays. */
static void remove_doubles(struct cfi_index *index)
{
    struct cfi_index_entry *items = index->entries.items;
    size_t count = 0;
    for (size_t i = 0; i < index->entries.count; i++) {
        if (count && items[count - 1].start_svma == items[i].start_svma)
            count--;
        items[count++] = items[i];
    }
    index->entries.count = count;
}

static int walk(struct cfi_index *index, struct cfi_section *section, const struct cfi_code *code,
                size_t *damaged)
{
    struct cfi_function function;
    for (int result; (result = cfi_next(section, &function)) != 0;) {
        if (result < 0)
            ++*damaged;
        else if (cfi_code_has(code, &function) && function.place <= UINT32_MAX &&
                 vector_push(&index->entries,
                             ((struct cfi_index_entry){.start_svma = function.start_svma,
                                                       .place = (uint32_t)function.place})) < 0)
            return -ENOMEM;
    }
    return 0;
}

int cfi_index_by_walk(struct cfi_index *index, struct cfi_section section,
                      const struct cfi_code *code, size_t *damaged)
{
    struct cfi_index made = {0};
    size_t met = 0;
    if (walk(&made, &section, code, &met) < 0) {
        cfi_index_done(&made);
        return -ENOMEM;
    }
    sort(&made);
    remove_doubles(&made);
    cfi_index_done(index);
    *index = made;
    *damaged += met;
    return 0;
}

void cfi_index_done(struct cfi_index *index)
{
    vector_done(&index->entries);
}

/* --- look-up ---------------------------------------------------------------------------------- */

struct cfi_index_entry *cfi_index_find(const struct cfi_index *index, uint64_t svma)
{
    struct cfi_index_entry *items = index->entries.items;
    size_t low = 0, high = index->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (items[middle].start_svma <= svma)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &items[low - 1] : NULL;
}

uint64_t cfi_index_next_start(const struct cfi_index *index, const struct cfi_index_entry *entry)
{
    size_t next = (size_t)(entry - index->entries.items) + 1;
    return next < index->entries.count ? index->entries.items[next].start_svma : UINT64_MAX;
}
