/* Recordings for tests, made by the writer and read back from memory. */
#ifndef PITVIPER_UNIT_PERFDATA_SAMPLE_H
#define PITVIPER_UNIT_PERFDATA_SAMPLE_H

#include "formats/perfdata_writer.h"

#include "unit.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAMPLE_PID = 4711, SAMPLE_MOST_RECORDS = 64, SAMPLE_DATA_SIZE_OFFSET = 48 };

#define SAMPLE_TYPE                                                                                \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

static const uint64_t SAMPLE_IDS[] = {71, 72};
static const uint64_t SAMPLE_CHAIN[] = {PERF_CONTEXT_USER, 0x1010, 0x1020, 0x1030};

/* A file, and where its records start. */
struct sample_file {
    struct perfdata_writer *writer;
    int fd;
    uint8_t *bytes; /* after sample_end */
    size_t length;
    size_t data_offset;
    size_t data_end;
};

static inline struct perfdata_event sample_event(size_t number)
{
    return (struct perfdata_event){.attr = {.type = PERF_TYPE_SOFTWARE,
                                            .sample_type = SAMPLE_TYPE,
                                            .sample_id_all = 1,
                                            .exclude_kernel = 1},
                                   .name = number ? "second" : "first",
                                   .ids = &SAMPLE_IDS[number],
                                   .id_count = 1};
}

static inline void sample_begin_with(struct sample_file *file, const struct perfdata_event *events,
                                     size_t count)
{
    *file = (struct sample_file){.fd = memfd_create("sample", MFD_CLOEXEC)};
    assert_true(file->fd >= 0);
    assert_int_equal(perfdata_writer_open(file->fd, events, count, &file->writer), 0);
}

static inline void sample_begin(struct sample_file *file)
{
    struct perfdata_event events[] = {sample_event(0), sample_event(1)};
    sample_begin_with(file, events, COUNT(events));
}

static inline void sample_add(struct sample_file *file, struct perfdata_record record)
{
    record.pid = SAMPLE_PID;
    record.tid = SAMPLE_PID;
    assert_int_equal(perfdata_writer_record(file->writer, &record), 0);
}

static inline struct perfdata_record sample_at(uint64_t time_ns)
{
    return (struct perfdata_record){.type = PERF_RECORD_SAMPLE,
                                    .misc = PERF_RECORD_MISC_USER,
                                    .time_ns = time_ns,
                                    .sample = {.ip_avma = 0x1010,
                                               .period = 7,
                                               .callchain = SAMPLE_CHAIN,
                                               .callchain_length = COUNT(SAMPLE_CHAIN)}};
}

static inline void sample_add_sample(struct sample_file *file, uint64_t time_ns)
{
    sample_add(file, sample_at(time_ns));
}

static inline void sample_end_with(struct sample_file *file, const struct perfdata_info *info)
{
    assert_int_equal(perfdata_writer_finish(file->writer, info), 0);
    perfdata_writer_close(file->writer);
    file->length = (size_t)lseek(file->fd, 0, SEEK_END);
    file->bytes = malloc(file->length);
    assert_non_null(file->bytes);
    assert_int_equal(pread(file->fd, file->bytes, file->length, 0), file->length);
    close(file->fd);
    uint64_t section[2];
    memcpy(section, file->bytes + SAMPLE_DATA_SIZE_OFFSET - 8, sizeof section);
    file->data_offset = section[0];
    file->data_end = section[0] + section[1];
}

static inline void sample_end(struct sample_file *file)
{
    sample_end_with(file, &(struct perfdata_info){.arch = "x86_64"});
}

/* Whatever else is done to it, a file is released by this. */
static inline void sample_done(struct sample_file *file)
{
    free(file->bytes);
}

/* As if perf had been killed: everything behind `length` is gone, the header not filled in. */
static inline void sample_kill(struct sample_file *file, size_t length)
{
    memset(file->bytes + SAMPLE_DATA_SIZE_OFFSET, 0, sizeof(uint64_t));
    file->length = length;
}

struct sample_reading {
    uint64_t times[SAMPLE_MOST_RECORDS]; /* of all records, in the order read */
    size_t count;
    struct damage damage;
    struct perfdata_stats stats;
};

static inline struct perfdata_reader *sample_open(const struct sample_file *file)
{
    struct perfdata_reader *reader;
    const char *problem;
    assert_int_equal(perfdata_open_memory("sample", file->bytes, file->length, &problem, &reader),
                     0);
    return reader;
}

static inline struct sample_reading sample_read(const struct sample_file *file)
{
    struct sample_reading reading = {0};
    struct perfdata_reader *reader = sample_open(file);
    struct perfdata_record record;
    while (perfdata_next(reader, &record) == 1) {
        assert_true(reading.count < SAMPLE_MOST_RECORDS);
        reading.times[reading.count++] = record.time_ns;
    }
    reading.damage = *perfdata_damage(reader);
    reading.stats = *perfdata_stats(reader);
    perfdata_close(reader);
    return reading;
}

static inline bool sample_was_read(const struct sample_reading *reading, uint64_t time_ns)
{
    for (size_t i = 0; i < reading->count; i++)
        if (reading->times[i] == time_ns)
            return true;
    return false;
}

#endif
