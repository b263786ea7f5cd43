/* The file, in the order in which it is written:
 *
 *     header | ids of all events | attributes | records ... | table of features | features |
 * private
 *
 * The header is written first with a data size of 0 and corrected at the end, which is what makes a
 * file finished; with packed records, each time some are written. The table must start right behind
 * the records, where readers look for it; its place is left free until the features are written.
 * perf takes no feature bits of others, hence private data stand behind everything and are found by
 * the header's field for event types, which nobody else has used for years.
 *
 * Where the disk is full, the records that are wholly in the file stay, but for the last few: the
 * features need their room, or perf would not read it. */
#include "formats/perfdata_writer.h"

#include "base/arena.h"
#include "formats/perfdata_encode.h"
#include "formats/perfdata_features.h"
#include "formats/perfdata_output.h"
#include "formats/perfdata_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_BYTES = 104, SECTION_BYTES = 16, RECORD_HEADER_BYTES = 8 };

/* perf 6.1 refuses attributes that are larger. */
enum { MOST_ATTR_BYTES = 128 };

/* Texts in features are padded as perf does. */
enum { TEXT_ALIGNMENT = 64 };

enum { MISC_BUILD_ID_SIZE = 1 << 15 };

/* What features take, and more. */
enum { END_BYTES = 16 << 10 };

struct perfdata_writer {
    struct perfdata_output output;
    struct arena arena; /* the events and the buffer */
    struct perfdata_event *events;
    size_t event_count;
    uint64_t attrs_offset;
    uint64_t data_offset;
    uint64_t first_sample_ns;
    uint64_t last_sample_ns;
    struct perfdata_packer packer;
    uint32_t packed_from_bytes; /* samples that are longer on average are packed; 0: none are */
    size_t buffered_samples;    /* in the buffer of `output` */
    bool has_end;               /* features stand where the next record will */
    uint64_t saved_end;         /* after a failure: of the records that can stay; 0: none was */
    uint64_t earlier_ends[2];   /* of records, each END_BYTES before the next or more; 0: none */
};

struct section {
    uint64_t offset;
    uint64_t size;
};

static size_t attr_bytes(void)
{
    return sizeof(struct perf_event_attr) < MOST_ATTR_BYTES ? sizeof(struct perf_event_attr)
                                                            : MOST_ATTR_BYTES;
}

/* --- start --------------------------------------------------------------------------------- */

static int check_events(const struct perfdata_event *events, size_t count)
{
    if (!count)
        return -EINVAL;
    for (size_t i = 0; i < count; i++) {
        uint64_t type = events[i].attr.sample_type;
        if (type & ~(uint64_t)PERFDATA_ENCODED_SAMPLE_TYPE)
            return -ENOTSUP;
        if (count > 1 && (!events[i].id_count || !(type & PERF_SAMPLE_IDENTIFIER)))
            return -EINVAL;
    }
    return 0;
}

static int copy_event(struct perfdata_writer *writer, const struct perfdata_event *event,
                      struct perfdata_event *copy)
{
    *copy = *event;
    copy->attr.size = (uint32_t)attr_bytes();
    copy->ids = (const uint64_t *)arena_copy(&writer->arena, event->ids,
                                             event->id_count * sizeof *event->ids);
    if (event->name)
        copy->name = arena_copy(&writer->arena, event->name, strlen(event->name));
    return copy->ids && (copy->name || !event->name) ? 0 : -ENOMEM;
}

static int copy_events(struct perfdata_writer *writer, const struct perfdata_event *events,
                       size_t count)
{
    writer->events = arena_alloc(&writer->arena, count * sizeof *events);
    if (!writer->events)
        return -ENOMEM;
    writer->event_count = count;
    for (size_t i = 0; i < count; i++)
        if (copy_event(writer, &events[i], &writer->events[i]) < 0)
            return -ENOMEM;
    return 0;
}

static void put_section(struct writer *header, uint64_t offset, uint64_t size)
{
    writer_u64(header, offset);
    writer_u64(header, size);
}

/* `data_end` is 0 as long as it is not known. */
static void put_header(struct perfdata_writer *writer, uint64_t data_end, struct section private,
                       const uint64_t features[4])
{
    uint8_t bytes[HEADER_BYTES];
    struct writer header;
    writer_init(&header, bytes, sizeof bytes);
    writer_bytes(&header, "PERFILE2", 8);
    writer_u64(&header, HEADER_BYTES);
    writer_u64(&header, attr_bytes() + SECTION_BYTES);
    put_section(&header, writer->attrs_offset, writer->data_offset - writer->attrs_offset);
    put_section(&header, writer->data_offset, data_end ? data_end - writer->data_offset : 0);
    put_section(&header, private.offset, private.size);
    for (size_t i = 0; i < 4; i++)
        writer_u64(&header, features[i]);
    perfdata_output_patch(&writer->output, 0, bytes, sizeof bytes);
}

static void put_events(struct perfdata_writer *writer)
{
    struct perfdata_output *output = &writer->output;
    uint64_t ids_offset = perfdata_output_position(output);
    for (size_t i = 0; i < writer->event_count; i++)
        perfdata_output_bytes(output, writer->events[i].ids,
                              writer->events[i].id_count * sizeof(uint64_t));
    writer->attrs_offset = perfdata_output_position(output);
    for (size_t i = 0; i < writer->event_count; i++) {
        uint64_t ids_bytes = writer->events[i].id_count * sizeof(uint64_t);
        perfdata_output_bytes(output, &writer->events[i].attr, attr_bytes());
        perfdata_output_u64(output, ids_offset);
        perfdata_output_u64(output, ids_bytes);
        ids_offset += ids_bytes;
    }
    writer->data_offset = perfdata_output_position(output);
}

static int start(struct perfdata_writer *writer, const struct perfdata_event *events, size_t count)
{
    void *buffer = arena_alloc(&writer->arena, PERFDATA_OUTPUT_BYTES);
    if (!buffer || copy_events(writer, events, count) < 0)
        return -ENOMEM;
    writer_init(&writer->output.buffer, buffer, PERFDATA_OUTPUT_BYTES);
    writer->output.position = HEADER_BYTES;
    put_events(writer);
    put_header(writer, 0, (struct section){0}, (const uint64_t[4]){0});
    return perfdata_output_flush(&writer->output);
}

int perfdata_writer_open(int fd, const struct perfdata_event *events, size_t event_count,
                         struct perfdata_writer **ret_writer)
{
    int error = check_events(events, event_count);
    if (error < 0)
        return error;
    struct perfdata_writer *writer = calloc(1, sizeof *writer);
    if (!writer)
        return -ENOMEM;
    writer->output.fd = fd;
    error = start(writer, events, event_count);
    if (error < 0) {
        perfdata_writer_close(writer);
        return error;
    }
    *ret_writer = writer;
    return 0;
}

void perfdata_writer_close(struct perfdata_writer *writer)
{
    if (!writer)
        return;
    perfdata_packer_done(&writer->packer);
    arena_done(&writer->arena);
    free(writer);
}

/* --- records ------------------------------------------------------------------------------- */

void perfdata_writer_pack(struct perfdata_writer *writer, uint32_t from_bytes)
{
    writer->packed_from_bytes = from_bytes;
}

/* What a checkpoint has written behind the records is about to be overwritten. */
static void drop_end(struct perfdata_writer *writer)
{
    if (writer->has_end)
        put_header(writer, writer->output.position, (struct section){0}, (const uint64_t[4]){0});
    writer->has_end = false;
}

enum { PACKED_WORDS = 5 };

/* The feature that tells how records are packed. */
static void describe_packing(const struct perfdata_writer *writer, uint32_t words[PACKED_WORDS])
{
    words[0] = 0; /* version */
    words[1] = 1; /* zstd */
    words[2] = PERFDATA_PACK_LEVEL;
    words[3] = (uint32_t)(writer->packer.bytes_in / writer->packer.bytes_out);
    words[4] = PERFDATA_PACK_MOST_BYTES;
}

/* perf can't read packed records without that feature. So it is there at all times, and this may be
 * the end of the file if nothing follows. */
static void put_packed_end(struct perfdata_writer *writer)
{
    uint64_t end = writer->output.position;
    struct section table = {end + sizeof table, PACKED_WORDS * sizeof(uint32_t)};
    uint32_t words[PACKED_WORDS];
    describe_packing(writer, words);
    perfdata_output_patch(&writer->output, end, &table, sizeof table);
    perfdata_output_patch(&writer->output, table.offset, words, sizeof words);
    put_header(writer, end, (struct section){0},
               (const uint64_t[4]){UINT64_C(1) << PERFDATA_FEATURE_COMPRESSED});
    writer->has_end = true;
}

/* Records end there. */
static void note_end(struct perfdata_writer *writer, uint64_t position)
{
    uint64_t *ends = writer->earlier_ends;
    if (position < ends[1] + END_BYTES)
        return;
    ends[0] = ends[1];
    ends[1] = position;
}

/* The records in the buffer, from `start` on in the file, could not all be written. */
static void save_records(struct perfdata_writer *writer, uint64_t start, size_t length)
{
    struct perfdata_output *output = &writer->output;
    uint64_t reached = output->reached > start ? output->reached - start : 0;
    size_t room = reached > END_BYTES ? (size_t)reached - END_BYTES : 0, saved = 0;
    struct perf_event_header header;
    while (saved + sizeof header <= length) {
        memcpy(&header, output->buffer.data + saved, sizeof header);
        if (header.size < sizeof header || saved + header.size > room)
            break;
        saved += header.size;
    }
    writer->saved_end = start + saved;
}

/* Writes the records in the buffer, packed if that is wanted of such. */
static int flush_records(struct perfdata_writer *writer)
{
    struct perfdata_output *output = &writer->output;
    struct writer *buffer = &output->buffer;
    if (writer->packed_from_bytes && writer->buffered_samples &&
        buffer->length / writer->buffered_samples >= writer->packed_from_bytes) {
        size_t packed = perfdata_pack(&writer->packer, buffer->data, buffer->length);
        if (packed) {
            memcpy(buffer->data, writer->packer.room, packed);
            buffer->length = packed;
        }
    }
    writer->buffered_samples = 0;
    if (!buffer->length)
        return output->error;
    drop_end(writer);
    size_t length = buffer->length;
    uint64_t start = output->position;
    note_end(writer, start);
    perfdata_output_flush(output);
    if (output->error && !writer->saved_end)
        save_records(writer, start, length);
    if (writer->packer.bytes_out)
        put_packed_end(writer);
    return output->error;
}

int perfdata_writer_record(struct perfdata_writer *writer, const struct perfdata_record *record)
{
    struct perfdata_output *output = &writer->output;
    if (record->event >= writer->event_count)
        return -EINVAL;
    if (output->buffer.capacity - output->buffer.length < PERFDATA_ENCODED_MOST_BYTES)
        flush_records(writer);
    if (output->error)
        return output->error;
    int error = perfdata_encode(&output->buffer, &writer->events[record->event], record);
    if (error < 0 || record->type != PERF_RECORD_SAMPLE)
        return error;
    writer->buffered_samples++;
    if (!writer->first_sample_ns || record->time_ns < writer->first_sample_ns)
        writer->first_sample_ns = record->time_ns;
    if (record->time_ns > writer->last_sample_ns)
        writer->last_sample_ns = record->time_ns;
    return 0;
}

int perfdata_writer_bytes(struct perfdata_writer *writer, const void *records, size_t length)
{
    drop_end(writer);
    perfdata_output_bytes(&writer->output, records, length);
    return writer->output.error;
}

int perfdata_writer_round(struct perfdata_writer *writer)
{
    struct perf_event_header header = {.type = PERFDATA_FINISHED_ROUND, .size = sizeof header};
    if (writer->packed_from_bytes)
        flush_records(writer); /* not among records that are packed */
    int error = perfdata_writer_bytes(writer, &header, sizeof header);
    return writer->packed_from_bytes ? flush_records(writer) : error;
}

/* --- features ------------------------------------------------------------------------------ */

static size_t padded_length(const char *text)
{
    return (strlen(text) / TEXT_ALIGNMENT + 1) * TEXT_ALIGNMENT;
}

static void put_text(struct perfdata_output *output, const char *text)
{
    size_t length = strlen(text);
    perfdata_output_u32(output, (uint32_t)padded_length(text));
    perfdata_output_bytes(output, text, length);
    perfdata_output_zeros(output, padded_length(text) - length);
}

static void put_event_names(const struct perfdata_writer *writer, struct perfdata_output *output)
{
    perfdata_output_u32(output, (uint32_t)writer->event_count);
    perfdata_output_u32(output, (uint32_t)attr_bytes());
    for (size_t i = 0; i < writer->event_count; i++) {
        const struct perfdata_event *event = &writer->events[i];
        perfdata_output_bytes(output, &event->attr, attr_bytes());
        perfdata_output_u32(output, (uint32_t)event->id_count);
        put_text(output, event->name ? event->name : "");
        perfdata_output_bytes(output, event->ids, event->id_count * sizeof *event->ids);
    }
}

static void put_build_id(struct perfdata_output *output, const struct perfdata_build_id *build_id)
{
    enum { ID_BYTES = 24, FIXED_BYTES = RECORD_HEADER_BYTES + 4 + ID_BYTES };
    size_t path_bytes = padded_length(build_id->path);
    struct perf_event_header header = {.misc = build_id->misc | MISC_BUILD_ID_SIZE,
                                       .size = (uint16_t)(FIXED_BYTES + path_bytes)};
    uint8_t id[ID_BYTES] = {0};
    memcpy(id, build_id->id, sizeof build_id->id);
    id[sizeof build_id->id] = build_id->id_length;
    perfdata_output_bytes(output, &header, sizeof header);
    perfdata_output_u32(output, (uint32_t)build_id->pid);
    perfdata_output_bytes(output, id, sizeof id);
    perfdata_output_bytes(output, build_id->path, strlen(build_id->path));
    perfdata_output_zeros(output, path_bytes - strlen(build_id->path));
}

static const char *text_of(const struct perfdata_info *info, unsigned feature)
{
    switch (feature) {
    case PERFDATA_FEATURE_HOSTNAME:
        return info->hostname;
    case PERFDATA_FEATURE_OSRELEASE:
        return info->os_release;
    case PERFDATA_FEATURE_VERSION:
        return info->perf_version;
    case PERFDATA_FEATURE_ARCH:
        return info->arch;
    case PERFDATA_FEATURE_CPUDESC:
        return info->cpu_description;
    case PERFDATA_FEATURE_CPUID:
        return info->cpu_id;
    default:
        return NULL;
    }
}

static bool has_names(const struct perfdata_writer *writer)
{
    for (size_t i = 0; i < writer->event_count; i++)
        if (writer->events[i].name)
            return true;
    return false;
}

static bool is_wanted(const struct perfdata_writer *writer, const struct perfdata_info *info,
                      unsigned feature)
{
    switch (feature) {
    case PERFDATA_FEATURE_BUILD_ID:
        return info->build_id_count > 0;
    case PERFDATA_FEATURE_NRCPUS:
        return info->cpus_available > 0;
    case PERFDATA_FEATURE_TOTAL_MEM:
        return info->memory_kilobytes > 0;
    case PERFDATA_FEATURE_CMDLINE:
        return info->argument_count > 0;
    case PERFDATA_FEATURE_EVENT_DESC:
        return has_names(writer);
    case PERFDATA_FEATURE_SAMPLE_TIME:
        return writer->last_sample_ns > 0;
    case PERFDATA_FEATURE_COMPRESSED:
        return writer->packer.bytes_out > 0;
    case PERFDATA_FEATURE_CLOCK_DATA:
        return info->has_clock;
    default:
        return text_of(info, feature) != NULL;
    }
}

static void put_feature(struct perfdata_writer *writer, const struct perfdata_info *info,
                        unsigned feature)
{
    struct perfdata_output *output = &writer->output;
    uint32_t packing[PACKED_WORDS];
    switch (feature) {
    case PERFDATA_FEATURE_BUILD_ID:
        for (size_t i = 0; i < info->build_id_count; i++)
            put_build_id(output, &info->build_ids[i]);
        break;
    case PERFDATA_FEATURE_NRCPUS:
        perfdata_output_u32(output, info->cpus_available);
        perfdata_output_u32(output, info->cpus_online);
        break;
    case PERFDATA_FEATURE_TOTAL_MEM:
        perfdata_output_u64(output, info->memory_kilobytes);
        break;
    case PERFDATA_FEATURE_CMDLINE:
        perfdata_output_u32(output, (uint32_t)info->argument_count);
        for (size_t i = 0; i < info->argument_count; i++)
            put_text(output, info->arguments[i]);
        break;
    case PERFDATA_FEATURE_EVENT_DESC:
        put_event_names(writer, output);
        break;
    case PERFDATA_FEATURE_SAMPLE_TIME:
        perfdata_output_u64(output, writer->first_sample_ns);
        perfdata_output_u64(output, writer->last_sample_ns);
        break;
    case PERFDATA_FEATURE_COMPRESSED:
        describe_packing(writer, packing);
        perfdata_output_bytes(output, packing, sizeof packing);
        break;
    case PERFDATA_FEATURE_CLOCK_DATA:
        perfdata_output_u32(output, 1); /* version */
        perfdata_output_u32(output, info->clock_id);
        perfdata_output_u64(output, info->clock_wall_ns);
        perfdata_output_u64(output, info->clock_ns);
        break;
    default:
        put_text(output, text_of(info, feature));
    }
}

/* Writes all that stands behind the records, and with it the header. */
static int put_end(struct perfdata_writer *writer, const struct perfdata_info *info)
{
    struct perfdata_output *output = &writer->output;
    uint64_t data_end = perfdata_output_position(output);
    struct section table[PERFDATA_FEATURES];
    uint64_t bits[4] = {0};
    size_t count = 0;
    for (unsigned feature = 0; feature < PERFDATA_FEATURES; feature++)
        count += is_wanted(writer, info, feature);
    perfdata_output_zeros(output, count * SECTION_BYTES);
    count = 0;
    for (unsigned feature = 0; feature < PERFDATA_FEATURES; feature++) {
        if (!is_wanted(writer, info, feature))
            continue;
        struct section *section = &table[count++];
        section->offset = perfdata_output_position(output);
        put_feature(writer, info, feature);
        section->size = perfdata_output_position(output) - section->offset;
        bits[feature / 64] |= UINT64_C(1) << feature % 64;
    }
    struct section private = {0};
    if (info->private_length)
    private = (struct section){perfdata_output_position(output), info->private_length};
    perfdata_output_bytes(output, info->private_data, info->private_length);
    perfdata_output_flush(output);
    perfdata_output_patch(output, data_end, table, count * sizeof *table);
    put_header(writer, data_end, private, bits);
    return output->error;
}

/* The same where not all could be written: without the private data, if need be in the place of the
 * last records. */
static void put_short_end(struct perfdata_writer *writer, const struct perfdata_info *info,
                          uint64_t data_end)
{
    struct perfdata_info features = *info;
    uint64_t ends[] = {data_end, writer->earlier_ends[1], writer->earlier_ends[0]};
    features.private_length = 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!ends[i] || ends[i] > data_end)
            continue;
        perfdata_output_go_back(&writer->output, ends[i]);
        if (put_end(writer, &features) == 0)
            return;
        data_end = ends[i];
    }
    perfdata_output_go_back(&writer->output, data_end);
    put_header(writer, data_end, (struct section){0}, (const uint64_t[4]){0});
}

int perfdata_writer_finish(struct perfdata_writer *writer, const struct perfdata_info *info)
{
    struct perfdata_output *output = &writer->output;
    drop_end(writer);
    flush_records(writer);
    uint64_t data_end = writer->saved_end ? writer->saved_end : output->position;
    if (!output->error && put_end(writer, info) == 0)
        return 0;
    int error = output->error;
    writer->saved_end = data_end;
    put_short_end(writer, info, data_end);
    return output->error = error;
}

int perfdata_writer_checkpoint(struct perfdata_writer *writer, const struct perfdata_info *info)
{
    flush_records(writer);
    uint64_t data_end = perfdata_output_position(&writer->output);
    int error = perfdata_writer_finish(writer, info);
    writer->output.position = data_end;
    writer->has_end = true;
    return error;
}
