/* A file of perf, and what moves when records are added:
 *
 *     header | ids, attrs | records ...        | feature table | features | private data
 *                                      ^ here everything behind moves up
 *
 * Offsets stand in the header (attrs, private data), in each attr (its ids) and in the table of
 * features. Those that point behind the records grow by what was added. A pipe has nothing but
 * records behind its header.
 *
 * Rounds. perf reads its ring buffers in turn and writes FINISHED_ROUND behind each turn: from then
 * on nothing comes that is older than the newest record of the turn before. Readers sort by time
 * and hand out what can't be overtaken any more. A record that is added must keep that promise, so
 * what matters is its round, not its place in it. */
#include "formats/perfdata_splice.h"

#include "base/cleanup.h"
#include "formats/perfdata.h"

#include <errno.h>
#include <string.h>

enum {
    PIPE_HEADER_BYTES = 16,
    FILE_HEADER_BYTES = 104,
    SIZE_AT = 8, /* of the header; 16: a pipe */
    ATTR_BYTES_AT = 16,
    ATTRS_AT = 24, /* sections: offset, size */
    RECORDS_AT = 40,
    PRIVATE_AT = 56,
    FEATURES_AT = 72, /* 256 bits */
    FEATURE_WORDS = 4,
    SECTION_BYTES = 16,
};

static uint64_t get_u64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static void put_u64(uint8_t *bytes, uint64_t value)
{
    memcpy(bytes, &value, sizeof value);
}

/* Trace data of processors (AUXTRACE) stands behind its record, whose size does not include it. */
static uint64_t record_bytes(const uint8_t *record, uint64_t left)
{
    struct perf_event_header header;
    if (left < sizeof header)
        return 0;
    memcpy(&header, record, sizeof header);
    uint64_t bytes = header.size;
    if (header.size < sizeof header || header.size > left)
        return 0;
    if (header.type == PERFDATA_AUXTRACE && header.size >= sizeof header + 8) {
        uint64_t behind = get_u64(record + sizeof header);
        if (behind > left - bytes)
            return 0;
        bytes += behind;
    }
    return bytes;
}

/* From damage on the file is one round: nobody can sort it anyway. */
static int walk_records(struct perfdata_splice *splice, uint64_t end, bool may_be_cut)
{
    uint64_t offset = splice->records;
    while (offset < end) {
        const uint8_t *record = splice->data + offset;
        uint64_t bytes = record_bytes(record, end - offset);
        if (!bytes)
            break;
        uint32_t type;
        memcpy(&type, record, sizeof type);
        if (type == PERFDATA_FINISHED_ROUND && vector_push(&splice->rounds, offset) < 0)
            return -ENOMEM;
        offset += bytes;
    }
    uint16_t size = 0;
    if (end - offset >= sizeof(struct perf_event_header))
        memcpy(&size, splice->data + offset + 6, sizeof size);
    bool is_cut = may_be_cut && (end - offset < sizeof(struct perf_event_header) ||
                                 (size >= sizeof(struct perf_event_header) && size > end - offset));
    splice->records_end = is_cut ? offset : end;
    return 0;
}

int perfdata_splice_open(struct perfdata_splice *splice, const uint8_t *data, size_t length)
{
    *splice = (struct perfdata_splice){.data = data, .length = length, .tail = length};
    if (length < PIPE_HEADER_BYTES)
        return -EBADMSG;
    uint64_t end = length;
    splice->is_pipe_mode = get_u64(data + SIZE_AT) == PIPE_HEADER_BYTES;
    splice->records = PIPE_HEADER_BYTES;
    if (!splice->is_pipe_mode) {
        if (length < FILE_HEADER_BYTES)
            return -EBADMSG;
        splice->records = get_u64(data + RECORDS_AT);
        uint64_t bytes = get_u64(data + RECORDS_AT + 8);
        if (splice->records > length || splice->records < FILE_HEADER_BYTES)
            return -EBADMSG;
        splice->has_tail = bytes && bytes <= length - splice->records;
        if (splice->has_tail)
            splice->tail = end = splice->records + bytes;
    }
    int error = walk_records(splice, end, end == length);
    if (error < 0)
        perfdata_splice_done(splice);
    return error;
}

void perfdata_splice_done(struct perfdata_splice *splice)
{
    vector_done(&splice->rounds);
}

size_t perfdata_splice_round(const struct perfdata_splice *splice, uint64_t offset)
{
    size_t low = 0, high = splice->rounds.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (splice->rounds.items[middle] < offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t perfdata_splice_round_end(const struct perfdata_splice *splice, size_t round)
{
    return round < splice->rounds.count ? splice->rounds.items[round] : splice->records_end;
}

/* An {offset, size} in the head or the tail of the copy. */
static void move_section(const struct perfdata_splice *splice, uint8_t *section, uint64_t moved)
{
    uint64_t offset = get_u64(section);
    if (splice->has_tail && offset >= splice->tail)
        put_u64(section, offset + moved);
}

/* Attrs may stand on either side of the records; `bytes` is the part of the file at `start`. */
static void move_ids(const struct perfdata_splice *splice, uint8_t *bytes, uint64_t start,
                     uint64_t length, uint64_t moved)
{
    uint64_t attr_bytes = get_u64(splice->data + ATTR_BYTES_AT);
    uint64_t attrs = get_u64(splice->data + ATTRS_AT);
    uint64_t left = get_u64(splice->data + ATTRS_AT + 8);
    if (attr_bytes <= SECTION_BYTES || attrs < start || attrs > start + length)
        return;
    uint64_t offset = attrs - start;
    for (; left >= attr_bytes && attr_bytes <= length - offset; left -= attr_bytes) {
        offset += attr_bytes;
        move_section(splice, bytes + offset - SECTION_BYTES, moved);
    }
}

static void patch_head(const struct perfdata_splice *splice, uint8_t *head, uint64_t moved,
                       uint64_t added)
{
    put_u64(head + RECORDS_AT + 8, splice->records_end - splice->records + added);
    move_section(splice, head + ATTRS_AT, moved);
    move_section(splice, head + PRIVATE_AT, moved);
    move_ids(splice, head, 0, splice->records, moved);
    if (!splice->has_tail)
        memset(head + FEATURES_AT, 0, FEATURE_WORDS * sizeof(uint64_t));
}

static void patch_tail(const struct perfdata_splice *splice, uint8_t *tail, uint64_t moved)
{
    uint64_t length = splice->length - splice->tail, offset = 0;
    for (int word = 0; word < FEATURE_WORDS; word++) {
        uint64_t bits = get_u64(splice->data + FEATURES_AT + 8 * word);
        for (; bits && length - offset >= SECTION_BYTES; bits &= bits - 1) {
            move_section(splice, tail + offset, moved);
            offset += SECTION_BYTES;
        }
    }
    move_ids(splice, tail, splice->tail, length, moved);
}

static int write_records(const struct perfdata_splice *splice,
                         const struct perfdata_insertion *insertions, size_t count,
                         struct perfdata_sink sink)
{
    uint64_t offset = splice->records;
    int error = 0;
    for (size_t i = 0; i < count && !error; i++) {
        const struct perfdata_insertion *insertion = &insertions[i];
        if (insertion->offset > offset) {
            error = sink.write(sink.context, splice->data + offset, insertion->offset - offset);
            offset = insertion->offset;
        }
        if (!error)
            error = sink.write(sink.context, insertion->bytes, insertion->length);
    }
    if (!error)
        error = sink.write(sink.context, splice->data + offset, splice->records_end - offset);
    return error;
}

int perfdata_splice_write(const struct perfdata_splice *splice,
                          const struct perfdata_insertion *insertions, size_t count,
                          struct perfdata_sink sink)
{
    uint64_t added = 0;
    for (size_t i = 0; i < count; i++)
        added += insertions[i].length;
    uint64_t moved = added - (splice->tail - splice->records_end);
    uint64_t tail_length = splice->has_tail ? splice->length - splice->tail : 0;
    CLEANUP(cleanup_free) uint8_t *head = malloc(splice->records);
    CLEANUP(cleanup_free) uint8_t *tail = malloc(tail_length + 1);
    if (!head || !tail)
        return -ENOMEM;
    memcpy(head, splice->data, splice->records);
    if (tail_length)
        memcpy(tail, splice->data + splice->tail, tail_length);
    if (!splice->is_pipe_mode)
        patch_head(splice, head, moved, added);
    if (tail_length)
        patch_tail(splice, tail, moved);

    int error = sink.write(sink.context, head, splice->records);
    if (!error)
        error = write_records(splice, insertions, count, sink);
    if (!error && tail_length)
        error = sink.write(sink.context, tail, tail_length);
    return error;
}
