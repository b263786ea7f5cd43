/* Jitdumps that are cut off, torn, flipped or made to hurt. Whatever happens to one record, the
 * others are read, and the damage is reported where it is. */
#include "formats/jitdump.h"

#include "jitdump_sample.h"
#include "unit.h"

static struct sample sample;

/* Five functions; most tests damage the second one. */
static void make_five(void)
{
    static const char *const names[] = {"py::one:/a.py", "py::two:/a.py", "py::three:/a.py",
                                        "py::four:/a.py", "py::five:/a.py"};
    sample_begin(&sample);
    for (size_t i = 0; i < COUNT(names); i++)
        sample_add_load(&sample, 0x7f0000001000 + i * 0x100, i + 1, names[i]);
}

static struct sample_reading read_sample(void)
{
    return sample_read(sample.bytes, sample.writer.length);
}

static void put_u32(size_t offset, uint32_t value)
{
    memcpy(sample.bytes + offset, &value, sizeof value);
}

static void put_u64(size_t offset, uint64_t value)
{
    memcpy(sample.bytes + offset, &value, sizeof value);
}

/* All five records but the second were read. */
static void assert_others_were_read(const struct sample_reading *reading)
{
    static const size_t others[] = {1, 3, 4, 5};
    for (size_t i = 0; i < COUNT(others); i++)
        assert_true(sample_was_read(reading, others[i]));
    assert_false(reading->truncated);
}

/* The second record, and only it, is reported and passed over. */
static void assert_second_is_corrupt(void)
{
    struct sample_reading reading = read_sample();
    assert_others_were_read(&reading);
    assert_int_equal(reading.count, 4);
    assert_int_equal(reading.bad_count, 1);
    assert_int_equal(reading.bad_offsets[0], sample.offsets[1]);
    assert_int_equal(reading.bad_bytes[0], sample.offsets[2] - sample.offsets[1]);
}

static void assert_not_opened(const void *data, size_t length, int error)
{
    struct jitdump_reader reader;
    assert_int_equal(jitdump_open(&reader, "sample", data, length), error);
    assert_non_null(reader.problem);
}

/* Cuts the sample at every offset: the whole records before the cut are read, the rest is reported
 * as truncated. */
static void check_every_cut(void)
{
    for (size_t length = SAMPLE_HEADER_BYTES; length < sample.writer.length; length++) {
        size_t whole = 0;
        while (sample.offsets[whole + 1] <= length)
            whole++;
        uint8_t *cut = exact_copy(sample.bytes, length);
        struct sample_reading reading = sample_read(cut, length);
        free(cut);
        assert_int_equal(reading.bad_count, 0);
        assert_int_equal(reading.count, whole);
        for (size_t i = 0; i < whole; i++)
            assert_int_equal(reading.records[i].timestamp, (i + 1) * 100);
        assert_int_equal(reading.truncated, sample.offsets[whole] < length);
        if (reading.truncated)
            assert_int_equal(reading.truncated_offset, sample.offsets[whole]);
    }
}

static void what_is_no_jitdump_is_not_opened(void **state)
{
    (void)state;
    assert_not_opened(NULL, 0, -EBADMSG);
    assert_not_opened("7f00 10 name of a perf map, long enough for a header", 50, -EBADMSG);
}

static void a_header_that_is_cut_off_is_not_opened(void **state)
{
    (void)state;
    make_five();
    for (size_t length = 4; length < SAMPLE_HEADER_BYTES; length++) {
        uint8_t *cut = exact_copy(sample.bytes, length);
        assert_not_opened(cut, length, -ENODATA);
        free(cut);
    }
}

static void an_unknown_version_is_not_opened(void **state)
{
    (void)state;
    make_five();
    put_u32(4, 2);
    assert_not_opened(sample.bytes, sample.writer.length, -ENOTSUP);
}

static void a_header_size_that_can_not_be_is_not_opened(void **state)
{
    (void)state;
    make_five();
    put_u32(8, SAMPLE_HEADER_BYTES - 1);
    assert_not_opened(sample.bytes, sample.writer.length, -EBADMSG);
    put_u32(8, (uint32_t)sample.writer.length + 1);
    assert_not_opened(sample.bytes, sample.writer.length, -ENODATA);
}

static void a_file_that_is_cut_anywhere_is_truncated_not_corrupt(void **state)
{
    (void)state;
    sample_make_all_types(&sample);
    check_every_cut();
}

static void a_file_that_is_cut_behind_an_unknown_type_is_truncated_not_corrupt(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "py::one:/a.py");
    sample_add_unknown(&sample, 24);
    sample_add_load(&sample, 0x2000, 2, "py::two:/a.py");
    check_every_cut();
}

static void a_record_of_impossible_size_is_passed_over(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 15, 16, 55, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        make_five();
        put_u32(sample.offsets[1] + 4, sizes[i]);
        assert_second_is_corrupt();
    }
}

static void a_stated_size_of_0_at_the_end_is_corrupt_not_truncated(void **state)
{
    (void)state;
    make_five();
    writer_u64(&sample.writer, JITDUMP_CLOSE);
    writer_u64(&sample.writer, 600);
    struct sample_reading reading = read_sample();
    assert_int_equal(reading.count, 5);
    assert_false(reading.truncated);
    assert_int_equal(reading.bad_count, 1);
    assert_int_equal(reading.bad_offsets[0], sample.offsets[5]);
}

static void whatever_bit_of_a_size_flips_the_other_records_are_read(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 32; bit++) {
        make_five();
        size_t size = sample.offsets[2] - sample.offsets[1];
        put_u32(sample.offsets[1] + 4, (uint32_t)size ^ 1u << bit);
        struct sample_reading reading = read_sample();
        assert_others_were_read(&reading);
        assert_true(reading.bad_count > 0);
        assert_true(reading.bad_offsets[0] >= sample.offsets[1] &&
                    reading.bad_offsets[0] <= sample.offsets[2]);
    }
}

static void whatever_other_bit_flips_the_other_records_are_read(void **state)
{
    (void)state;
    make_five();
    size_t size = sample.offsets[2] - sample.offsets[1];
    for (size_t bit = 0; bit < size * 8; bit++) {
        if (bit >= 4 * 8 && bit < 8 * 8)
            continue; /* the size */
        make_five();
        sample.bytes[sample.offsets[1] + bit / 8] ^= (uint8_t)(1u << bit % 8);
        struct sample_reading reading = read_sample();
        assert_others_were_read(&reading);
    }
}

static void a_load_under_the_type_of_another_record_is_corrupt(void **state)
{
    (void)state;
    static const uint32_t types[] = {JITDUMP_MOVE, JITDUMP_DEBUG_INFO, JITDUMP_CLOSE,
                                     JITDUMP_UNWINDING_INFO};
    for (size_t i = 0; i < COUNT(types); i++) {
        make_five();
        put_u32(sample.offsets[1], types[i]);
        assert_second_is_corrupt();
    }
}

static void a_name_without_end_is_corrupt(void **state)
{
    (void)state;
    make_five();
    size_t nul = sample.offsets[1] + 56 + strlen("py::two:/a.py");
    assert_int_equal(sample.bytes[nul], 0);
    sample.bytes[nul] = '!';
    assert_second_is_corrupt();
}

static void a_code_size_that_contradicts_the_record_is_corrupt(void **state)
{
    (void)state;
    make_five();
    put_u64(sample.offsets[1] + 40, sizeof SAMPLE_CODE + 1);
    assert_second_is_corrupt();
}

static void code_beyond_the_address_space_is_corrupt(void **state)
{
    (void)state;
    make_five();
    put_u64(sample.offsets[1] + 32, UINT64_MAX - 1);
    assert_second_is_corrupt();
}

static void a_move_beyond_the_address_space_is_corrupt(void **state)
{
    (void)state;
    for (size_t field = 32; field <= 40; field += 8) { /* the old address, then the new one */
        sample_begin(&sample);
        sample_add_move(&sample, 0x1000, 0x2000, 1);
        put_u64(sample.offsets[0] + field, UINT64_MAX - 1);
        sample_add_load(&sample, 0x3000, 1, "behind");
        struct sample_reading reading = read_sample();
        assert_int_equal(reading.bad_count, 1);
        assert_int_equal(reading.count, 1);
        assert_true(sample_was_read(&reading, 2));
    }
}

static void more_lines_than_there_are_is_corrupt(void **state)
{
    (void)state;
    static const uint64_t counts[] = {3, 1000, UINT64_MAX};
    for (size_t i = 0; i < COUNT(counts); i++) {
        sample_begin(&sample);
        sample_add_debug_info(&sample, 0x1000, "/app/a.py");
        put_u64(sample.offsets[0] + 24, counts[i]);
        sample_add_load(&sample, 0x1000, 1, "behind");
        struct sample_reading reading = read_sample();
        assert_int_equal(reading.bad_count, 1);
        assert_int_equal(reading.bad_offsets[0], sample.offsets[0]);
        assert_true(sample_was_read(&reading, 2));
    }
}

static void unwinding_data_smaller_than_its_parts_is_corrupt(void **state)
{
    (void)state;
    static const struct {
        size_t field;
        uint64_t value;
    } wrong[] = {{16, 1000}, {16, UINT64_MAX}, {24, 28}, {24, UINT64_MAX}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        sample_begin(&sample);
        sample_add_unwinding_info(&sample);
        put_u64(sample.offsets[0] + wrong[i].field, wrong[i].value);
        sample_add_load(&sample, 0x1000, 1, "behind");
        struct sample_reading reading = read_sample();
        assert_int_equal(reading.bad_count, 1);
        assert_int_equal(reading.bad_offsets[0], sample.offsets[0]);
        assert_true(sample_was_read(&reading, 2));
    }
}

/* A forked child flushes its copy of a half-filled buffer: a part of the second record, and the
 * next ones behind it. */
static void wherever_a_record_is_torn_the_next_ones_are_read(void **state)
{
    (void)state;
    make_five();
    size_t size = sample.offsets[2] - sample.offsets[1];
    for (size_t kept = 1; kept < size; kept++) {
        make_five();
        memmove(sample.bytes + sample.offsets[1] + kept, sample.bytes + sample.offsets[2],
                sample.writer.length - sample.offsets[2]);
        struct sample_reading reading =
            sample_read(sample.bytes, sample.writer.length - size + kept);
        assert_others_were_read(&reading);
        assert_true(reading.bad_count > 0);
        assert_true(reading.bad_offsets[0] >= sample.offsets[1] &&
                    reading.bad_offsets[0] <= sample.offsets[1] + kept);
    }
}

static void what_stands_between_records_is_passed_over(void **state)
{
    (void)state;
    static const char *const litter[] = {"x", "some text", "\xff\xff\xff\xff\xff\xff\xff\xff",
                                         "a text that is longer than the prefix of a record"};
    for (size_t i = 0; i < COUNT(litter); i++) {
        sample_begin(&sample);
        sample_add_load(&sample, 0x1000, 1, "py::one:/a.py");
        size_t offset = sample.writer.length;
        writer_bytes(&sample.writer, litter[i], strlen(litter[i]));
        sample_add_load(&sample, 0x2000, 2, "py::two:/a.py");
        struct sample_reading reading = read_sample();
        assert_int_equal(reading.count, 2);
        assert_int_equal(reading.bad_count, 1);
        assert_int_equal(reading.bad_offsets[0], offset);
        assert_int_equal(reading.bad_bytes[0], strlen(litter[i]));
    }
}

/* A large file, for work that must not grow with the square of its length. */
enum { HOSTILE_BYTES = 9 << 20 };
static uint8_t hostile[HOSTILE_BYTES];

static struct writer begin_hostile(void)
{
    struct writer writer;
    writer_init(&writer, hostile, sizeof hostile);
    jitdump_encode_header(&writer, &(struct jitdump_header){.pid = SAMPLE_PID});
    return writer;
}

static void write_prefix(struct writer *writer, uint32_t type, size_t size)
{
    writer_u32(writer, type);
    writer_u32(writer, (uint32_t)size);
    writer_u64(writer, UINT64_MAX);
}

static bool read_hostile(void)
{
    struct jitdump_reader reader;
    struct jitdump_record record;
    if (jitdump_open(&reader, "hostile", hostile, sizeof hostile) < 0)
        return false;
    while (jitdump_next(&reader, &record) != 0)
        continue;
    return reader.cursor.offset == sizeof hostile;
}

/* At every eighth byte stands a DEBUG_INFO that claims most of the file. */
static void many_claims_on_the_same_bytes_are_read_in_bounded_time(void **state)
{
    (void)state;
    struct writer writer = begin_hostile();
    while (writer.length < sizeof hostile) {
        writer_u32(&writer, JITDUMP_DEBUG_INFO);
        writer_u32(&writer, HOSTILE_BYTES / 2);
    }
    assert_true(ends_within(20, read_hostile));
}

/* Many records of unknown type lead to one and the same long DEBUG_INFO, which turns out to be
 * wrong at its very end; behind each stands a plausible LOAD. */
static void many_ways_to_the_same_record_are_read_in_bounded_time(void **state)
{
    (void)state;
    enum { WAYS = 4000, LOAD_BYTES = 144, TARGET = 40 + WAYS * (16 + LOAD_BYTES) };
    struct jitdump_load load =
        sample_load(0x1000, 1, "a name that makes the record 144 bytes long with its co");
    struct writer writer = begin_hostile();
    for (size_t i = 0; i < WAYS; i++) {
        write_prefix(&writer, 77, TARGET - writer.length);
        jitdump_encode_load(&writer, UINT64_MAX, &load);
    }
    assert_int_equal(writer.length, TARGET);
    write_prefix(&writer, JITDUMP_DEBUG_INFO, sizeof hostile - writer.length);
    writer_u64(&writer, 0x1000);
    writer_u64(&writer, UINT64_MAX);
    memset(hostile + writer.length, 0, sizeof hostile - writer.length);
    assert_true(ends_within(20, read_hostile));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_jitdump_is_not_opened),
        cmocka_unit_test(a_header_that_is_cut_off_is_not_opened),
        cmocka_unit_test(an_unknown_version_is_not_opened),
        cmocka_unit_test(a_header_size_that_can_not_be_is_not_opened),
        cmocka_unit_test(a_file_that_is_cut_anywhere_is_truncated_not_corrupt),
        cmocka_unit_test(a_file_that_is_cut_behind_an_unknown_type_is_truncated_not_corrupt),
        cmocka_unit_test(a_record_of_impossible_size_is_passed_over),
        cmocka_unit_test(a_stated_size_of_0_at_the_end_is_corrupt_not_truncated),
        cmocka_unit_test(whatever_bit_of_a_size_flips_the_other_records_are_read),
        cmocka_unit_test(whatever_other_bit_flips_the_other_records_are_read),
        cmocka_unit_test(a_load_under_the_type_of_another_record_is_corrupt),
        cmocka_unit_test(a_name_without_end_is_corrupt),
        cmocka_unit_test(a_code_size_that_contradicts_the_record_is_corrupt),
        cmocka_unit_test(code_beyond_the_address_space_is_corrupt),
        cmocka_unit_test(a_move_beyond_the_address_space_is_corrupt),
        cmocka_unit_test(more_lines_than_there_are_is_corrupt),
        cmocka_unit_test(unwinding_data_smaller_than_its_parts_is_corrupt),
        cmocka_unit_test(wherever_a_record_is_torn_the_next_ones_are_read),
        cmocka_unit_test(what_stands_between_records_is_passed_over),
        cmocka_unit_test(many_claims_on_the_same_bytes_are_read_in_bounded_time),
        cmocka_unit_test(many_ways_to_the_same_record_are_read_in_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
