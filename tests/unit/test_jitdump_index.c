#include "formats/jitdump_index.h"

#include "failing_malloc.h"
#include "jitdump_sample.h"
#include "unit.h"

static struct sample sample;

/* The index of the test that runs. */
static struct jitdump_index index_of_dump;

static int release(void **state)
{
    (void)state;
    jitdump_index_done(&index_of_dump);
    return 0;
}

static int read_bytes(const void *data, size_t length, const char **ret_problem)
{
    jitdump_index_done(&index_of_dump);
    return jitdump_index_init(&index_of_dump, "dump", data, length, ret_problem);
}

static void read_sample(void)
{
    const char *problem;
    assert_int_equal(read_bytes(sample.bytes, sample.writer.length, &problem), 0);
}

/* The name of the code at an address at a time, or "". */
static const char *name_at(uint64_t avma, uint64_t timestamp)
{
    const struct jitdump_placement *found = jitdump_index_find(&index_of_dump, avma, timestamp);
    return found ? jitdump_index_code(&index_of_dump, found)->load.name : "";
}

static void code_is_found_by_its_addresses(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    read_sample();
    assert_string_equal(name_at(0xfff, UINT64_MAX), "");
    assert_string_equal(name_at(0x1000, UINT64_MAX), "one");
    assert_string_equal(name_at(0x1000 + sizeof SAMPLE_CODE - 1, UINT64_MAX), "one");
    assert_string_equal(name_at(0x1000 + sizeof SAMPLE_CODE, UINT64_MAX), "");
    assert_string_equal(name_at(0x2000, UINT64_MAX), "two");
    assert_ptr_equal(jitdump_index_find(&index_of_dump, 0x2000, UINT64_MAX),
                     &index_of_dump.placements.items[1]);
    assert_int_equal(index_of_dump.codes.items[1].offset, sample.offsets[1]);
    assert_int_equal(index_of_dump.codes.items[1].timestamp, 200);
}

static void memory_that_is_used_again_is_told_apart_by_time(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "first");
    sample_add_load(&sample, 0x1010, 2, "second");
    sample_add_load(&sample, 0x1000, 3, "third");
    read_sample();
    assert_string_equal(name_at(0x1010, 99), "");
    assert_string_equal(name_at(0x1010, 150), "first");
    assert_string_equal(name_at(0x1010, 250), "second");
    assert_string_equal(name_at(0x1000, 250), "first");
    assert_string_equal(name_at(0x1010, 350), "third");
    assert_string_equal(name_at(0x1028, 350), "second");
}

static void moved_code_is_found_at_its_new_place_from_then_on(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    sample_add_move(&sample, 0x1000, 0x3000, 1);
    read_sample();
    assert_string_equal(name_at(0x1000, 299), "one");
    assert_string_equal(name_at(0x3000, 299), "");
    assert_string_equal(name_at(0x1000, 301), "");
    assert_string_equal(name_at(0x3000, 301), "one");
    assert_string_equal(name_at(0x2000, 301), "two");
    assert_int_equal(index_of_dump.lost_moves, 0);
}

static void code_may_move_by_less_than_its_size(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_move(&sample, 0x1000, 0x1010, 1);
    read_sample();
    assert_string_equal(name_at(0x100f, 250), "");
    assert_string_equal(name_at(0x1010, 250), "one");
    assert_string_equal(name_at(0x1010 + sizeof SAMPLE_CODE - 1, 250), "one");
}

static void code_may_move_more_than_once(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_move(&sample, 0x1000, 0x2000, 1);
    sample_add_move(&sample, 0x2000, 0x1000, 1);
    read_sample();
    assert_string_equal(name_at(0x2000, 250), "one");
    assert_string_equal(name_at(0x2000, 350), "");
    assert_string_equal(name_at(0x1000, 350), "one");
}

static void of_loads_with_one_code_index_the_newest_moves(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 7, "older");
    sample_add_load(&sample, 0x2000, 7, "newer");
    sample_add_move(&sample, 0x2000, 0x3000, 7);
    read_sample();
    assert_string_equal(name_at(0x3000, UINT64_MAX), "newer");
    assert_string_equal(name_at(0x1000, UINT64_MAX), "older");
}

static void a_move_of_unknown_code_is_counted_as_lost(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_move(&sample, 0x1000, 0x3000, 2);
    read_sample();
    assert_int_equal(index_of_dump.lost_moves, 1);
    assert_string_equal(name_at(0x1000, UINT64_MAX), "one");
    assert_string_equal(name_at(0x3000, UINT64_MAX), "");
}

static void code_of_size_0_covers_nothing(void **state)
{
    (void)state;
    struct jitdump_load load = sample_load(0x1000, 1, "empty");
    load.code_size = 0;
    sample_begin(&sample);
    jitdump_encode_load(&sample.writer, 100, &load);
    sample_note(&sample);
    read_sample();
    assert_int_equal(index_of_dump.codes.count, 1);
    assert_string_equal(name_at(0x1000, UINT64_MAX), "");
}

static void debug_info_belongs_to_the_next_load_at_its_address(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_debug_info(&sample, 0x2000, "/app/two.py");
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    sample_add_load(&sample, 0x2000, 3, "three");
    read_sample();
    assert_int_equal(index_of_dump.codes.items[0].debug.count, 0);
    assert_int_equal(index_of_dump.codes.items[2].debug.count, 0);
    struct jitdump_debug_info debug = index_of_dump.codes.items[1].debug;
    struct jitdump_line line;
    assert_int_equal(debug.count, 2);
    assert_int_equal(jitdump_next_line(&debug, &line), 1);
    assert_string_equal(line.file, "/app/two.py");
    assert_int_equal(line.line, 10);
}

static void debug_info_waits_while_another_address_gets_its_own(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_debug_info(&sample, 0x1000, "/app/one.py");
    sample_add_debug_info(&sample, 0x2000, "/app/two.py");
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    read_sample();
    assert_int_equal(index_of_dump.codes.items[0].debug.count, 2);
    assert_int_equal(index_of_dump.codes.items[1].debug.count, 2);
}

static void unwinding_info_belongs_to_the_next_load(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_unwinding_info(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    read_sample();
    assert_int_equal(index_of_dump.codes.items[0].unwinding.size, 27);
    assert_int_equal(index_of_dump.codes.items[0].unwinding.eh_frame_hdr_size, 12);
    assert_int_equal(index_of_dump.codes.items[1].unwinding.size, 0);
}

static void records_are_counted_by_type(void **state)
{
    (void)state;
    sample_make_all_types(&sample);
    sample_add_unknown(&sample, 8);
    read_sample();
    assert_int_equal(index_of_dump.records[JITDUMP_LOAD], 2);
    assert_int_equal(index_of_dump.records[JITDUMP_MOVE], 1);
    assert_int_equal(index_of_dump.records[JITDUMP_DEBUG_INFO], 1);
    assert_int_equal(index_of_dump.records[JITDUMP_CLOSE], 1);
    assert_int_equal(index_of_dump.records[JITDUMP_UNWINDING_INFO], 1);
    assert_int_equal(index_of_dump.unknown_records, 1);
    assert_int_equal(index_of_dump.header.pid, SAMPLE_PID);
    assert_false(index_of_dump.swapped);
}

/* One CLOSE record for each time stamp. */
static void read_stamps(const uint64_t *stamps, size_t count)
{
    sample_begin(&sample);
    for (size_t i = 0; i < count; i++)
        jitdump_encode_close(&sample.writer, stamps[i]);
    read_sample();
}

static void the_first_and_last_time_are_those_of_all_records(void **state)
{
    (void)state;
    read_stamps((const uint64_t[]){70, 30, 90, 50}, 4);
    assert_int_equal(index_of_dump.first_timestamp, 30);
    assert_int_equal(index_of_dump.last_timestamp, 90);
    read_stamps(NULL, 0);
    assert_int_equal(index_of_dump.first_timestamp, 0);
    assert_int_equal(index_of_dump.last_timestamp, 0);
}

static void the_first_time_may_be_0(void **state)
{
    (void)state;
    read_stamps((const uint64_t[]){0, 30}, 2);
    assert_int_equal(index_of_dump.first_timestamp, 0);
    assert_int_equal(index_of_dump.last_timestamp, 30);
}

static void damage_is_noted_with_its_place(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    sample_add_load(&sample, 0x3000, 3, "three");
    memcpy(sample.bytes + sample.offsets[1] + 4, &(uint32_t){0xffffffff}, 4);
    read_sample();
    const struct damage *damage = &index_of_dump.damage;
    assert_int_equal(damage->count, 1);
    assert_int_equal(damage->bytes, sample.offsets[2] - sample.offsets[1]);
    assert_int_equal(damage->places[0].offset, sample.offsets[1]);
    assert_int_equal(damage->places[0].bytes, damage->bytes);
    assert_int_equal(damage->places[0].line, 0);
    assert_non_null(damage->places[0].problem);
    assert_false(damage->truncated);
    assert_string_equal(name_at(0x1000, UINT64_MAX), "one");
    assert_string_equal(name_at(0x2000, UINT64_MAX), "");
    assert_string_equal(name_at(0x3000, UINT64_MAX), "three");
}

static void a_last_record_that_is_cut_off_is_noted(void **state)
{
    (void)state;
    const char *problem;
    sample_begin(&sample);
    sample_add_load(&sample, 0x1000, 1, "one");
    sample_add_load(&sample, 0x2000, 2, "two");
    assert_int_equal(read_bytes(sample.bytes, sample.writer.length - 1, &problem), 0);
    assert_true(index_of_dump.damage.truncated);
    assert_int_equal(index_of_dump.damage.truncated_offset, sample.offsets[1]);
    assert_int_equal(index_of_dump.damage.count, 0);
    assert_string_equal(name_at(0x1000, UINT64_MAX), "one");
    assert_string_equal(name_at(0x2000, UINT64_MAX), "");
}

static void what_is_no_jitdump_is_refused_with_a_reason(void **state)
{
    (void)state;
    const char *problem = NULL;
    assert_int_equal(read_bytes("something else", 14, &problem), -EBADMSG);
    assert_non_null(problem);
    assert_int_equal(index_of_dump.codes.count, 0);
}

static void shortage_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    sample_make_all_types(&sample);
    for (uint64_t i = 0; i < 20; i++)
        sample_add_load(&sample, 0x1000 + i * 4, i, "overlapping");
    long shortages = 0;
    for (bool done = false; !done; shortages += !done) {
        const char *problem = NULL;
        failing_malloc_after(shortages);
        int result = read_bytes(sample.bytes, sample.writer.length, &problem);
        done = !failing_malloc_stop();
        assert_int_equal(result, done ? 0 : -ENOMEM);
        assert_true(done || problem);
    }
    assert_true(shortages > 6);
    assert_int_equal(index_of_dump.codes.count, 22);
}

/* Every LOAD has the same code index, as writers have it that do not care for moves; then every
 * MOVE asks for it. */
static bool read_one_code_index(void)
{
    enum { LOADS = 150000, MOVES = 50000, LOAD_BYTES = 60, MOVE_BYTES = 64 };
    size_t capacity = SAMPLE_HEADER_BYTES + LOADS * LOAD_BYTES + MOVES * MOVE_BYTES;
    uint8_t *bytes = malloc(capacity);
    struct jitdump_load load = sample_load(0, 0, "abc");
    struct jitdump_move move = sample_move(0, 0x1000, 0);
    struct writer writer;
    const char *problem;
    load.code = NULL;
    writer_init(&writer, bytes, capacity);
    jitdump_encode_header(&writer, &(struct jitdump_header){.pid = SAMPLE_PID});
    for (load.code_avma = 0; load.code_avma < LOADS * 64ull; load.code_avma += 64)
        jitdump_encode_load(&writer, 1, &load);
    for (size_t i = 0; i < MOVES; i++)
        jitdump_encode_move(&writer, 2, &move);
    return bytes && writer_fits(&writer) && !read_bytes(bytes, writer.length, &problem) &&
           index_of_dump.codes.count == LOADS && index_of_dump.lost_moves == 0;
}

static void many_loads_with_one_code_index_are_read_in_bounded_time(void **state)
{
    (void)state;
    assert_true(ends_within(10, read_one_code_index));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_found_by_its_addresses),
        cmocka_unit_test(memory_that_is_used_again_is_told_apart_by_time),
        cmocka_unit_test(moved_code_is_found_at_its_new_place_from_then_on),
        cmocka_unit_test(code_may_move_by_less_than_its_size),
        cmocka_unit_test(code_may_move_more_than_once),
        cmocka_unit_test(of_loads_with_one_code_index_the_newest_moves),
        cmocka_unit_test(a_move_of_unknown_code_is_counted_as_lost),
        cmocka_unit_test(code_of_size_0_covers_nothing),
        cmocka_unit_test(debug_info_belongs_to_the_next_load_at_its_address),
        cmocka_unit_test(debug_info_waits_while_another_address_gets_its_own),
        cmocka_unit_test(unwinding_info_belongs_to_the_next_load),
        cmocka_unit_test(records_are_counted_by_type),
        cmocka_unit_test(the_first_and_last_time_are_those_of_all_records),
        cmocka_unit_test(the_first_time_may_be_0),
        cmocka_unit_test(damage_is_noted_with_its_place),
        cmocka_unit_test(a_last_record_that_is_cut_off_is_noted),
        cmocka_unit_test(what_is_no_jitdump_is_refused_with_a_reason),
        cmocka_unit_test(shortage_is_reported_and_leaks_nothing),
        cmocka_unit_test(many_loads_with_one_code_index_are_read_in_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
