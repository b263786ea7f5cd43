/* Reads a jitdump from end to end and lets the range map answer by address and time. DEBUG_INFO and
 * UNWINDING_INFO stand before the LOAD they belong to: the first names the address, the second is
 * for whatever LOAD comes next. */
#include "formats/jitdump_index.h"

#include <errno.h>

/* What was read and may be needed by a later record. Keys are hashes of hash_u64. */
struct pending {
    struct jitdump_unwinding_info unwinding; /* for the next LOAD */
    VECTOR(struct jitdump_debug_info) debug_infos;
    struct hashtable debug_by_avma; /* the newest that waits for a LOAD there, index + 1; 0: none */
    struct hashtable code_by_index; /* code index > the newest of `codes` with it */
};

static void pending_done(struct pending *pending)
{
    vector_done(&pending->debug_infos);
    hashtable_done(&pending->debug_by_avma);
    hashtable_done(&pending->code_by_index);
}

static int add_debug_info(struct pending *pending, const struct jitdump_debug_info *info)
{
    int error = vector_push(&pending->debug_infos, *info);
    if (error)
        return error;
    return hashtable_set(&pending->debug_by_avma, hash_u64(info->code_avma),
                         pending->debug_infos.count);
}

/* What waits for code at an address, if anything; from then on nothing does. */
static int take_debug_info(struct pending *pending, uint64_t code_avma,
                           struct jitdump_debug_info *ret_info)
{
    uint64_t waiting, hash = hash_u64(code_avma);
    if (!hashtable_get(&pending->debug_by_avma, hash, &waiting) || !waiting ||
        waiting > pending->debug_infos.count)
        return 0;
    *ret_info = pending->debug_infos.items[waiting - 1];
    return hashtable_set(&pending->debug_by_avma, hash, 0);
}

static int add_range(struct jitdump_index *index, uint64_t start, uint64_t size, uint64_t timestamp,
                     uint32_t value)
{
    int error =
        rangemap_add(&index->ranges,
                     (struct rangetree_range){
                         .start = start, .end = start + size, .time = timestamp, .value = value});
    return error == -EINVAL ? 0 : error; /* empty code covers nothing */
}

static int add_placement(struct jitdump_index *index, struct jitdump_placement placement,
                         uint64_t size)
{
    if (index->placements.count >= RANGEMAP_NOTHING)
        return -ENOMEM;
    uint32_t number = (uint32_t)index->placements.count;
    int error = vector_push(&index->placements, placement);
    return error ? error : add_range(index, placement.avma, size, placement.timestamp, number);
}

static int add_load(struct jitdump_index *index, struct pending *pending,
                    const struct jitdump_record *record)
{
    struct jitdump_code code = {.load = record->load,
                                .timestamp = record->timestamp,
                                .offset = record->offset,
                                .unwinding = pending->unwinding};
    pending->unwinding = (struct jitdump_unwinding_info){0};
    if (index->codes.count >= RANGEMAP_NOTHING)
        return -ENOMEM;
    uint32_t position = (uint32_t)index->codes.count;
    int error = take_debug_info(pending, code.load.code_avma, &code.debug);
    if (!error)
        error = vector_push(&index->codes, code);
    if (!error)
        error = hashtable_set(&pending->code_by_index, hash_u64(code.load.code_index), position);
    struct jitdump_placement placement = {
        .avma = code.load.code_avma, .timestamp = code.timestamp, .code = position};
    return error ? error : add_placement(index, placement, code.load.code_size);
}

static int add_move(struct jitdump_index *index, const struct pending *pending,
                    const struct jitdump_record *record)
{
    const struct jitdump_move *move = &record->move;
    uint64_t code;
    if (!hashtable_get(&pending->code_by_index, hash_u64(move->code_index), &code)) {
        index->lost_moves++;
        return 0;
    }
    int error =
        add_range(index, move->old_avma, move->code_size, record->timestamp, RANGEMAP_NOTHING);
    struct jitdump_placement placement = {
        .avma = move->new_avma, .timestamp = record->timestamp, .code = (uint32_t)code};
    return error ? error : add_placement(index, placement, move->code_size);
}

static int add_record(struct jitdump_index *index, struct pending *pending,
                      const struct jitdump_record *record)
{
    if (!index->record_count++ || record->timestamp < index->first_timestamp)
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
        return add_debug_info(pending, &record->debug_info);
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
    pending_done(&pending);
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
    vector_done(&index->placements);
    vector_done(&index->codes);
}

const struct jitdump_placement *jitdump_index_find(const struct jitdump_index *index, uint64_t avma,
                                                   uint64_t timestamp)
{
    uint32_t placement;
    if (!rangemap_find(&index->ranges, avma, timestamp, &placement))
        return NULL;
    return &index->placements.items[placement];
}
