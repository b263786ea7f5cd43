/* Recordings copied with records in them, and read again. */
#include "formats/perfdata_splice.h"

#include "failing_malloc.h"
#include "formats/perfdata_encode.h"
#include "perfdata_sample.h"
#include "unit.h"

static struct sample_file file;
static struct perfdata_splice splice;
static struct sample_file copy; /* only bytes and length are used */

static int append(void *context, const void *bytes, size_t length)
{
    struct sample_file *to = context;
    uint8_t *grown = realloc(to->bytes, to->length + length + 1);
    if (!grown)
        return -ENOMEM;
    to->bytes = grown;
    memcpy(grown + to->length, bytes, length);
    to->length += length;
    return 0;
}

static int refuse(void *context, const void *bytes, size_t length)
{
    size_t *left = context;
    (void)bytes;
    if (length > *left)
        return -ENOSPC;
    *left -= length;
    return 0;
}

static void open_splice(void)
{
    assert_int_equal(perfdata_splice_open(&splice, file.bytes, file.length), 0);
}

static void write_copy(const struct perfdata_insertion *insertions, size_t count)
{
    copy = (struct sample_file){0};
    assert_int_equal(
        perfdata_splice_write(&splice, insertions, count, (struct perfdata_sink){append, &copy}),
        0);
    perfdata_splice_done(&splice);
}

static void done(void)
{
    sample_done(&copy);
    sample_done(&file);
}

/* A mapping of that time, as bytes of a record. */
static struct perfdata_insertion mapping_at(uint64_t time_ns, uint64_t offset, uint8_t bytes[256])
{
    struct perfdata_event event = sample_event(0);
    struct writer writer;
    writer_init(&writer, bytes, 256);
    struct perfdata_record record = {
        .type = PERF_RECORD_MMAP2,
        .time_ns = time_ns,
        .pid = SAMPLE_PID,
        .tid = SAMPLE_PID,
        .mmap = {.pid = SAMPLE_PID, .start_avma = 0x1000, .length = 0x1000, .path = "new"}};
    record.mmap.path_length = 3;
    assert_int_equal(perfdata_encode(&writer, &event, &record), 0);
    return (struct perfdata_insertion){.offset = offset, .bytes = bytes, .length = writer.length};
}

/* Times 10 11 | 20 21 | 30, and features behind. */
static void make_rounds(void)
{
    sample_begin(&file);
    sample_add_sample(&file, 11);
    sample_add_sample(&file, 10);
    perfdata_writer_round(file.writer);
    sample_add_sample(&file, 20);
    sample_add_sample(&file, 21);
    perfdata_writer_round(file.writer);
    sample_add_sample(&file, 30);
    sample_end(&file);
}

static void without_insertions_it_is_a_copy(void **state)
{
    (void)state;
    make_rounds();
    open_splice();
    write_copy(NULL, 0);
    assert_int_equal(copy.length, file.length);
    assert_memory_equal(copy.bytes, file.bytes, file.length);
    done();
}

static void records_come_into_their_round_and_features_move(void **state)
{
    (void)state;
    uint8_t bytes[3][256];
    make_rounds();
    open_splice();
    assert_int_equal(splice.rounds.count, 2);
    assert_int_equal(perfdata_splice_round(&splice, file.data_offset), 0);
    assert_int_equal(perfdata_splice_round(&splice, splice.rounds.items[0] + 8), 1);
    assert_int_equal(perfdata_splice_round(&splice, UINT64_MAX), 2);
    struct perfdata_insertion insertions[] = {
        mapping_at(5, perfdata_splice_round_end(&splice, 0), bytes[0]),
        mapping_at(15, perfdata_splice_round_end(&splice, 1), bytes[1]),
        mapping_at(40, perfdata_splice_round_end(&splice, 2), bytes[2])};
    write_copy(insertions, COUNT(insertions));
    struct sample_reading reading = sample_read(&copy);
    static const uint64_t times[] = {5, 10, 11, 15, 20, 21, 30, 40};
    assert_int_equal(reading.count, COUNT(times));
    assert_memory_equal(reading.times, times, sizeof times);
    assert_int_equal(reading.stats.unordered, 0);
    assert_int_equal(reading.damage.count, 0);
    struct perfdata_reader *reader = sample_open(&copy);
    assert_string_equal(perfdata_info(reader)->arch, "x86_64");
    assert_string_equal(perfdata_info(reader)->events[1].name, "second");
    perfdata_close(reader);
    done();
}

static void a_recording_that_was_cut_ends_behind_its_last_whole_record(void **state)
{
    (void)state;
    uint8_t bytes[256];
    make_rounds();
    size_t whole = file.data_end;
    for (size_t length = file.data_offset; length < whole; length++) {
        struct sample_file cut = file;
        cut.bytes = exact_copy(file.bytes, length);
        sample_kill(&cut, length);
        assert_int_equal(perfdata_splice_open(&splice, cut.bytes, length), 0);
        struct perfdata_insertion insertion = mapping_at(50, splice.records_end, bytes);
        write_copy(&insertion, 1);
        struct sample_reading before = sample_read(&cut), after = sample_read(&copy);
        assert_int_equal(after.count, before.count + 1);
        assert_int_equal(after.damage.count, 0);
        assert_false(after.damage.truncated);
        sample_done(&copy);
        sample_done(&cut);
    }
    sample_done(&file);
}

static void put_u64(size_t offset, uint64_t value)
{
    memcpy(file.bytes + offset, &value, sizeof value);
}

static void sizes_that_wrap_around_are_no_way_out(void **state)
{
    (void)state;
    enum { ATTR_BYTES = 16, ATTRS = 24, RECORDS = 40, PRIVATE = 56 };
    static const size_t places[] = {8,           ATTR_BYTES, ATTRS, ATTRS + 8, RECORDS,
                                    RECORDS + 8, PRIVATE,    72,    80};
    static const uint64_t values[] = {
        0,         1, 16, 17, 104, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 7,
        UINT64_MAX};
    uint8_t bytes[256];
    for (size_t place = 0; place < COUNT(places); place++) {
        for (size_t value = 0; value < COUNT(values); value++) {
            make_rounds();
            put_u64(places[place], values[value]);
            uint8_t *exact = exact_copy(file.bytes, file.length);
            int error = perfdata_splice_open(&splice, exact, file.length);
            assert_true(error == 0 || error == -EBADMSG);
            if (!error) {
                assert_true(splice.records <= splice.records_end);
                assert_true(splice.records_end <= splice.tail && splice.tail <= file.length);
                struct perfdata_insertion insertion = mapping_at(50, splice.records_end, bytes);
                write_copy(&insertion, 1);
                sample_done(&copy);
            }
            free(exact);
            sample_done(&file);
        }
    }
}

static void a_record_of_impossible_size_ends_the_rounds_not_the_copy(void **state)
{
    (void)state;
    make_rounds();
    static const uint16_t sizes[] = {0, 7, UINT16_MAX};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        memcpy(file.bytes + file.data_offset + 6, &sizes[i], sizeof sizes[i]);
        open_splice();
        assert_int_equal(splice.rounds.count, 0);
        write_copy(NULL, 0);
        assert_int_equal(copy.length, file.length);
        assert_memory_equal(copy.bytes, file.bytes, file.length);
        sample_done(&copy);
    }
    sample_done(&file);
}

static void a_pipe_stays_a_pipe(void **state)
{
    (void)state;
    uint8_t bytes[256];
    make_rounds();
    /* The header of a pipe, and the records as they are. */
    uint64_t header[2] = {0, 16};
    memcpy(header, file.bytes, 8);
    memmove(file.bytes + 16, file.bytes + file.data_offset, file.data_end - file.data_offset);
    memcpy(file.bytes, header, sizeof header);
    file.length = 16 + file.data_end - file.data_offset;
    open_splice();
    assert_true(splice.is_pipe_mode);
    assert_int_equal(splice.rounds.count, 2);
    struct perfdata_insertion insertion =
        mapping_at(15, perfdata_splice_round_end(&splice, 1), bytes);
    uint64_t where = insertion.offset;
    write_copy(&insertion, 1);
    assert_int_equal(copy.length, file.length + insertion.length);
    assert_memory_equal(copy.bytes, file.bytes, where);
    assert_memory_equal(copy.bytes + where, bytes, insertion.length);
    assert_memory_equal(copy.bytes + where + insertion.length, file.bytes + where,
                        file.length - where);
    done();
}

static void what_is_no_recording_is_refused(void **state)
{
    (void)state;
    static const uint8_t zeros[200];
    for (size_t length = 0; length < 104; length++)
        assert_int_equal(perfdata_splice_open(&splice, zeros, length), -EBADMSG);
    assert_int_equal(perfdata_splice_open(&splice, zeros, sizeof zeros), -EBADMSG);
}

static void a_sink_that_fails_ends_the_copying(void **state)
{
    (void)state;
    make_rounds();
    open_splice();
    for (size_t room = 0; room < file.length; room += 16) {
        size_t left = room;
        assert_int_equal(
            perfdata_splice_write(&splice, NULL, 0, (struct perfdata_sink){refuse, &left}),
            -ENOSPC);
    }
    perfdata_splice_done(&splice);
    sample_done(&file);
}

static void memory_may_run_short(void **state)
{
    (void)state;
    make_rounds();
    for (long n = 0;; n++) {
        size_t room = SIZE_MAX;
        failing_malloc_after(n);
        int error = perfdata_splice_open(&splice, file.bytes, file.length);
        if (!error) {
            error = perfdata_splice_write(&splice, NULL, 0, (struct perfdata_sink){refuse, &room});
            perfdata_splice_done(&splice);
        }
        bool failed = failing_malloc_stop();
        assert_int_equal(error, failed ? -ENOMEM : 0);
        if (!failed)
            break;
    }
    sample_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_insertions_it_is_a_copy),
        cmocka_unit_test(records_come_into_their_round_and_features_move),
        cmocka_unit_test(a_recording_that_was_cut_ends_behind_its_last_whole_record),
        cmocka_unit_test(sizes_that_wrap_around_are_no_way_out),
        cmocka_unit_test(a_record_of_impossible_size_ends_the_rounds_not_the_copy),
        cmocka_unit_test(a_pipe_stays_a_pipe),
        cmocka_unit_test(what_is_no_recording_is_refused),
        cmocka_unit_test(a_sink_that_fails_ends_the_copying),
        cmocka_unit_test(memory_may_run_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
