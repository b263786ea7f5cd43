#include "formats/perfmap.h"

#include "unit.h"

#include <errno.h>
#include <stdio.h>

/* What a reader said about a whole file. */
struct reading {
    struct perfmap_entry entries[16];
    size_t count;
    struct {
        int result;
        size_t line, offset;
        const char *problem;
    } bad[16];
    size_t bad_count;
};

static struct reading read_all(const char *data, size_t length)
{
    struct reading reading = {0};
    struct perfmap_reader reader;
    struct perfmap_entry entry;
    int result;
    perfmap_reader_init(&reader, "map", data, length);
    while ((result = perfmap_next(&reader, &entry)) != 0) {
        assert_true(cursor_ok(&reader.cursor));
        if (result == 1) {
            assert_true(reading.count < COUNT(reading.entries));
            reading.entries[reading.count++] = entry;
            continue;
        }
        assert_true(reading.bad_count < COUNT(reading.bad));
        reading.bad[reading.bad_count].result = result;
        reading.bad[reading.bad_count].line = reader.line;
        reading.bad[reading.bad_count].offset = reader.line_offset;
        reading.bad[reading.bad_count++].problem = reader.problem;
    }
    assert_int_equal(perfmap_next(&reader, &entry), 0);
    return reading;
}

#define READ(literal) read_all(literal, sizeof(literal) - 1)

#define assert_entry(entry, expected_start, expected_size, expected_name)                          \
    do {                                                                                           \
        assert_int_equal((entry).start, (expected_start));                                         \
        assert_int_equal((entry).size, (expected_size));                                           \
        assert_bytes((entry).name, (entry).name_length, expected_name);                            \
    } while (0)

/* The file is one entry and nothing else. */
#define assert_reads(literal, start, size, name)                                                   \
    do {                                                                                           \
        struct reading assert_reading = READ(literal);                                             \
        assert_int_equal(assert_reading.count, 1);                                                 \
        assert_int_equal(assert_reading.bad_count, 0);                                             \
        assert_entry(assert_reading.entries[0], start, size, name);                                \
    } while (0)

/* The line is malformed, and the good line behind it is read. */
static void assert_malformed(const char *line)
{
    char file[256];
    int length = snprintf(file, sizeof file, "1 1 a\n%s\n2 2 b\n", line);
    struct reading reading = read_all(file, (size_t)length);
    assert_int_equal(reading.count, 2);
    assert_entry(reading.entries[1], 2, 2, "b");
    assert_int_equal(reading.bad_count, 1);
    assert_int_equal(reading.bad[0].result, -EBADMSG);
    assert_int_equal(reading.bad[0].line, 2);
    assert_int_equal(reading.bad[0].offset, 6);
    assert_non_null(reading.bad[0].problem);
}

/* The last line, without a newline, gives this result. */
static void assert_last_line(const char *line, int result)
{
    char file[256];
    int length = snprintf(file, sizeof file, "1 1 a\n%s", line);
    uint8_t *exact = exact_copy(file, (size_t)length);
    struct reading reading = read_all((const char *)exact, (size_t)length);
    free(exact);
    assert_int_equal(reading.count, 1);
    assert_int_equal(reading.bad_count, 1);
    assert_int_equal(reading.bad[0].result, result);
    assert_int_equal(reading.bad[0].line, 2);
    assert_int_equal(reading.bad[0].offset, 6);
    assert_non_null(reading.bad[0].problem);
}

static void a_line_is_an_entry(void **state)
{
    (void)state;
    assert_reads("7f3ff1a75000 b py::foo:/a.py\n", 0x7f3ff1a75000, 0xb, "py::foo:/a.py");
    assert_false(READ("1 2 a\n").entries[0].unfinished);
}

static void numbers_may_start_with_0x_and_be_upper_case(void **state)
{
    (void)state;
    assert_reads("0x7FaB 0XC name\n", 0x7fab, 0xc, "name");
}

static void numbers_may_have_leading_zeros(void **state)
{
    (void)state;
    assert_reads("0000000000000000000000ffffffffffffff00 00000000000000000010 n\n",
                 0xffffffffffffff00, 0x10, "n");
}

static void names_may_contain_blanks(void **state)
{
    (void)state;
    assert_reads("10 20  a  b\tc \n", 0x10, 0x20, " a  b\tc ");
}

static void names_may_contain_any_byte(void **state)
{
    (void)state;
    assert_reads("10 20 a\0\xff\rb\n", 0x10, 0x20, "a\0\xff\rb");
}

static void numbers_may_be_followed_by_tabs(void **state)
{
    (void)state;
    assert_reads("10\t20\tname\n", 0x10, 0x20, "name");
}

static void blanks_before_the_line_are_dropped(void **state)
{
    (void)state;
    assert_reads(" \t10 20 name\n", 0x10, 0x20, "name");
}

static void a_carriage_return_before_the_newline_is_dropped(void **state)
{
    (void)state;
    assert_reads("\r\n10 20 name\r\n", 0x10, 0x20, "name");
}

static void no_data_has_no_entries(void **state)
{
    (void)state;
    struct reading reading = read_all(NULL, 0);
    assert_int_equal(reading.count + reading.bad_count, 0);
}

static void empty_lines_are_passed_over_but_counted(void **state)
{
    (void)state;
    struct reading reading = READ("\n \n\r\n1 1 a\n\nbad\n\n");
    assert_int_equal(reading.count, 1);
    assert_int_equal(reading.bad_count, 1);
    assert_int_equal(reading.bad[0].line, 6);
    assert_int_equal(reading.bad[0].offset, 12);
}

static void entries_come_in_the_order_of_the_file(void **state)
{
    (void)state;
    struct reading reading = READ("30 1 c\n10 1 a\n20 1 b\n");
    assert_int_equal(reading.count, 3);
    assert_entry(reading.entries[0], 0x30, 1, "c");
    assert_entry(reading.entries[1], 0x10, 1, "a");
    assert_entry(reading.entries[2], 0x20, 1, "b");
}

static void an_entry_may_have_size_0(void **state)
{
    (void)state;
    assert_reads("10 0 name\n", 0x10, 0, "name");
}

static void a_range_may_reach_to_the_end_of_the_address_space(void **state)
{
    (void)state;
    assert_reads("ffffffffffffff00 ff name\n", 0xffffffffffffff00, 0xff, "name");
}

static void malformed_lines_are_reported_with_their_place(void **state)
{
    (void)state;
    assert_malformed("hello world and more");
    assert_malformed("10");
    assert_malformed("10 ");
    assert_malformed("10 20");
    assert_malformed("10 20 ");
    assert_malformed("10 20 \r");
    assert_malformed("0x 20 name");
    assert_malformed("10 0x name");
    assert_malformed("10  20 name");
    assert_malformed("-10 20 name");
    assert_malformed("10g 20 name");
    assert_malformed("10 20g name");
}

static void numbers_of_more_than_64_bits_are_malformed(void **state)
{
    (void)state;
    assert_malformed("10000000000000000 1 name");
    assert_malformed("1 10000000000000000 name");
}

static void a_range_beyond_the_address_space_is_malformed(void **state)
{
    (void)state;
    assert_malformed("ffffffffffffffff 1 name");
    assert_malformed("1 ffffffffffffffff name");
}

static void every_malformed_line_is_reported(void **state)
{
    (void)state;
    struct reading reading = READ("x\n1 1 a\ny\nz\n2 2 b\n");
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.bad_count, 3);
    assert_int_equal(reading.bad[2].line, 4);
    assert_int_equal(reading.bad[2].offset, 10);
}

static void a_last_line_without_newline_is_an_unfinished_entry(void **state)
{
    (void)state;
    uint8_t *exact = exact_copy("1 1 a\n2 2 nam", 13);
    struct reading reading = read_all((const char *)exact, 13);
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.bad_count, 0);
    assert_false(reading.entries[0].unfinished);
    assert_true(reading.entries[1].unfinished);
    assert_entry(reading.entries[1], 2, 2, "nam");
    free(exact);
}

static void a_last_line_that_stops_before_its_name_is_cut_off(void **state)
{
    (void)state;
    const char line[] = "0x7f00 0x20 n";
    for (size_t length = 1; length < strlen("0x7f00 0x20 n"); length++) {
        char cut[sizeof line];
        snprintf(cut, sizeof cut, "%.*s", (int)length, line);
        assert_last_line(cut, -ENODATA);
    }
}

static void a_last_line_that_could_not_become_an_entry_is_malformed(void **state)
{
    (void)state;
    assert_last_line("hello world", -EBADMSG);
    assert_last_line("10 size name", -EBADMSG);
    assert_last_line("ffffffffffffffff 1 name", -EBADMSG);
}

static size_t encode(char *bytes, size_t capacity, uint64_t start, uint64_t size, const char *name,
                     size_t name_length)
{
    struct writer writer;
    writer_init(&writer, bytes, capacity);
    perfmap_encode(&writer, &(struct perfmap_entry){.start = start,
                                                    .size = size,
                                                    .name = name,
                                                    .name_length = name_length,
                                                    .unfinished = true});
    return writer.length;
}

static void an_entry_is_encoded_as_one_line(void **state)
{
    (void)state;
    char line[64];
    size_t length = encode(line, sizeof line, 0x7F00ABCD, 0x1f, "py::f g:a.py", 12);
    assert_bytes(line, length, "7f00abcd 1f py::f g:a.py\n");
}

static void bytes_that_would_end_the_name_are_escaped(void **state)
{
    (void)state;
    char line[64];
    size_t length = encode(line, sizeof line, 0, 0, "\na\rb\0\0c\r", 8);
    assert_bytes(line, length, "0 0 \\na\\rb\\0\\0c\\r\n");
}

static void what_does_not_fit_is_measured(void **state)
{
    (void)state;
    assert_int_equal(encode(NULL, 0, 0x10, 0x20, "a\nb", 3), strlen("10 20 a\\nb\n"));
}

static void what_was_encoded_can_be_decoded(void **state)
{
    (void)state;
    static const uint64_t numbers[] = {0, 1, 0xb, 0x7f3ff1a75000, UINT64_MAX / 2};
    for (size_t i = 0; i < COUNT(numbers) * COUNT(numbers); i++) {
        uint64_t start = numbers[i / COUNT(numbers)], size = numbers[i % COUNT(numbers)];
        char line[128];
        size_t length = encode(line, sizeof line, start, size, " na me\t\xff ", 9);
        struct reading reading = read_all(line, length);
        assert_int_equal(reading.count, 1);
        assert_entry(reading.entries[0], start, size, " na me\t\xff ");
        assert_false(reading.entries[0].unfinished);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_an_entry),
        cmocka_unit_test(numbers_may_start_with_0x_and_be_upper_case),
        cmocka_unit_test(numbers_may_have_leading_zeros),
        cmocka_unit_test(names_may_contain_blanks),
        cmocka_unit_test(names_may_contain_any_byte),
        cmocka_unit_test(numbers_may_be_followed_by_tabs),
        cmocka_unit_test(blanks_before_the_line_are_dropped),
        cmocka_unit_test(a_carriage_return_before_the_newline_is_dropped),
        cmocka_unit_test(no_data_has_no_entries),
        cmocka_unit_test(empty_lines_are_passed_over_but_counted),
        cmocka_unit_test(entries_come_in_the_order_of_the_file),
        cmocka_unit_test(an_entry_may_have_size_0),
        cmocka_unit_test(a_range_may_reach_to_the_end_of_the_address_space),
        cmocka_unit_test(malformed_lines_are_reported_with_their_place),
        cmocka_unit_test(numbers_of_more_than_64_bits_are_malformed),
        cmocka_unit_test(a_range_beyond_the_address_space_is_malformed),
        cmocka_unit_test(every_malformed_line_is_reported),
        cmocka_unit_test(a_last_line_without_newline_is_an_unfinished_entry),
        cmocka_unit_test(a_last_line_that_stops_before_its_name_is_cut_off),
        cmocka_unit_test(a_last_line_that_could_not_become_an_entry_is_malformed),
        cmocka_unit_test(an_entry_is_encoded_as_one_line),
        cmocka_unit_test(bytes_that_would_end_the_name_are_escaped),
        cmocka_unit_test(what_does_not_fit_is_measured),
        cmocka_unit_test(what_was_encoded_can_be_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
