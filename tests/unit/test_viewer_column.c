#include "export/viewer_column.h"

#include "unit.h"

static char *written;
static size_t written_length;

static struct viewer_column column_of(const uint64_t *values, size_t count)
{
    struct viewer_column column = {.name = "test",
                                   .first = values,
                                   .stride_bytes = sizeof *values,
                                   .width_bytes = sizeof *values,
                                   .count = count};
    viewer_column_choose(&column);
    return column;
}

static void write_as(const struct viewer_column *column)
{
    free(written);
    FILE *out = open_memstream(&written, &written_length);
    assert_non_null(out);
    viewer_column_write(column, out);
    assert_int_equal(fclose(out), 0);
}

static void write_column(const struct viewer_column *column)
{
    write_as(column);
    assert_int_equal(written_length, column->bytes);
}

#define VALUES(...) (const uint64_t[]){__VA_ARGS__}, sizeof((uint64_t[]){__VA_ARGS__}) / 8

static void small_numbers_in_no_order_are_single_bytes(void **state)
{
    (void)state;
    struct viewer_column column = column_of(VALUES(1, 127, 3, 100, 2));
    assert_int_equal(column.encoding, VIEWER_VARINT);
    write_column(&column);
    assert_bytes(written, written_length, "\x01\x7f\x03\x64\x02");
}

static void larger_numbers_have_seven_bits_a_byte_the_lowest_first(void **state)
{
    (void)state;
    struct viewer_column column = column_of(VALUES(300, 1, 16384));
    assert_int_equal(column.encoding, VIEWER_VARINT);
    write_column(&column);
    assert_bytes(written, written_length, "\xac\x02\x01\x80\x80\x01");
}

static void numbers_near_each_other_are_differences(void **state)
{
    (void)state;
    struct viewer_column column = column_of(VALUES(100000, 100001, 100000, 100003, 100003));
    assert_int_equal(column.encoding, VIEWER_DELTA);
    write_column(&column);
    assert_bytes(written, written_length, "\xc0\x9a\x0c\x02\x01\x06\x00");
}

static void equal_numbers_in_a_row_are_counted(void **state)
{
    (void)state;
    struct viewer_column column = column_of(VALUES(7, 7, 7, 7, 7, 7, 300, 300, 300, 300));
    assert_int_equal(column.encoding, VIEWER_RUNS);
    write_column(&column);
    assert_bytes(written, written_length, "\x07\x06\xac\x02\x04");
}

static void a_column_without_rows_has_no_bytes(void **state)
{
    (void)state;
    struct viewer_column column = column_of(NULL, 0);
    assert_int_equal(column.bytes, 0);
    write_column(&column);
}

static void fields_of_any_width_are_taken_out_of_rows(void **state)
{
    (void)state;
    struct row {
        uint8_t one;
        uint16_t two;
        uint32_t four;
        uint64_t eight;
    } rows[] = {{200, 40000, 3000000000, (uint64_t)1 << 52}, {1, 2, 3, 4}};
    struct {
        struct row *items;
        size_t count;
    } table = {rows, 2};
    struct viewer_column columns[] = {
        VIEWER_COLUMN("one", &table, one), VIEWER_COLUMN("two", &table, two),
        VIEWER_COLUMN("four", &table, four), VIEWER_COLUMN("eight", &table, eight)};
    for (size_t i = 0; i < COUNT(columns); i++)
        viewer_column_choose(&columns[i]);
    write_column(&columns[0]);
    assert_bytes(written, written_length, "\xc8\x01\x01");
    write_column(&columns[1]);
    assert_bytes(written, written_length, "\xc0\xb8\x02\x02");
    write_column(&columns[2]);
    assert_bytes(written, written_length, "\x80\xbc\xc1\x96\x0b\x03");
    write_column(&columns[3]);
    assert_bytes(written, written_length, "\x80\x80\x80\x80\x80\x80\x80\x08\x04");
}

/* --- reading back ------------------------------------------------------------------------------
 */

static uint64_t read_uleb(size_t *at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)written[(*at)++];
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

static void assert_reads_back(const struct viewer_column *column, const uint64_t *values)
{
    size_t at = 0, row = 0;
    uint64_t before = 0;
    while (row < column->count) {
        uint64_t value = read_uleb(&at), times = 1;
        if (column->encoding == VIEWER_DELTA)
            value = before + ((value >> 1) ^ (0 - (value & 1)));
        if (column->encoding == VIEWER_RUNS)
            times = read_uleb(&at);
        for (; times; times--)
            assert_int_equal(values[row++], value);
        before = value;
    }
    assert_int_equal(at, written_length);
}

static void every_encoding_reads_back_over_many_buffers(void **state)
{
    (void)state;
    enum { MANY = 60000 };
    uint64_t *values = calloc(MANY, sizeof *values), seed = 1;
    for (size_t i = 0; i < MANY; i++)
        values[i] = i % 3 ? next_random(&seed) % VIEWER_NUMBER_LIMIT : i / 100;
    struct viewer_column column = column_of(values, MANY);
    for (int i = 0; i < VIEWER_ENCODINGS; i++) {
        column.encoding = (enum viewer_encoding)i;
        write_as(&column);
        assert_reads_back(&column, values);
    }
    free(values);
}

static void the_encoding_chosen_is_the_shortest(void **state)
{
    (void)state;
    uint64_t values[1000], seed = 3;
    for (int kind = 0; kind < 20; kind++) {
        uint64_t limit = (uint64_t)1 << (1 + next_random(&seed) % 50), repeat = 1 + kind % 5;
        for (size_t i = 0; i < COUNT(values); i++)
            values[i] = i % repeat ? values[i - 1] : next_random(&seed) % limit;
        struct viewer_column chosen = column_of(values, COUNT(values));
        for (int i = 0; i < VIEWER_ENCODINGS; i++) {
            struct viewer_column other = chosen;
            other.encoding = (enum viewer_encoding)i;
            write_as(&other);
            assert_true(chosen.bytes <= written_length);
        }
    }
}

static void a_failed_write_is_told(void **state)
{
    (void)state;
    struct viewer_column column = column_of(VALUES(1, 2, 3));
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    viewer_column_write(&column, full);
    assert_true(ferror(full));
    fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_numbers_in_no_order_are_single_bytes),
        cmocka_unit_test(larger_numbers_have_seven_bits_a_byte_the_lowest_first),
        cmocka_unit_test(numbers_near_each_other_are_differences),
        cmocka_unit_test(equal_numbers_in_a_row_are_counted),
        cmocka_unit_test(a_column_without_rows_has_no_bytes),
        cmocka_unit_test(fields_of_any_width_are_taken_out_of_rows),
        cmocka_unit_test(every_encoding_reads_back_over_many_buffers),
        cmocka_unit_test(the_encoding_chosen_is_the_shortest),
        cmocka_unit_test(a_failed_write_is_told),
    };
    int result = cmocka_run_group_tests(tests, NULL, NULL);
    free(written);
    return result;
}
