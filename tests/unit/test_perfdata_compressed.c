/* Records inside compressed ones, cut anywhere. */
#include "formats/perfdata.h"

#include "failing_malloc.h"
#include "perfdata_sample.h"
#include "unit.h"

#include <zstd.h>

enum { SAMPLES = 40 };

static struct sample_file file;

/* The records of a file with as many samples; the caller frees them. */
static uint8_t *make_records(size_t *ret_length)
{
    struct sample_file plain;
    sample_begin(&plain);
    for (uint64_t i = SAMPLES; i > 0; i--)
        sample_add_sample(&plain, i);
    sample_end(&plain);
    *ret_length = plain.data_end - plain.data_offset;
    uint8_t *records = exact_copy(plain.bytes + plain.data_offset, *ret_length);
    sample_done(&plain);
    return records;
}

static void add_compressed(const uint8_t *bytes, size_t length, uint32_t type)
{
    struct {
        struct perf_event_header header;
        uint8_t payload[4096];
    } record = {.header = {.type = type}};
    size_t start = 0;
    if (type == PERFDATA_COMPRESSED2) {
        uint64_t stated = length;
        memcpy(record.payload, &stated, sizeof stated);
        start = sizeof stated;
    }
    memcpy(record.payload + start, bytes, length);
    size_t size = sizeof record.header + start + length;
    if (type == PERFDATA_COMPRESSED2)
        size = (size + 7) / 8 * 8;
    record.header.size = (uint16_t)size;
    perfdata_writer_bytes(file.writer, &record, size);
}

/* One stream through many compressed records of `part` bytes of input each. */
static void make_compressed(size_t part, uint32_t type)
{
    size_t length;
    uint8_t *records = make_records(&length);
    ZSTD_CStream *stream = ZSTD_createCStream();
    ZSTD_initCStream(stream, 1);
    sample_begin(&file);
    for (size_t done = 0; done < length; done += part) {
        uint8_t compressed[2048];
        ZSTD_inBuffer in = {records + done, done + part < length ? part : length - done, 0};
        ZSTD_outBuffer out = {compressed, sizeof compressed, 0};
        ZSTD_compressStream(stream, &out, &in);
        ZSTD_flushStream(stream, &out);
        assert_int_equal(in.pos, in.size);
        add_compressed(compressed, out.pos, type);
    }
    perfdata_writer_round(file.writer);
    sample_end(&file);
    ZSTD_freeCStream(stream);
    free(records);
}

static void assert_all_was_read(void)
{
    struct sample_reading reading = sample_read(&file);
    assert_int_equal(reading.count, SAMPLES);
    for (uint64_t i = 0; i < SAMPLES; i++)
        assert_int_equal(reading.times[i], i + 1);
    assert_int_equal(reading.damage.count, 0);
    assert_false(reading.damage.truncated);
    sample_done(&file);
}

static void records_are_read_wherever_the_stream_is_cut(void **state)
{
    (void)state;
    for (size_t part = 1; part < 200; part += 13) {
        make_compressed(part, PERFDATA_COMPRESSED);
        assert_all_was_read();
    }
}

static void padded_records_are_read_too(void **state)
{
    (void)state;
    for (size_t part = 1; part < 200; part += 13) {
        make_compressed(part, PERFDATA_COMPRESSED2);
        assert_all_was_read();
    }
}

static void what_they_point_to_is_not_lasting(void **state)
{
    (void)state;
    make_compressed(500, PERFDATA_COMPRESSED);
    struct perfdata_reader *reader = sample_open(&file);
    struct perfdata_record record;
    while (perfdata_next(reader, &record) == 1) {
        assert_false(record.lasting);
        assert_int_equal(record.sample.callchain[1], SAMPLE_CHAIN[1]);
    }
    assert_true(perfdata_info(reader)->is_compressed);
    assert_int_equal(perfdata_stats(reader)->records[PERF_RECORD_SAMPLE], SAMPLES);
    perfdata_close(reader);
    sample_done(&file);
}

static void a_stream_that_is_damaged_is_reported(void **state)
{
    (void)state;
    make_compressed(1000, PERFDATA_COMPRESSED);
    memset(file.bytes + file.data_offset + 8, 0xff, 4); /* the magic number of zstd */
    struct sample_reading reading = sample_read(&file);
    assert_true(reading.damage.count > 0);
    assert_int_equal(reading.damage.places[0].offset, file.data_offset);
    sample_done(&file);
}

static void a_stream_that_ends_inside_a_record_is_truncated(void **state)
{
    (void)state;
    make_compressed(100, PERFDATA_COMPRESSED2);
    struct perf_event_header first;
    memcpy(&first, file.bytes + file.data_offset, sizeof first);
    sample_kill(&file, file.data_offset + first.size);
    struct sample_reading reading = sample_read(&file);
    assert_true(reading.damage.truncated);
    assert_int_equal(reading.damage.count, 0);
    sample_done(&file);
}

static void short_memory_is_reported(void **state)
{
    (void)state;
    make_compressed(500, PERFDATA_COMPRESSED);
    for (long n = 0;; n++) {
        struct perfdata_reader *reader = NULL;
        struct perfdata_record record;
        const char *problem;
        failing_malloc_after(n);
        int result = perfdata_open_memory("x", file.bytes, file.length, &problem, &reader);
        while (result >= 0 && (result = perfdata_next(reader, &record)) == 1)
            continue;
        perfdata_close(reader);
        if (!failing_malloc_stop())
            break;
        assert_true(result == -ENOMEM || result == 0); /* giving memory back may fail unnoticed */
    }
    sample_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_wherever_the_stream_is_cut),
        cmocka_unit_test(padded_records_are_read_too),
        cmocka_unit_test(what_they_point_to_is_not_lasting),
        cmocka_unit_test(a_stream_that_is_damaged_is_reported),
        cmocka_unit_test(a_stream_that_ends_inside_a_record_is_truncated),
        cmocka_unit_test(short_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
