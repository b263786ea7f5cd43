/* Lines have no time stamps, but their order is one: line n hides what stood before it. So the
 * number of the entry serves as the time of the range map. */
#include "formats/perfmap_index.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* What a function of unknown size may cover; perf assumes a page too. */
enum { UNKNOWN_SIZE_BYTES = 4096 };

/* About as long as the lines that CPython writes; only decides how much room is made at first. */
enum { TYPICAL_LINE_BYTES = 64 };

static int read_entries(struct perfmap_index *index, struct perfmap_reader *reader)
{
    struct perfmap_entry entry;
    int result;
    while ((result = perfmap_next(reader, &entry)) != 0) {
        if (result == -EBADMSG)
            damage_note(&index->damage,
                        (struct damage_place){.offset = reader->line_offset,
                                              .bytes = reader->cursor.offset - reader->line_offset,
                                              .line = reader->line,
                                              .problem = reader->problem});
        else if (result < 0 || entry.unfinished)
            damage_note_truncated(&index->damage, reader->line_offset);
        if (result > 0 && vector_push(&index->entries, entry) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int compare_address(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

/* The starts of all entries, sorted; NULL when memory is short. */
static uint64_t *sorted_starts(const struct perfmap_index *index)
{
    uint64_t *starts = malloc(index->entries.count * sizeof *starts);
    if (!starts)
        return NULL;
    for (size_t i = 0; i < index->entries.count; i++)
        starts[i] = index->entries.items[i].start;
    qsort(starts, index->entries.count, sizeof *starts, compare_address);
    return starts;
}

/* Where an entry of unknown size ends: at the next start, or after a page. */
static uint64_t unknown_end(const uint64_t *starts, size_t count, uint64_t start)
{
    size_t first = 0, behind = count;
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (starts[middle] <= start)
            first = middle + 1;
        else
            behind = middle;
    }
    uint64_t end = first < count ? starts[first] : UINT64_MAX;
    return end - start > UNKNOWN_SIZE_BYTES ? start + UNKNOWN_SIZE_BYTES : end;
}

/* Entries of unknown size count as older than all others, so that whatever has a size hides them.
 */
static int add_unknown_sizes(struct perfmap_index *index)
{
    CLEANUP(cleanup_free) uint64_t *starts = NULL;
    for (size_t i = 0; i < index->entries.count; i++) {
        uint64_t start = index->entries.items[i].start;
        if (index->entries.items[i].size)
            continue;
        if (!starts && !(starts = sorted_starts(index)))
            return -ENOMEM;
        uint64_t end = unknown_end(starts, index->entries.count, start);
        int error = rangemap_add(
            &index->ranges,
            (struct rangetree_range){.start = start, .end = end, .value = (uint32_t)i});
        if (error == -ENOMEM)
            return error;
    }
    return 0;
}

static int add_ranges(struct perfmap_index *index)
{
    int error = add_unknown_sizes(index);
    for (size_t i = 0; i < index->entries.count && !error; i++) {
        const struct perfmap_entry *entry = &index->entries.items[i];
        if (entry->size)
            error = rangemap_add(&index->ranges,
                                 (struct rangetree_range){.start = entry->start,
                                                          .end = entry->start + entry->size,
                                                          .time = i + 1,
                                                          .value = (uint32_t)i});
    }
    return error ? error : rangemap_build(&index->ranges);
}

int perfmap_index_init(struct perfmap_index *index, const char *source, const void *data,
                       size_t length)
{
    *index = (struct perfmap_index){0};
    struct perfmap_reader reader;
    perfmap_reader_init(&reader, source, data, length);
    int error = vector_reserve(&index->entries, length / TYPICAL_LINE_BYTES);
    if (!error)
        error = read_entries(index, &reader);
    if (!error)
        error = vector_reserve(&index->ranges.ranges, index->entries.count);
    if (!error)
        error = add_ranges(index);
    if (error < 0)
        perfmap_index_done(index);
    return error;
}

void perfmap_index_done(struct perfmap_index *index)
{
    rangemap_done(&index->ranges);
    vector_done(&index->entries);
}

const struct perfmap_entry *perfmap_index_find(const struct perfmap_index *index, uint64_t avma)
{
    uint32_t entry;
    if (!rangemap_find(&index->ranges, avma, RANGEMAP_LATEST, &entry))
        return NULL;
    return &index->entries.items[entry];
}
