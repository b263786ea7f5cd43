/* The reader: from bytes to records in the order of time.
 *
 *     file --> span --------------------+--> perf's own records: facts, rounds
 *               |                       |
 *               +--> stream --> block --+--> with a time:    order --+
 *                 (compressed)          |                            +--> decode --> the caller
 *                                       +--> without a time ---------+
 *
 * Records are decoded when they are handed out, not when they are found: until then all that is
 * kept of them is time and place. Everything is read in one pass, nothing is allocated per record.
 *
 * The file may be larger than memory. Its pages are given back every few megabytes, all of them:
 * records are looked at twice, when they are found and when they are handed out, and a round later
 * nobody needs them any more.
 *
 * A record in a block must not go before it has been handed out, nor while the caller looks at it:
 * every queued record counts as a user of its block, and so does the one handed out last. */
#include "formats/perfdata.h"

#include "base/checked.h"
#include "base/mapping.h"
#include "formats/perfdata_compressed.h"
#include "formats/perfdata_folder.h"
#include "formats/perfdata_header.h"
#include "formats/perfdata_order.h"
#include "formats/perfdata_record.h"
#include "formats/perfdata_span.h"

#include <errno.h>
#include <string.h>

enum { SEARCH_FACTOR = 16, SEARCH_MINIMUM_BYTES = 1 << 20 };
enum { FORGET_BYTES = 16 << 20 };              /* what is looked at before pages are given back */
enum { FIRST_OF_PERF = PERFDATA_HEADER_ATTR }; /* the kernel's record types are below */

struct perfdata_reader {
    struct mapping mapping; /* empty when the memory is the caller's */
    const uint8_t *data;    /* the whole file */
    size_t length;
    struct perfdata_folder folder; /* files whose records come behind those of `data` */
    struct perfdata_facts facts;
    struct perfdata_extent extent;
    struct damage header_damage; /* found by perfdata_open */
    bool starts_unaligned;       /* what every pass begins with, see struct perfdata_judge */
    size_t facts_end;            /* records in the file before this have been taken into `facts` */

    /* The state of a pass. */
    struct perfdata_span span; /* of the file; `data` is where the records start */
    uint64_t span_offset; /* of this place; the files of a folder count as one behind the other */
    size_t next_part;     /* of the folder */
    struct perfdata_stream stream;
    struct perfdata_block *block; /* being read, or NULL */
    struct perfdata_span block_span;
    struct perfdata_judge judge;
    struct perfdata_order order;
    struct perfdata_block *borrowed; /* of the record that was returned last */
    struct perfdata_stats stats;
    struct damage damage;
    uint64_t newest_ns; /* of the records returned */
    size_t touched;     /* bytes of the file, since its pages were given back */
    bool is_at_end;
    bool is_out_of_memory;
};

/* A record, and the block it is in or NULL. */
struct found {
    struct perfdata_raw raw;
    struct perfdata_block *block;
};

const struct perfdata_info *perfdata_info(const struct perfdata_reader *reader)
{
    return &reader->facts.info;
}

const struct perfdata_stats *perfdata_stats(const struct perfdata_reader *reader)
{
    return &reader->stats;
}

const struct damage *perfdata_damage(const struct perfdata_reader *reader)
{
    return &reader->damage;
}

static uint64_t offset_of(const struct perfdata_reader *reader, const uint8_t *record,
                          const struct perfdata_block *block)
{
    if (block)
        return block->offset;
    uint64_t offset = reader->length;
    for (size_t i = 0; i < reader->folder.parts.count; i++) {
        const struct mapping *part = &reader->folder.parts.items[i];
        if (record >= part->data && record < part->data + part->length)
            return offset + (uint64_t)(record - part->data);
        offset += part->length;
    }
    return (uint64_t)(record - reader->data);
}

static void note(struct perfdata_reader *reader, uint64_t offset, size_t bytes, const char *problem)
{
    damage_note(&reader->damage,
                (struct damage_place){.offset = offset, .bytes = bytes, .problem = problem});
}

/* The record is about to be looked at, or was. */
static void touch(struct perfdata_reader *reader, size_t bytes)
{
    reader->touched += bytes;
    if (reader->touched < FORGET_BYTES)
        return;
    mapping_forget(&reader->mapping);
    reader->touched = 0;
}

/* --- finding records ----------------------------------------------------------------------- */

static void leave_block(struct perfdata_reader *reader)
{
    perfdata_block_release(reader->block);
    reader->block = NULL;
}

/* 1 and a record of the block; 0 when the block is used up. */
static int next_in_block(struct perfdata_reader *reader, struct found *found)
{
    struct perfdata_block *block = reader->block;
    for (;;) {
        int result = perfdata_span_next(&reader->block_span, &reader->judge, &found->raw);
        if (result == 1) {
            found->block = block;
            return 1;
        }
        if (result == -EBADMSG) {
            note(reader, block->offset, found->raw.extent, found->raw.problem);
            continue;
        }
        if (result == -ENODATA)
            perfdata_stream_keep(&reader->stream, block->data + found->raw.position,
                                 found->raw.extent);
        leave_block(reader);
        return 0;
    }
}

/* 1 when there is a block to read; 0 when the compressed record is used up; or -ENOMEM. */
static int next_block(struct perfdata_reader *reader)
{
    int result = perfdata_stream_next(&reader->stream, &reader->block);
    reader->stats.decompressed_bytes = reader->stream.bytes_out;
    if (result == -EBADMSG) {
        note(reader, reader->stream.offset, reader->stream.input_length,
             "a compressed record can't be decompressed");
        return 0;
    }
    if (result == 1)
        reader->block_span = (struct perfdata_span){
            .data = reader->block->data, .length = reader->block->length, .goes_on = true};
    return result;
}

static int start_compressed(struct perfdata_reader *reader, const struct perfdata_raw *raw)
{
    const uint8_t *payload = raw->record + sizeof raw->header;
    size_t length = raw->header.size - sizeof raw->header;
    uint64_t offset = offset_of(reader, raw->record, NULL);
    if (raw->header.type == PERFDATA_COMPRESSED2) {
        /* Padded: the length without padding comes first. */
        uint64_t stated = 0;
        if (length >= sizeof stated)
            memcpy(&stated, payload, sizeof stated);
        if (length < sizeof stated || stated > length - sizeof stated) {
            note(reader, offset, raw->header.size, "a compressed record is too short");
            return 0;
        }
        payload += sizeof stated;
        length = stated;
    }
    reader->facts.info.is_compressed = true;
    reader->judge.is_unaligned = true;
    reader->stats.compressed_bytes += length;
    return perfdata_stream_feed(&reader->stream, payload, length, offset);
}

static void count(struct perfdata_stats *stats, uint32_t type)
{
    if (type < PERFDATA_TYPES)
        stats->records[type]++;
    else
        stats->other_records++;
}

/* Goes on to the next file of a folder, which has compressed data of its own. False: there is none.
 */
static bool start_part(struct perfdata_reader *reader)
{
    if (reader->next_part >= reader->folder.parts.count)
        return false;
    const struct mapping *part = &reader->folder.parts.items[reader->next_part++];
    reader->span = (struct perfdata_span){
        .data = part->data, .length = part->length, .may_be_cut = reader->extent.may_be_cut};
    reader->span_offset = offset_of(reader, part->data, NULL);
    uint64_t bytes_out = reader->stream.bytes_out;
    perfdata_stream_reset(&reader->stream);
    reader->stream.bytes_out = bytes_out;
    return true;
}

/* The file has no more records, or (-ENODATA) it ends too early. Whether there is another one. */
static bool end_of_file(struct perfdata_reader *reader, const struct perfdata_raw *raw, int result)
{
    reader->span.position = reader->span.length;
    if (result == -ENODATA)
        damage_note_truncated(&reader->damage, reader->span_offset + raw->position);
    else if (reader->stream.remainder_length)
        damage_note_truncated(&reader->damage, reader->stream.offset);
    return start_part(reader);
}

/* 1 and the next record, in the order of the file; 0 at the end; -ENOMEM. Damage is noted. */
static int find_next(struct perfdata_reader *reader, struct found *found)
{
    for (;;) {
        if (reader->block && next_in_block(reader, found) == 1)
            break;
        int result = next_block(reader);
        if (result < 0)
            return result;
        if (result == 1)
            continue;
        result = perfdata_span_next(&reader->span, &reader->judge, &found->raw);
        if (result == 0 || result == -ENODATA) {
            if (!end_of_file(reader, &found->raw, result))
                return 0;
            continue;
        }
        if (result == -EBADMSG) {
            note(reader, reader->span_offset + found->raw.position, found->raw.extent,
                 found->raw.problem);
            continue;
        }
        touch(reader, found->raw.extent);
        found->block = NULL;
        uint32_t type = found->raw.header.type;
        if (type != PERFDATA_COMPRESSED && type != PERFDATA_COMPRESSED2)
            break;
        count(&reader->stats, type);
        reader->stats.skipped++;
        if (start_compressed(reader, &found->raw) < 0)
            return -ENOMEM;
    }
    count(&reader->stats, found->raw.header.type);
    return 1;
}

/* --- opening ------------------------------------------------------------------------------- */

/* In pipe mode, takes a record into the facts unless an earlier pass has. 0 or -ENOMEM. */
static int learn(struct perfdata_reader *reader, const struct found *found)
{
    size_t end = reader->span.position;
    if (!reader->facts.info.is_pipe_mode || found->block || end <= reader->facts_end)
        return 0;
    reader->facts_end = end;
    int error = perfdata_facts_record(&reader->facts, found->raw.record, found->raw.header.size);
    if (error == -EBADMSG) {
        /* No later pass will see it: it stays. */
        struct damage_place place = {.offset = offset_of(reader, found->raw.record, NULL),
                                     .bytes = found->raw.header.size,
                                     .problem = "a record about the recording is damaged"};
        damage_note(&reader->damage, place);
        damage_note(&reader->header_damage, place);
    }
    return error == -EBADMSG ? 0 : error;
}

/* In pipe mode the events come first. */
static int learn_first(struct perfdata_reader *reader)
{
    struct found found;
    int result;
    while ((result = find_next(reader, &found)) == 1 && !found.block &&
           found.raw.header.type >= FIRST_OF_PERF)
        if (learn(reader, &found) < 0)
            return -ENOMEM;
    return result < 0 ? result : 0;
}

static int open_data(struct perfdata_reader *reader, const char *source, const char **ret_problem)
{
    struct cursor file;
    cursor_init(&file, source, reader->data, reader->length);
    int error = perfdata_header_read(file, &reader->facts, &reader->header_damage, &reader->extent,
                                     ret_problem);
    if (error < 0)
        return error;
    *ret_problem = "memory is short";
    reader->judge.events = &reader->facts.events;
    reader->judge.aligned = malloc(PERFDATA_RECORD_MOST);
    size_t length = strlen(source);
    char *copy = arena_copy(&reader->facts.arena, source, length);
    if (!reader->judge.aligned || !copy)
        return -ENOMEM;
    reader->facts.info.source = copy;
    reader->facts.info.bytes = reader->length;
    for (size_t i = 0; i < reader->folder.parts.count; i++)
        reader->facts.info.bytes += reader->folder.parts.items[i].length;
    reader->starts_unaligned = reader->facts.info.is_compressed || reader->facts.info.is_pipe_mode;
    perfdata_rewind(reader);
    if (!reader->facts.info.is_pipe_mode)
        return 0;
    error = learn_first(reader);
    if (error == 0)
        perfdata_rewind(reader);
    return error;
}

static int open_reader(struct perfdata_reader *reader, const char *source, const char **ret_problem,
                       struct perfdata_reader **ret_reader)
{
    int error = open_data(reader, source, ret_problem);
    if (error < 0) {
        if (error == -ENOMEM)
            *ret_problem = "memory is short";
        perfdata_close(reader);
        return error;
    }
    *ret_problem = NULL;
    *ret_reader = reader;
    return 0;
}

int perfdata_open_memory(const char *source, const void *data, size_t length,
                         const char **ret_problem, struct perfdata_reader **ret_reader)
{
    struct perfdata_reader *reader = calloc(1, sizeof *reader);
    *ret_problem = "memory is short";
    if (!reader)
        return -ENOMEM;
    reader->data = data;
    reader->length = length;
    return open_reader(reader, source, ret_problem, ret_reader);
}

int perfdata_open(const char *path, const char **ret_problem, struct perfdata_reader **ret_reader)
{
    struct perfdata_reader *reader = calloc(1, sizeof *reader);
    *ret_problem = "memory is short";
    if (!reader)
        return -ENOMEM;
    int error = mapping_open(path, &reader->mapping);
    if (error == -EISDIR)
        error = perfdata_folder_open(&reader->folder, path, &reader->mapping);
    if (error < 0) {
        *ret_problem = error == -EISDIR ? "is a folder, and none that 'perf record --threads' wrote"
                                        : "it cannot be read";
        free(reader);
        return error;
    }
    reader->data = reader->mapping.data;
    reader->length = reader->mapping.length;
    return open_reader(reader, path, ret_problem, ret_reader);
}

/* Lets go of all blocks. */
static void drop_blocks(struct perfdata_reader *reader)
{
    for (size_t i = reader->order.head; i < reader->order.queue.count; i++)
        perfdata_block_release(reader->order.queue.items[i].block);
    perfdata_block_release(reader->borrowed);
    reader->borrowed = NULL;
    leave_block(reader);
}

void perfdata_rewind(struct perfdata_reader *reader)
{
    drop_blocks(reader);
    perfdata_order_clear(&reader->order);
    perfdata_stream_reset(&reader->stream);
    reader->span = (struct perfdata_span){.data = reader->data + reader->extent.data.offset,
                                          .length = reader->extent.data.size,
                                          .may_be_cut = reader->extent.may_be_cut};
    reader->span_offset = reader->extent.data.offset;
    reader->next_part = 0;
    if (!checked_mul(reader->length, SEARCH_FACTOR, &reader->judge.search_bytes_left))
        reader->judge.search_bytes_left = reader->length;
    reader->judge.search_bytes_left += SEARCH_MINIMUM_BYTES;
    reader->judge.is_unaligned = reader->starts_unaligned;
    reader->stats = (struct perfdata_stats){0};
    reader->damage = reader->header_damage;
    reader->newest_ns = 0;
    reader->is_at_end = reader->is_out_of_memory = false;
}

void perfdata_close(struct perfdata_reader *reader)
{
    if (!reader)
        return;
    drop_blocks(reader);
    perfdata_order_done(&reader->order);
    perfdata_stream_done(&reader->stream);
    perfdata_facts_done(&reader->facts);
    free(reader->judge.aligned);
    perfdata_folder_done(&reader->folder);
    mapping_done(&reader->mapping);
    free(reader);
}

/* --- handing out --------------------------------------------------------------------------- */

/* Decodes a record for the caller, who borrows its block. Whether there is anything to return. */
static bool hand_out(struct perfdata_reader *reader, const uint8_t *record,
                     struct perfdata_block *block, struct perfdata_record *ret_record)
{
    struct perf_event_header header;
    const char *problem;
    memcpy(&header, record, sizeof header);
    if (!block)
        touch(reader, header.size);
    const uint8_t *bytes = perfdata_judge_align(&reader->judge, record, header.size);
    int result =
        perfdata_record_decode(&reader->facts.events, bytes, header.size, ret_record, &problem);
    reader->borrowed = block;
    if (result == 1) {
        ret_record->offset = offset_of(reader, record, block);
        ret_record->lasting = bytes == record && !block;
        if (ret_record->time_ns > reader->newest_ns)
            reader->newest_ns = ret_record->time_ns;
        else if (ret_record->time_ns && ret_record->time_ns < reader->newest_ns)
            reader->stats.unordered++;
        return true;
    }
    if (result == -EBADMSG)
        note(reader, offset_of(reader, record, block), header.size, problem);
    else
        reader->stats.skipped++;
    if (result == -ENOENT)
        reader->stats.unknown_events++;
    perfdata_block_release(block);
    reader->borrowed = NULL;
    return false;
}

/* Does what a record asks for. 1 when there is something to return, 0 when not, or -ENOMEM. */
static int take(struct perfdata_reader *reader, struct found *found,
                struct perfdata_record *ret_record)
{
    const struct perfdata_raw *raw = &found->raw;
    if (!perfdata_record_is_decoded(raw->header.type)) {
        reader->stats.skipped++;
        if (raw->header.type == PERFDATA_FINISHED_ROUND)
            return perfdata_order_finish(&reader->order, false);
        return learn(reader, found);
    }
    uint64_t time_ns = perfdata_events_time(&reader->facts.events, raw->record);
    if (found->block)
        found->block->users++;
    if (!time_ns)
        return hand_out(reader, raw->record, found->block, ret_record);
    int error = perfdata_order_push(&reader->order,
                                    (struct perfdata_queued){time_ns, raw->record, found->block});
    if (error < 0)
        perfdata_block_release(found->block);
    return error;
}

static int read_more(struct perfdata_reader *reader, struct perfdata_record *ret_record)
{
    struct found found;
    int result = find_next(reader, &found);
    if (result == 1)
        return take(reader, &found, ret_record);
    if (result == 0) {
        reader->is_at_end = true;
        return perfdata_order_finish(&reader->order, true);
    }
    return result;
}

int perfdata_next(struct perfdata_reader *reader, struct perfdata_record *ret_record)
{
    perfdata_block_release(reader->borrowed);
    reader->borrowed = NULL;
    while (!reader->is_out_of_memory) {
        struct perfdata_queued item;
        int result;
        if (perfdata_order_pop(&reader->order, &item))
            result = hand_out(reader, item.record, item.block, ret_record);
        else if (reader->is_at_end)
            return 0;
        else
            result = read_more(reader, ret_record);
        if (result == 1)
            return 1;
        reader->is_out_of_memory = result < 0;
    }
    return -ENOMEM;
}
