/* Any bytes as a perf.data: nothing is read out of bounds, reading ends, a second pass finds the
 * same, times never go back unless that was counted, and what was decoded can be encoded. */
#include "formats/perfdata.h"
#include "formats/perfdata_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static uint64_t sum_bytes(const void *bytes, size_t length)
{
    uint64_t sum = length;
    for (size_t i = 0; i < length; i++)
        sum = sum * 31 + ((const uint8_t *)bytes)[i];
    return sum;
}

static uint64_t sum_sample(const struct perfdata_sample *sample)
{
    REQUIRE(sample->user_stack_length <= sample->user_stack_room);
    uint64_t sum = sample->ip_avma + sample->period;
    sum += sum_bytes(sample->callchain, sample->callchain_length * sizeof(uint64_t));
    sum += sum_bytes(sample->user_stack, sample->user_stack_room);
    if (sample->user_regs)
        sum += sum_bytes(sample->user_regs,
                         sizeof(uint64_t) * (size_t)__builtin_popcountll(sample->user_regs_mask));
    return sum;
}

/* Touches all that a record points to. */
static uint64_t sum_record(const struct perfdata_record *record)
{
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        return sum_sample(&record->sample);
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        REQUIRE(record->mmap.start_avma + record->mmap.length >= record->mmap.start_avma);
        REQUIRE(strlen(record->mmap.path) == record->mmap.path_length);
        return sum_bytes(record->mmap.path, record->mmap.path_length);
    case PERF_RECORD_COMM:
        REQUIRE(strlen(record->comm.name) == record->comm.name_length);
        return sum_bytes(record->comm.name, record->comm.name_length);
    default:
        return record->type;
    }
}

static void check_encoding(const struct perfdata_record *record, const struct perfdata_event *event)
{
    static uint8_t bytes[1 << 17];
    struct writer writer;
    if (record->type == PERF_RECORD_SAMPLE &&
        event->attr.sample_type & ~(uint64_t)PERFDATA_ENCODED_SAMPLE_TYPE)
        return;
    writer_init(&writer, bytes, sizeof bytes);
    int result = perfdata_encode(&writer, event, record);
    REQUIRE(result == 0 || result == -EMSGSIZE);
    REQUIRE(writer_fits(&writer) && writer.length % 8 == 0);
}

static void check_info(const struct perfdata_info *info)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < info->event_count; i++) {
        sum += strlen(info->events[i].name);
        sum += sum_bytes(info->events[i].ids, info->events[i].id_count * sizeof(uint64_t));
    }
    for (size_t i = 0; i < info->build_id_count; i++)
        sum += strlen(info->build_ids[i].path) + info->build_ids[i].id_length;
    for (size_t i = 0; i < info->argument_count; i++)
        sum += strlen(info->arguments[i]);
    sum += sum_bytes(info->private_data, info->private_length);
    REQUIRE(sum != 1);
}

static uint64_t read_all(struct perfdata_reader *reader)
{
    const struct perfdata_info *info = perfdata_info(reader);
    struct perfdata_record record;
    uint64_t sum = 0, newest_ns = 0, late = 0;
    int result;
    while ((result = perfdata_next(reader, &record)) == 1) {
        REQUIRE(record.offset < info->bytes);
        REQUIRE(record.event < info->event_count || info->event_count == 0);
        if (record.time_ns && record.time_ns < newest_ns)
            late++;
        else if (record.time_ns)
            newest_ns = record.time_ns;
        sum = sum * 31 + sum_record(&record);
        if (info->event_count)
            check_encoding(&record, &info->events[record.event]);
    }
    REQUIRE(result == 0);
    REQUIRE(late == perfdata_stats(reader)->unordered);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perfdata_reader *reader;
    const char *problem;
    int result = perfdata_open_memory("fuzz", data, size, &problem, &reader);
    if (result < 0) {
        REQUIRE(problem);
        REQUIRE(result == -EBADMSG || result == -ENODATA || result == -ENOTSUP);
        return 0;
    }
    check_info(perfdata_info(reader));
    uint64_t sum = read_all(reader);
    struct perfdata_stats stats = *perfdata_stats(reader);
    size_t damaged = perfdata_damage(reader)->count;
    bool is_pipe_mode = perfdata_info(reader)->is_pipe_mode;
    check_info(perfdata_info(reader));
    perfdata_rewind(reader);
    uint64_t again = read_all(reader);
    /* In a pipe, what is learned late would have changed what came before. */
    if (!is_pipe_mode) {
        REQUIRE(again == sum && perfdata_damage(reader)->count == damaged);
        REQUIRE(memcmp(perfdata_stats(reader), &stats, sizeof stats) == 0);
    }
    perfdata_close(reader);
    return 0;
}
