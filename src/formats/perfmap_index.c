/* Lines have no time stamps, but their order is one: line n hides what stood before it. So the
 * number of the entry serves as the time of the range map. */
#include "formats/perfmap_index.h"

#include "base/checked.h"

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

static int compare_start(const void *left, const void *right)
{
    const struct rangemap_range *a = left, *b = right;
    if (a->start != b->start)
        return a->start < b->start ? -1 : 1;
    return a->value < b->value ? -1 : 1;
}

/* Entries of unknown size count as older than all others, so whatever has a size hides them. Among
 * themselves they are added by address: each hides its lower neighbours from its start on, which is
 * to say that it ends them. */
static int add_unknown_sizes(struct perfmap_index *index)
{
    VECTOR(struct rangemap_range) unknown = {0};
    int error = 0;
    for (size_t i = 0; i < index->entries.count && !error; i++) {
        struct rangemap_range range = {.start = index->entries.items[i].start,
                                       .value = (uint32_t)i};
        if (!checked_add_u64(range.start, UNKNOWN_SIZE_BYTES, &range.end))
            range.end = UINT64_MAX;
        if (!index->entries.items[i].size && range.start < range.end)
            error = vector_push(&unknown, range);
    }
    if (unknown.count)
        qsort(unknown.items, unknown.count, sizeof *unknown.items, compare_start);
    for (size_t i = 0; i < unknown.count && !error; i++)
        error = rangemap_add(&index->ranges, unknown.items[i]);
    vector_done(&unknown);
    return error;
}

static int add_ranges(struct perfmap_index *index)
{
    int error = add_unknown_sizes(index);
    for (size_t i = 0; i < index->entries.count && !error; i++) {
        const struct perfmap_entry *entry = &index->entries.items[i];
        if (entry->size)
            error = rangemap_add(&index->ranges,
                                 (struct rangemap_range){.start = entry->start,
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
