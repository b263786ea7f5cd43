#include "base/cursor.h"

#include "unit.h"

static struct cursor cursor_over(const void *data, size_t length)
{
    struct cursor cursor;
    cursor_init(&cursor, "bytes", data, length);
    return cursor;
}

static void assert_failed_at(const struct cursor *cursor, size_t offset)
{
    assert_false(cursor_ok(cursor));
    assert_string_equal(cursor->source, "bytes");
    assert_non_null(cursor->error);
    assert_true(strlen(cursor->error) > 0);
    assert_int_equal(cursor->error_offset, offset);
}

static void numbers_are_read_in_this_machines_byte_order(void **state)
{
    (void)state;
    struct __attribute__((packed)) {
        uint8_t a;
        uint16_t b;
        uint32_t c;
        uint64_t d;
    } data = {0x12, 0x3456, 0x789abcde, 0xf0123456789abcde};
    struct cursor cursor = cursor_over(&data, sizeof data);
    assert_int_equal(cursor_u8(&cursor), 0x12);
    assert_int_equal(cursor_u16(&cursor), 0x3456);
    assert_int_equal(cursor_u32(&cursor), 0x789abcde);
    assert_int_equal(cursor_u64(&cursor), 0xf0123456789abcde);
    assert_true(cursor_ok(&cursor));
    assert_int_equal(cursor_left(&cursor), 0);
}

static void a_swapped_cursor_reads_the_other_byte_order(void **state)
{
    (void)state;
    struct __attribute__((packed)) {
        uint8_t a;
        uint16_t b;
        uint32_t c;
        uint64_t d;
    } data = {0x12, 0x3456, 0x789abcde, 0xf0123456789abcde};
    struct cursor cursor = cursor_over(&data, sizeof data);
    cursor.swapped = true;
    assert_int_equal(cursor_u8(&cursor), 0x12);
    assert_int_equal(cursor_u16(&cursor), 0x5634);
    assert_int_equal(cursor_u32(&cursor), 0xdebc9a78);
    assert_int_equal(cursor_u64(&cursor), 0xdebc9a78563412f0);
}

static void a_read_past_the_end_gives_zero_and_moves_nothing(void **state)
{
    (void)state;
    uint8_t *data = exact_copy("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    struct cursor start = cursor_over(data, 8);
    cursor_skip(&start, 7);
    struct cursor cursor = start;
    assert_int_equal(cursor_u16(&cursor), 0);
    assert_failed_at(&cursor, 7);
    assert_int_equal(cursor.offset, 7);
    cursor = start;
    assert_int_equal(cursor_u32(&cursor), 0);
    assert_failed_at(&cursor, 7);
    cursor = start;
    assert_int_equal(cursor_u64(&cursor), 0);
    assert_failed_at(&cursor, 7);
    cursor = start;
    cursor_skip(&cursor, 2);
    assert_failed_at(&cursor, 7);
    assert_int_equal(cursor.offset, 7);
    cursor = start;
    cursor_skip(&cursor, 1);
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_failed_at(&cursor, 8);
    free(data);
}

static void after_a_failure_every_read_fails(void **state)
{
    (void)state;
    size_t length = 7;
    struct cursor cursor = cursor_over("0123456789abcdef", 16);
    cursor_skip(&cursor, 3);
    cursor_skip(&cursor, 100);
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_int_equal(cursor_u16(&cursor), 0);
    assert_int_equal(cursor_u32(&cursor), 0);
    assert_int_equal(cursor_u64(&cursor), 0);
    assert_null(cursor_bytes(&cursor, 1));
    assert_null(cursor_bytes(&cursor, 0));
    assert_null(cursor_string(&cursor, &length));
    assert_int_equal(length, 0);
    cursor_skip(&cursor, 1);
    cursor_seek(&cursor, 0);
    assert_int_equal(cursor.offset, 3);
    assert_failed_at(&cursor, 3);
}

static void the_first_failure_keeps_its_message_and_offset(void **state)
{
    (void)state;
    struct cursor cursor = cursor_over("abc", 3);
    cursor_skip(&cursor, 2);
    cursor_fail(&cursor, "first");
    cursor_fail(&cursor, "second");
    cursor_skip(&cursor, 100);
    assert_failed_at(&cursor, 2);
    assert_string_equal(cursor.error, "first");
}

static void a_length_near_the_largest_number_does_not_wrap(void **state)
{
    (void)state;
    struct cursor cursor = cursor_over("abc", 3);
    cursor_skip(&cursor, 2);
    assert_null(cursor_bytes(&cursor, SIZE_MAX - 1));
    assert_failed_at(&cursor, 2);
}

static void bytes_are_those_of_the_data(void **state)
{
    (void)state;
    const char *data = "abcdef";
    struct cursor cursor = cursor_over(data, 6);
    cursor_skip(&cursor, 1);
    assert_ptr_equal(cursor_bytes(&cursor, 3), data + 1);
    assert_int_equal(cursor.offset, 4);
    assert_ptr_equal(cursor_bytes(&cursor, 2), data + 4);
    assert_true(cursor_ok(&cursor));
}

static void no_bytes_can_be_read_at_the_end(void **state)
{
    (void)state;
    const char *data = "ab";
    struct cursor cursor = cursor_over(data, 2);
    cursor_skip(&cursor, 2);
    assert_ptr_equal(cursor_bytes(&cursor, 0), data + 2);
    assert_true(cursor_ok(&cursor));
}

static void nothing_at_all_is_valid_data(void **state)
{
    (void)state;
    size_t length = 7;
    struct cursor cursor = cursor_over(NULL, 0);
    assert_int_equal(cursor_left(&cursor), 0);
    cursor_skip(&cursor, 0);
    struct cursor sub = cursor_sub(&cursor, 0);
    assert_true(cursor_ok(&cursor));
    assert_true(cursor_ok(&sub));
    assert_null(cursor_string(&sub, &length));
    assert_int_equal(length, 0);
    assert_failed_at(&sub, 0);
    assert_int_equal(cursor_u8(&cursor), 0);
    assert_failed_at(&cursor, 0);
}

static void strings_end_at_their_nul(void **state)
{
    (void)state;
    const char data[] = "one\0\0two";
    size_t length;
    struct cursor cursor = cursor_over(data, sizeof data);
    assert_ptr_equal(cursor_string(&cursor, &length), data);
    assert_int_equal(length, 3);
    assert_ptr_equal(cursor_string(&cursor, &length), data + 4);
    assert_int_equal(length, 0);
    assert_ptr_equal(cursor_string(&cursor, &length), data + 5);
    assert_int_equal(length, 3);
    assert_int_equal(cursor_left(&cursor), 0);
    assert_true(cursor_ok(&cursor));
}

static void a_string_without_nul_fails_where_it_starts(void **state)
{
    (void)state;
    size_t length = 7;
    uint8_t *data = exact_copy("ab\0cd", 5);
    struct cursor cursor = cursor_over(data, 5);
    cursor_skip(&cursor, 3);
    assert_null(cursor_string(&cursor, &length));
    assert_int_equal(length, 0);
    assert_failed_at(&cursor, 3);
    free(data);
}

static void a_sub_cursor_ends_where_it_was_told(void **state)
{
    (void)state;
    struct cursor cursor = cursor_over("abcdef", 6);
    cursor_skip(&cursor, 1);
    struct cursor sub = cursor_sub(&cursor, 2);
    assert_int_equal(cursor_left(&sub), 2);
    assert_int_equal(cursor_u8(&sub), 'b');
    assert_int_equal(cursor_u8(&sub), 'c');
    assert_int_equal(cursor_u8(&sub), 0);
    assert_failed_at(&sub, 3);
    assert_true(cursor_ok(&cursor));
    assert_int_equal(cursor_u8(&cursor), 'd');
}

static void a_sub_cursor_of_a_sub_cursor_counts_from_the_source(void **state)
{
    (void)state;
    struct cursor cursor = cursor_over("abcdefgh", 8);
    cursor_skip(&cursor, 2);
    struct cursor sub = cursor_sub(&cursor, 5);
    cursor_skip(&sub, 1);
    struct cursor inner = cursor_sub(&sub, 2);
    assert_int_equal(cursor_u8(&inner), 'd');
    cursor_fail(&inner, "wrong");
    assert_failed_at(&inner, 4);
    assert_string_equal(inner.error, "wrong");
}

static void a_sub_cursor_keeps_the_byte_order(void **state)
{
    (void)state;
    uint16_t value = 0x1234;
    struct cursor cursor = cursor_over(&value, sizeof value);
    cursor.swapped = true;
    struct cursor sub = cursor_sub(&cursor, sizeof value);
    assert_int_equal(cursor_u16(&sub), 0x3412);
}

static void a_sub_cursor_that_is_too_long_fails_both(void **state)
{
    (void)state;
    struct cursor cursor = cursor_over("abcdef", 6);
    cursor_skip(&cursor, 4);
    struct cursor sub = cursor_sub(&cursor, 3);
    assert_failed_at(&cursor, 4);
    assert_failed_at(&sub, 4);
    assert_int_equal(cursor_left(&sub), 0);
    assert_int_equal(cursor_u8(&sub), 0);
}

static void seek_goes_anywhere_up_to_the_end(void **state)
{
    (void)state;
    struct cursor cursor = cursor_over("abc", 3);
    cursor_seek(&cursor, 3);
    assert_int_equal(cursor_left(&cursor), 0);
    cursor_seek(&cursor, 1);
    assert_int_equal(cursor_u8(&cursor), 'b');
    assert_true(cursor_ok(&cursor));
    cursor_seek(&cursor, 4);
    assert_failed_at(&cursor, 2);
    assert_int_equal(cursor.offset, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_in_this_machines_byte_order),
        cmocka_unit_test(a_swapped_cursor_reads_the_other_byte_order),
        cmocka_unit_test(a_read_past_the_end_gives_zero_and_moves_nothing),
        cmocka_unit_test(after_a_failure_every_read_fails),
        cmocka_unit_test(the_first_failure_keeps_its_message_and_offset),
        cmocka_unit_test(a_length_near_the_largest_number_does_not_wrap),
        cmocka_unit_test(bytes_are_those_of_the_data),
        cmocka_unit_test(no_bytes_can_be_read_at_the_end),
        cmocka_unit_test(nothing_at_all_is_valid_data),
        cmocka_unit_test(strings_end_at_their_nul),
        cmocka_unit_test(a_string_without_nul_fails_where_it_starts),
        cmocka_unit_test(a_sub_cursor_ends_where_it_was_told),
        cmocka_unit_test(a_sub_cursor_of_a_sub_cursor_counts_from_the_source),
        cmocka_unit_test(a_sub_cursor_keeps_the_byte_order),
        cmocka_unit_test(a_sub_cursor_that_is_too_long_fails_both),
        cmocka_unit_test(seek_goes_anywhere_up_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
