#include "formats/python_lines.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>

static struct python_lines lines;

static int release(void **state)
{
    (void)state;
    python_lines_done(&lines);
    return 0;
}

/* The tables of this file start at line 10. */
static void read_table(uint32_t minor, const void *bytes, size_t length)
{
    python_lines_done(&lines);
    uint8_t *copy = exact_copy(bytes, length);
    struct python_lines_table table = {
        .python_minor = minor, .first_line = 10, .bytes = copy, .length = length};
    assert_int_equal(python_lines_init(&lines, &table), 0);
    free(copy);
}

#define READ(minor, literal) read_table(minor, literal, sizeof(literal) - 1)

#define assert_distinct(...)                                                                       \
    do {                                                                                           \
        static const int32_t expected[] = {__VA_ARGS__};                                           \
        assert_int_equal(lines.distinct.count, COUNT(expected));                                   \
        assert_memory_equal(lines.distinct.items, expected, sizeof expected);                      \
    } while (0)

static void in_3_9_the_line_changes_behind_the_bytes(void **state)
{
    (void)state;
    READ(9, "\x06\x01\x04\x02");
    assert_int_equal(python_lines_at(&lines, 0), 10);
    assert_int_equal(python_lines_at(&lines, 4), 10);
    assert_int_equal(python_lines_at(&lines, 6), 11);
    assert_int_equal(python_lines_at(&lines, 10), 13);
    assert_int_equal(python_lines_at(&lines, 100000), 13);
    assert_distinct(10, 11, 13);
}

static void in_3_9_pairs_add_up(void **state)
{
    (void)state;
    READ(9, "\x02\x7f\x00\x03\xfe\x00\x04\x80");
    assert_int_equal(python_lines_at(&lines, 2), 140);
    assert_int_equal(python_lines_at(&lines, 258), 140);
    assert_int_equal(python_lines_at(&lines, 260), 12);
    assert_int_equal(lines.rows.count, 4); /* and the end */
    assert_distinct(10, 12, 140);
}

static void in_3_10_bytes_can_be_without_a_line(void **state)
{
    (void)state;
    READ(10, "\x06\x00\x04\x01\x02\x80\x02\x00");
    assert_int_equal(python_lines_at(&lines, 4), 10);
    assert_int_equal(python_lines_at(&lines, 6), 11);
    assert_int_equal(python_lines_at(&lines, 10), PYTHON_LINE_NONE);
    assert_int_equal(python_lines_at(&lines, 12), 11);
    assert_int_equal(python_lines_at(&lines, 14), PYTHON_LINE_NONE); /* behind the table */
    assert_distinct(10, 11);
}

static void in_3_11_entries_have_kinds(void **state)
{
    (void)state;
    /* A short one of 2 units; one line on; no columns, 3 back; long, 70 on; none; short. */
    READ(12, "\x81\x15"
             "\xd8\x01\x02"
             "\xe8\x07"
             "\xf1\x4c\x02\x01\x01\x01"
             "\xf8"
             "\x80\x15");
    assert_false(lines.is_damaged);
    assert_int_equal(python_lines_at(&lines, 0), 10);
    assert_int_equal(python_lines_at(&lines, 2), 10);
    assert_int_equal(python_lines_at(&lines, 4), 11);
    assert_int_equal(python_lines_at(&lines, 6), 8);
    assert_int_equal(python_lines_at(&lines, 8), 78);
    assert_int_equal(python_lines_at(&lines, 10), 78);
    assert_int_equal(python_lines_at(&lines, 12), PYTHON_LINE_NONE);
    assert_int_equal(python_lines_at(&lines, 14), 78);
    assert_distinct(8, 10, 11, 78);
}

static void without_a_table_everything_is_on_the_first_line(void **state)
{
    (void)state;
    for (uint32_t minor = 9; minor < 16; minor++) {
        python_lines_done(&lines);
        struct python_lines_table table = {.python_minor = minor, .first_line = 10};
        assert_int_equal(python_lines_init(&lines, &table), 0);
        assert_int_equal(python_lines_at(&lines, 1234), 10);
        assert_distinct(10);
    }
}

static void no_instruction_has_no_line(void **state)
{
    (void)state;
    READ(9, "\x06\x01");
    assert_int_equal(python_lines_at(&lines, UINT32_MAX), PYTHON_LINE_NONE);
}

static void the_good_part_of_a_damaged_table_counts(void **state)
{
    (void)state;
    READ(11, "\xd8\x01\x02\xe8\x40"); /* a number that ends with the table */
    assert_true(lines.is_damaged);
    assert_int_equal(python_lines_at(&lines, 0), 11);
    assert_int_equal(python_lines_at(&lines, 2), PYTHON_LINE_NONE);
    READ(11, "\xe8\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x01"); /* a number too long */
    assert_true(lines.is_damaged);
    READ(11, "\x05");
    assert_true(lines.is_damaged);
    READ(10, "\x02\x01\x02");
    assert_true(lines.is_damaged);
    assert_int_equal(python_lines_at(&lines, 0), 11);
}

static void lines_that_are_no_numbers_are_none(void **state)
{
    (void)state;
    READ(10, "\x02\x90\x02\x7f");
    assert_int_equal(python_lines_at(&lines, 0), PYTHON_LINE_NONE);
    assert_int_equal(python_lines_at(&lines, 2), 25);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    struct python_lines_table table = {
        .python_minor = 10, .first_line = 1, .bytes = (const uint8_t *)"\2\1\2\1", .length = 4};
    for (long n = 0;; n++) {
        struct python_lines made;
        failing_malloc_after(n);
        int result = python_lines_init(&made, &table);
        bool failed = failing_malloc_stop();
        assert_int_equal(result, failed ? -ENOMEM : 0);
        if (!failed) {
            assert_int_equal(python_lines_at(&made, 3), 3);
            python_lines_done(&made);
            assert_true(n > 0);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_3_9_the_line_changes_behind_the_bytes),
        cmocka_unit_test(in_3_9_pairs_add_up),
        cmocka_unit_test(in_3_10_bytes_can_be_without_a_line),
        cmocka_unit_test(in_3_11_entries_have_kinds),
        cmocka_unit_test(without_a_table_everything_is_on_the_first_line),
        cmocka_unit_test(no_instruction_has_no_line),
        cmocka_unit_test(the_good_part_of_a_damaged_table_counts),
        cmocka_unit_test(lines_that_are_no_numbers_are_none),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
