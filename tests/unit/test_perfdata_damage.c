/* Recordings that are cut off, overwritten, flipped or made to hurt. */
#include "formats/perfdata.h"

#include "perfdata_sample.h"
#include "unit.h"

static struct sample_file file;
static size_t record_bytes;

/* Ten samples at times 1 to 10, all of the same size. */
static void make_ten(void)
{
    sample_begin(&file);
    for (uint64_t i = 1; i <= 10; i++)
        sample_add_sample(&file, i);
    sample_end(&file);
    record_bytes = (file.data_end - file.data_offset) / 10;
}

static size_t offset_of(uint64_t time_ns)
{
    return file.data_offset + (time_ns - 1) * record_bytes;
}

/* Everything but the third sample was read. */
static void assert_only_third_is_lost(void)
{
    struct sample_reading reading = sample_read(&file);
    for (uint64_t i = 1; i <= 10; i++)
        assert_int_equal(sample_was_read(&reading, i), i != 3);
    assert_int_equal(reading.damage.count, 1);
    assert_int_equal(reading.damage.places[0].offset, offset_of(3));
    assert_int_equal(reading.damage.places[0].bytes, record_bytes);
    assert_false(reading.damage.truncated);
    sample_done(&file);
}

static void a_killed_recording_is_read_to_its_end(void **state)
{
    (void)state;
    make_ten();
    sample_kill(&file, file.data_end);
    struct perfdata_reader *reader = sample_open(&file);
    assert_false(perfdata_info(reader)->is_finished);
    perfdata_close(reader);
    struct sample_reading reading = sample_read(&file);
    assert_int_equal(reading.count, 10);
    assert_int_equal(reading.damage.count, 0);
    assert_false(reading.damage.truncated);
    sample_done(&file);
}

static void a_recording_that_is_cut_anywhere_is_truncated_not_corrupt(void **state)
{
    (void)state;
    make_ten();
    uint8_t *bytes = file.bytes;
    sample_kill(&file, file.data_end);
    for (size_t length = file.data_offset; length < file.data_end; length++) {
        size_t whole = (length - file.data_offset) / record_bytes;
        file.bytes = exact_copy(bytes, length);
        file.length = length;
        struct sample_reading reading = sample_read(&file);
        free(file.bytes);
        assert_int_equal(reading.count, whole);
        assert_int_equal(reading.damage.count, 0);
        assert_int_equal(reading.damage.truncated, length > offset_of(whole + 1));
        if (reading.damage.truncated)
            assert_int_equal(reading.damage.truncated_offset, offset_of(whole + 1));
    }
    free(bytes);
}

static void a_finished_recording_that_is_cut_is_truncated(void **state)
{
    (void)state;
    make_ten();
    for (size_t length = file.data_offset; length < file.length; length++) {
        struct sample_file cut = {.bytes = exact_copy(file.bytes, length), .length = length};
        struct sample_reading reading = sample_read(&cut);
        assert_true(reading.damage.truncated);
        assert_int_equal(reading.damage.count, 0);
        free(cut.bytes);
    }
    sample_done(&file);
}

static void a_record_of_impossible_size_is_passed_over(void **state)
{
    (void)state;
    static const uint16_t sizes[] = {0, 1, 7, 8, 9, 16, 64, 100, 65528, 65535};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        make_ten();
        memcpy(file.bytes + offset_of(3) + 6, &sizes[i], sizeof sizes[i]);
        assert_only_third_is_lost();
    }
}

static void a_chain_that_does_not_fit_its_record_is_damage(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 3, 5, 1000, UINT64_MAX};
    for (size_t i = 0; i < COUNT(counts); i++) {
        make_ten();
        memcpy(file.bytes + offset_of(4) - sizeof SAMPLE_CHAIN - 8, &counts[i], 8);
        assert_only_third_is_lost();
    }
}

static void what_was_overwritten_is_passed_over(void **state)
{
    (void)state;
    static const int fillings[] = {0, 0xff, 'x'};
    for (size_t i = 0; i < COUNT(fillings); i++) {
        make_ten();
        memset(file.bytes + offset_of(3), fillings[i], record_bytes);
        assert_only_third_is_lost();
    }
}

static void whatever_bit_flips_the_other_records_are_read(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < record_bytes * 8; bit++) {
        make_ten();
        file.bytes[offset_of(3) + bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct sample_reading reading = sample_read(&file);
        for (uint64_t i = 1; i <= 10; i++)
            assert_true(i == 3 || sample_was_read(&reading, i));
        sample_done(&file);
    }
}

static void a_type_that_nobody_knows_is_skipped_and_counted(void **state)
{
    (void)state;
    make_ten();
    uint32_t type = 45;
    memcpy(file.bytes + offset_of(3), &type, sizeof type);
    struct sample_reading reading = sample_read(&file);
    assert_int_equal(reading.count, 9);
    assert_int_equal(reading.damage.count, 0);
    assert_int_equal(reading.stats.records[45], 1);
    assert_int_equal(reading.stats.skipped, 1);
    sample_done(&file);
}

/* The payload of a hardware trace follows its record. */
static void a_trace_is_skipped_with_its_payload(void **state)
{
    (void)state;
    struct {
        struct perf_event_header header;
        uint64_t size;
        uint64_t rest[4];
        uint8_t payload[24];
    } trace = {.header = {.type = PERFDATA_AUXTRACE, .size = 48}, .size = 24};
    memset(trace.payload, 0xff, sizeof trace.payload);
    sample_begin(&file);
    sample_add_sample(&file, 1);
    perfdata_writer_bytes(file.writer, &trace, sizeof trace);
    sample_add_sample(&file, 2);
    sample_end(&file);
    struct sample_reading reading = sample_read(&file);
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.damage.count, 0);
    assert_int_equal(reading.stats.records[PERFDATA_AUXTRACE], 1);
    sample_done(&file);
}

static void a_damaged_feature_does_not_hide_the_others(void **state)
{
    (void)state;
    sample_begin(&file);
    sample_add_sample(&file, 1);
    sample_end_with(&file, &(struct perfdata_info){.hostname = "host", .arch = "x86_64"});
    uint64_t offset;
    memcpy(&offset, file.bytes + file.data_end, sizeof offset);
    memset(file.bytes + offset, 0xff, 4); /* the length of the host's name */
    struct perfdata_reader *reader = sample_open(&file);
    assert_null(perfdata_info(reader)->hostname);
    assert_string_equal(perfdata_info(reader)->arch, "x86_64");
    assert_int_equal(perfdata_damage(reader)->count, 1);
    assert_int_equal(perfdata_damage(reader)->places[0].offset, offset);
    perfdata_close(reader);
    sample_done(&file);
}

/* Everywhere stands a record that could be one and leads to another, but does not decode. */
static bool read_hostile(void)
{
    enum { BYTES = 8 << 20 };
    uint8_t *bytes = malloc(BYTES);
    if (!bytes)
        return false;
    memcpy(bytes, file.bytes, file.data_offset);
    memset(bytes + SAMPLE_DATA_SIZE_OFFSET, 0, 8);
    struct perf_event_header header = {.type = PERF_RECORD_COMM, .size = 65528};
    for (size_t i = file.data_offset; i + 8 <= BYTES; i += 8)
        memcpy(bytes + i, &header, sizeof header);
    bytes[file.data_offset] = 0xff;
    struct perfdata_reader *reader;
    struct perfdata_record record;
    const char *problem;
    if (perfdata_open_memory("x", bytes, BYTES, &problem, &reader) < 0)
        return false;
    while (perfdata_next(reader, &record) == 1)
        continue;
    perfdata_close(reader);
    free(bytes);
    return true;
}

static void many_claims_on_the_same_bytes_are_read_in_bounded_time(void **state)
{
    (void)state;
    make_ten();
    assert_true(ends_within(20, read_hostile));
    sample_done(&file);
}

int main(void)
{
    make_ten(); /* for record_bytes */
    sample_done(&file);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_killed_recording_is_read_to_its_end),
        cmocka_unit_test(a_recording_that_is_cut_anywhere_is_truncated_not_corrupt),
        cmocka_unit_test(a_finished_recording_that_is_cut_is_truncated),
        cmocka_unit_test(a_record_of_impossible_size_is_passed_over),
        cmocka_unit_test(a_chain_that_does_not_fit_its_record_is_damage),
        cmocka_unit_test(what_was_overwritten_is_passed_over),
        cmocka_unit_test(whatever_bit_flips_the_other_records_are_read),
        cmocka_unit_test(a_type_that_nobody_knows_is_skipped_and_counted),
        cmocka_unit_test(a_trace_is_skipped_with_its_payload),
        cmocka_unit_test(a_damaged_feature_does_not_hide_the_others),
        cmocka_unit_test(many_claims_on_the_same_bytes_are_read_in_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
