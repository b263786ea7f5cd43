/* Jitdumps made for tests, and what a reader says about them. Records are told apart by their time
 * stamps: the nth record of a sample, from 1, has the stamp n * 100. */
#ifndef PITVIPER_UNIT_JITDUMP_SAMPLE_H
#define PITVIPER_UNIT_JITDUMP_SAMPLE_H

#include "formats/jitdump.h"

#include "unit.h"

#include <errno.h>

enum { SAMPLE_PID = 4711, SAMPLE_MOST = 32, SAMPLE_HEADER_BYTES = 40, SAMPLE_MACHINE = 62 };

struct sample {
    uint8_t bytes[8192];
    struct writer writer;
    size_t offsets[SAMPLE_MOST + 1]; /* where the nth record starts, and where the last one ends */
    size_t count;
};

/* The code of every LOAD: no byte is 0, so that it can't end a name. */
static const uint8_t SAMPLE_CODE[] = {
    0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x89, 0xfb, 0x48, 0x8b, 0x47, 0x10, 0x48, 0x89, 0xde, 0xff,
    0xd0, 0x48, 0x83, 0xc4, 0x08, 0x5b, 0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90, 0xcc, 0xcc, 0xcc, 0xcc,
};

static inline void sample_begin(struct sample *sample)
{
    *sample = (struct sample){0};
    writer_init(&sample->writer, sample->bytes, sizeof sample->bytes);
    jitdump_encode_header(&sample->writer, &(struct jitdump_header){.elf_machine = SAMPLE_MACHINE,
                                                                    .pid = SAMPLE_PID,
                                                                    .timestamp = 99,
                                                                    .flags = 0});
    sample->offsets[0] = sample->writer.length;
}

/* The stamp of the record that comes next. */
static inline uint64_t sample_next_stamp(const struct sample *sample)
{
    return (sample->count + 1) * 100;
}

static inline void sample_note(struct sample *sample)
{
    assert_true(writer_fits(&sample->writer) && sample->count < SAMPLE_MOST);
    sample->offsets[++sample->count] = sample->writer.length;
}

static inline struct jitdump_load sample_load(uint64_t avma, uint64_t code_index, const char *name)
{
    return (struct jitdump_load){.pid = SAMPLE_PID,
                                 .tid = SAMPLE_PID + 1,
                                 .vma = avma,
                                 .code_avma = avma,
                                 .code_size = sizeof SAMPLE_CODE,
                                 .code_index = code_index,
                                 .name = name,
                                 .name_length = strlen(name),
                                 .code = SAMPLE_CODE};
}

static inline void sample_add_load(struct sample *sample, uint64_t avma, uint64_t code_index,
                                   const char *name)
{
    struct jitdump_load load = sample_load(avma, code_index, name);
    jitdump_encode_load(&sample->writer, sample_next_stamp(sample), &load);
    sample_note(sample);
}

static inline struct jitdump_move sample_move(uint64_t old_avma, uint64_t new_avma,
                                              uint64_t code_index)
{
    return (struct jitdump_move){.pid = SAMPLE_PID,
                                 .tid = SAMPLE_PID + 1,
                                 .vma = new_avma,
                                 .old_avma = old_avma,
                                 .new_avma = new_avma,
                                 .code_size = sizeof SAMPLE_CODE,
                                 .code_index = code_index};
}

static inline void sample_add_move(struct sample *sample, uint64_t old_avma, uint64_t new_avma,
                                   uint64_t code_index)
{
    struct jitdump_move move = sample_move(old_avma, new_avma, code_index);
    jitdump_encode_move(&sample->writer, sample_next_stamp(sample), &move);
    sample_note(sample);
}

/* Two lines in one file. */
static inline void sample_add_debug_info(struct sample *sample, uint64_t avma, const char *file)
{
    const struct jitdump_line lines[] = {
        {.avma = avma, .line = 10, .discriminator = 1, .file = file},
        {.avma = avma + 8, .line = 11, .file = "\xff"}};
    jitdump_encode_debug_info(&sample->writer, sample_next_stamp(sample), avma, lines, 2);
    sample_note(sample);
}

static inline void sample_add_unwinding_info(struct sample *sample)
{
    struct jitdump_unwinding_info info = {.data = (const uint8_t *)"eh_frame, then eh_frame_hdr",
                                          .size = 27,
                                          .eh_frame_hdr_size = 12,
                                          .mapped_size = 32};
    jitdump_encode_unwinding_info(&sample->writer, sample_next_stamp(sample), &info);
    sample_note(sample);
}

static inline void sample_add_close(struct sample *sample)
{
    jitdump_encode_close(&sample->writer, sample_next_stamp(sample));
    sample_note(sample);
}

/* A record of a type that nobody knows yet, with a body of `bytes` bytes. */
static inline void sample_add_unknown(struct sample *sample, size_t bytes)
{
    writer_u32(&sample->writer, 77);
    writer_u32(&sample->writer, (uint32_t)(16 + bytes));
    writer_u64(&sample->writer, sample_next_stamp(sample));
    for (size_t i = 0; i < bytes; i++)
        writer_u8(&sample->writer, (uint8_t)(0xa0 + i));
    sample_note(sample);
}

/* A function as CPython writes it, then one record of every other type. */
static inline void sample_make_all_types(struct sample *sample)
{
    sample_begin(sample);
    sample_add_unwinding_info(sample);
    sample_add_load(sample, 0x7f0000001000, 1, "py::foo:/app/a.py");
    sample_add_debug_info(sample, 0x7f0000002000, "/app/b.py");
    sample_add_load(sample, 0x7f0000002000, 2, "py::bar:/app/b.py");
    sample_add_move(sample, 0x7f0000001000, 0x7f0000003000, 1);
    sample_add_close(sample);
}

/* What a reader said about a whole file. */
struct sample_reading {
    size_t count;
    struct jitdump_record records[SAMPLE_MOST];
    size_t bad_count;
    size_t bad_offsets[SAMPLE_MOST];
    size_t bad_bytes[SAMPLE_MOST];
    bool truncated;
    size_t truncated_offset;
};

static inline struct sample_reading sample_read(const uint8_t *data, size_t length)
{
    struct sample_reading reading = {0};
    struct jitdump_reader reader;
    struct jitdump_record record;
    int result;
    assert_int_equal(jitdump_open(&reader, "sample", data, length), 0);
    while ((result = jitdump_next(&reader, &record)) != 0) {
        assert_true(reading.count < SAMPLE_MOST && reading.bad_count < SAMPLE_MOST);
        if (result == 1) {
            reading.records[reading.count++] = record;
            continue;
        }
        assert_non_null(reader.problem);
        assert_true(reader.skipped_bytes > 0);
        if (result == -ENODATA) {
            assert_false(reading.truncated);
            reading.truncated = true;
            reading.truncated_offset = reader.problem_offset;
        } else {
            assert_int_equal(result, -EBADMSG);
            reading.bad_offsets[reading.bad_count] = reader.problem_offset;
            reading.bad_bytes[reading.bad_count++] = reader.skipped_bytes;
        }
    }
    assert_int_equal(reader.cursor.offset, length);
    return reading;
}

/* Whether the nth record of the sample (from 1) was read. */
static inline bool sample_was_read(const struct sample_reading *reading, size_t nth)
{
    for (size_t i = 0; i < reading->count; i++) {
        if (reading->records[i].timestamp == nth * 100)
            return true;
    }
    return false;
}

#endif
