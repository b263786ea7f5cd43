/* Reads a jitdump from end to end and lets the range map answer by address and time. DEBUG_INFO and
 * UNWINDING_INFO stand before the LOAD they belong to: the first names the address, the second is
 * for whatever LOAD comes next. */
#include "formats/jitdump_index.h"

#include <errno.h>

/* What was read and waits for its LOAD. */
struct pending {
    struct jitdump_debug_info debug;
    struct jitdump_unwinding_info unwinding;
    struct hashtable by_code_index; /* hash_u64(code_index) > index into `codes`; the newest wins */
};

static int add_range(struct jitdump_index *index, uint64_t start, uint64_t size, uint64_t timestamp,
                     uint32_t value)
{
    int error = rangemap_add(&index->ranges, (struct rangemap_range){.start = start,
                                                                     .end = start + size,
                                                                     .time = timestamp,
                                                                     .value = value});
    return error == -EINVAL ? 0 : error; /* empty code covers nothing */
}

static int add_load(struct jitdump_index *index, struct pending *pending,
                    const struct jitdump_record *record)
{
    struct jitdump_code code = {.load = record->load,
                                .timestamp = record->timestamp,
                                .offset = record->offset,
                                .unwinding = pending->unwinding};
    pending->unwinding = (struct jitdump_unwinding_info){0};
    if (pending->debug.code_avma == record->load.code_avma) {
        code.debug = pending->debug;
        pending->debug = (struct jitdump_debug_info){0};
    }
    if (index->codes.count >= RANGEMAP_NOTHING)
        return -ENOMEM;
    uint32_t position = (uint32_t)index->codes.count;
    int error = vector_push(&index->codes, code);
    if (!error)
        error = hashtable_add(&pending->by_code_index, hash_u64(code.load.code_index), position);
    if (!error)
        error = add_range(index, code.load.code_avma, code.load.code_size, code.timestamp,
                          position);
    return error;
}

static int add_move(struct jitdump_index *index, const struct pending *pending,
                    const struct jitdump_record *record)
{
    const struct jitdump_move *move = &record->move;
    struct hashtable_probe probe =
        hashtable_probe(&pending->by_code_index, hash_u64(move->code_index));
    uint64_t candidate, newest = RANGEMAP_NOTHING;
    while (hashtable_next(&probe, &candidate)) {
        if (newest == RANGEMAP_NOTHING || candidate > newest)
            newest = candidate;
    }
    if (newest == RANGEMAP_NOTHING) {
        index->lost_moves++;
        return 0;
    }
    int error =
        add_range(index, move->old_avma, move->code_size, record->timestamp, RANGEMAP_NOTHING);
    if (!error)
        error = add_range(index, move->new_avma, move->code_size, record->timestamp,
                          (uint32_t)newest);
    return error;
}

static int add_record(struct jitdump_index *index, struct pending *pending,
                      const struct jitdump_record *record)
{
    if (!index->first_timestamp || record->timestamp < index->first_timestamp)
        index->first_timestamp = record->timestamp;
    if (record->timestamp > index->last_timestamp)
        index->last_timestamp = record->timestamp;
    if (record->type >= JITDUMP_TYPES) {
        index->unknown_records++;
        return 0;
    }
    index->records[record->type]++;
    switch (record->type) {
    case JITDUMP_LOAD:
        return add_load(index, pending, record);
    case JITDUMP_MOVE:
        return add_move(index, pending, record);
    case JITDUMP_DEBUG_INFO:
        pending->debug = record->debug_info;
        return 0;
    case JITDUMP_UNWINDING_INFO:
        pending->unwinding = record->unwinding_info;
        return 0;
    default:
        return 0;
    }
}

static int read_records(struct jitdump_index *index, struct jitdump_reader *reader)
{
    struct pending pending = {0};
    struct jitdump_record record;
    int result, error = 0;
    while (!error && (result = jitdump_next(reader, &record)) != 0) {
        if (result == -ENODATA)
            damage_note_truncated(&index->damage, reader->problem_offset);
        else if (result < 0)
            damage_note(&index->damage, (struct damage_place){.offset = reader->problem_offset,
                                                              .bytes = reader->skipped_bytes,
                                                              .problem = reader->problem});
        else
            error = add_record(index, &pending, &record);
    }
    hashtable_done(&pending.by_code_index);
    return error;
}

int jitdump_index_init(struct jitdump_index *index, const char *source, const void *data,
                       size_t length, const char **ret_problem)
{
    *index = (struct jitdump_index){0};
    struct jitdump_reader reader;
    int error = jitdump_open(&reader, source, data, length);
    if (error < 0) {
        *ret_problem = reader.problem;
        return error;
    }
    index->header = reader.header;
    index->swapped = reader.cursor.swapped;
    error = read_records(index, &reader);
    if (!error)
        error = rangemap_build(&index->ranges);
    if (error < 0) {
        *ret_problem = "memory is short";
        jitdump_index_done(index);
    }
    return error;
}

void jitdump_index_done(struct jitdump_index *index)
{
    rangemap_done(&index->ranges);
    vector_done(&index->codes);
}

const struct jitdump_code *jitdump_index_find(const struct jitdump_index *index, uint64_t avma,
                                              uint64_t timestamp)
{
    uint32_t code;
    if (!rangemap_find(&index->ranges, avma, timestamp, &code))
        return NULL;
    return &index->codes.items[code];
}
