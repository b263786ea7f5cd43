/* Any bytes as a jitdump: nothing is read out of bounds, reading ends and accounts for every byte,
 * and every record of a known type can be encoded and decoded again. */
#include "formats/jitdump_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void encode(struct writer *writer, const struct jitdump_record *record,
                   const struct jitdump_line *lines, size_t line_count)
{
    jitdump_encode_header(writer, &(struct jitdump_header){.pid = 1});
    switch (record->type) {
    case JITDUMP_LOAD:
        jitdump_encode_load(writer, record->timestamp, &record->load);
        break;
    case JITDUMP_MOVE:
        jitdump_encode_move(writer, record->timestamp, &record->move);
        break;
    case JITDUMP_DEBUG_INFO:
        jitdump_encode_debug_info(writer, record->timestamp, record->debug_info.code_avma, lines,
                                  line_count);
        break;
    case JITDUMP_UNWINDING_INFO:
        jitdump_encode_unwinding_info(writer, record->timestamp, &record->unwinding_info);
        break;
    default:
        jitdump_encode_close(writer, record->timestamp);
    }
}

static void check_load(const struct jitdump_load *a, const struct jitdump_load *b)
{
    REQUIRE(a->pid == b->pid && a->tid == b->tid && a->vma == b->vma);
    REQUIRE(a->code_avma == b->code_avma && a->code_size == b->code_size);
    REQUIRE(a->code_index == b->code_index && a->name_length == b->name_length);
    REQUIRE(memcmp(a->name, b->name, a->name_length) == 0);
    REQUIRE(!a->code == !b->code);
    if (a->code && a->code_size)
        REQUIRE(memcmp(a->code, b->code, a->code_size) == 0);
}

static void check_lines(struct jitdump_debug_info info, const struct jitdump_line *lines)
{
    struct jitdump_line line;
    for (size_t i = 0; jitdump_next_line(&info, &line); i++) {
        REQUIRE(line.avma == lines[i].avma && line.line == lines[i].line);
        REQUIRE(line.discriminator == lines[i].discriminator);
        REQUIRE(strcmp(line.file, lines[i].file) == 0);
    }
}

static void check_same(const struct jitdump_record *record, const struct jitdump_record *again,
                       const struct jitdump_line *lines)
{
    REQUIRE(again->type == record->type && again->timestamp == record->timestamp);
    const struct jitdump_unwinding_info *a = &record->unwinding_info, *b = &again->unwinding_info;
    switch (record->type) {
    case JITDUMP_LOAD:
        check_load(&record->load, &again->load);
        break;
    case JITDUMP_MOVE:
        REQUIRE(memcmp(&record->move, &again->move, sizeof record->move) == 0);
        break;
    case JITDUMP_DEBUG_INFO:
        REQUIRE(record->debug_info.count == again->debug_info.count);
        check_lines(again->debug_info, lines);
        break;
    case JITDUMP_UNWINDING_INFO:
        REQUIRE(a->size == b->size && a->eh_frame_hdr_size == b->eh_frame_hdr_size);
        REQUIRE(a->mapped_size == b->mapped_size && memcmp(a->data, b->data, a->size) == 0);
        break;
    default:
        break;
    }
}

static void check_round_trip(const struct jitdump_record *record)
{
    VECTOR(struct jitdump_line) lines = {0};
    if (record->type == JITDUMP_DEBUG_INFO) {
        struct jitdump_debug_info info = record->debug_info;
        struct jitdump_line line;
        while (jitdump_next_line(&info, &line))
            REQUIRE(vector_push(&lines, line) == 0);
    }
    struct writer writer;
    writer_init(&writer, NULL, 0);
    encode(&writer, record, lines.items, lines.count);
    size_t length = writer.length;
    uint8_t *bytes = malloc(length);
    REQUIRE(bytes);
    writer_init(&writer, bytes, length);
    encode(&writer, record, lines.items, lines.count);
    REQUIRE(writer_fits(&writer) && writer.length == length);

    struct jitdump_reader reader;
    struct jitdump_record again;
    REQUIRE(jitdump_open(&reader, "round trip", bytes, length) == 0);
    REQUIRE(jitdump_next(&reader, &again) == 1);
    check_same(record, &again, lines.items);
    REQUIRE(jitdump_next(&reader, &again) == 0);
    free(bytes);
    vector_done(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct jitdump_reader reader;
    if (jitdump_open(&reader, "fuzz", data, size) < 0)
        return 0;
    struct jitdump_record record;
    size_t accounted = reader.cursor.offset;
    int result;
    while ((result = jitdump_next(&reader, &record)) != 0) {
        REQUIRE(result == 1 || result == -EBADMSG || result == -ENODATA);
        accounted += result == 1 ? record.size : reader.skipped_bytes;
        REQUIRE(accounted == reader.cursor.offset);
        if (result == 1 && record.type < JITDUMP_TYPES)
            check_round_trip(&record);
    }
    REQUIRE(accounted == size);

    struct jitdump_index index;
    const char *problem;
    if (jitdump_index_init(&index, "fuzz", data, size, &problem) < 0)
        return 0;
    for (size_t i = 0; i < index.codes.count; i++) {
        const struct jitdump_code *code = &index.codes.items[i];
        jitdump_index_find(&index, code->load.code_avma, code->timestamp);
        jitdump_index_find(&index, code->load.code_avma + code->load.code_size, UINT64_MAX);
    }
    jitdump_index_done(&index);
    return 0;
}
