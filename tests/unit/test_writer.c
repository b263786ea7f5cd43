#include "base/writer.h"

#include "unit.h"

/* Filled with a byte that the tests do not write, so that writing too much shows. */
static uint8_t memory[64];

static struct writer writer_for(size_t capacity)
{
    struct writer writer;
    memset(memory, 0xee, sizeof memory);
    writer_init(&writer, memory, capacity);
    return writer;
}

static void assert_untouched_from(size_t offset)
{
    for (size_t i = offset; i < sizeof memory; i++)
        assert_int_equal(memory[i], 0xee);
}

static void assert_hex(uint64_t value, const char *digits)
{
    struct writer writer = writer_for(sizeof memory);
    writer_hex(&writer, value);
    assert_int_equal(writer.length, strlen(digits));
    assert_memory_equal(memory, digits, strlen(digits));
    assert_untouched_from(writer.length);
}

static void numbers_are_written_in_this_machines_byte_order(void **state)
{
    (void)state;
    struct __attribute__((packed)) {
        uint8_t a;
        uint16_t b;
        uint32_t c;
        uint64_t d;
    } expected = {0x12, 0x3456, 0x789abcde, 0xf0123456789abcde};
    struct writer writer = writer_for(sizeof memory);
    writer_u8(&writer, 0x12);
    writer_u16(&writer, 0x3456);
    writer_u32(&writer, 0x789abcde);
    writer_u64(&writer, 0xf0123456789abcde);
    assert_int_equal(writer.length, sizeof expected);
    assert_memory_equal(memory, &expected, sizeof expected);
    assert_untouched_from(sizeof expected);
}

static void bytes_are_appended(void **state)
{
    (void)state;
    struct writer writer = writer_for(sizeof memory);
    writer_bytes(&writer, "ab", 2);
    writer_bytes(&writer, NULL, 0);
    writer_bytes(&writer, "c\0", 2);
    assert_bytes(memory, writer.length, "abc\0");
}

static void what_fills_the_memory_exactly_fits(void **state)
{
    (void)state;
    struct writer writer = writer_for(4);
    writer_bytes(&writer, "abcd", 4);
    assert_true(writer_fits(&writer));
    assert_memory_equal(memory, "abcd", 4);
    assert_untouched_from(4);
}

static void what_does_not_fit_is_counted_but_not_written(void **state)
{
    (void)state;
    struct writer writer = writer_for(4);
    writer_bytes(&writer, "ab", 2);
    writer_u32(&writer, 0);
    assert_false(writer_fits(&writer));
    assert_int_equal(writer.length, 6);
    assert_memory_equal(memory, "ab", 2);
    assert_untouched_from(2);
}

static void nothing_is_written_behind_what_did_not_fit(void **state)
{
    (void)state;
    struct writer writer = writer_for(4);
    writer_u64(&writer, 0);
    writer_u8(&writer, 0);
    writer_align(&writer, 0, 8);
    writer_patch_u32(&writer, 0, 0);
    assert_int_equal(writer.length, 16);
    assert_untouched_from(0);
}

static void measuring_needs_no_memory(void **state)
{
    (void)state;
    struct writer writer;
    writer_init(&writer, NULL, 0);
    assert_true(writer_fits(&writer));
    writer_hex(&writer, 0x123);
    writer_bytes(&writer, "abc", 3);
    writer_patch_u32(&writer, 0, 1);
    assert_int_equal(writer.length, 6);
    assert_false(writer_fits(&writer));
}

static void a_length_that_would_wrap_stays_at_the_largest_number(void **state)
{
    (void)state;
    struct writer writer = writer_for(4);
    writer_bytes(&writer, "abcd", 4);
    writer_bytes(&writer, "", SIZE_MAX - 1);
    writer_bytes(&writer, "", SIZE_MAX);
    assert_int_equal(writer.length, SIZE_MAX);
    assert_false(writer_fits(&writer));
    assert_untouched_from(4);
}

static bool align_the_largest_length(void)
{
    struct writer writer = writer_for(4);
    writer_bytes(&writer, "", SIZE_MAX);
    writer_align(&writer, 0, 8);
    return !writer_fits(&writer);
}

static void aligning_ends_when_the_length_is_the_largest_number(void **state)
{
    (void)state;
    assert_true(ends_within(5, align_the_largest_length));
}

static void hexadecimal_numbers_have_no_prefix_and_no_leading_zeros(void **state)
{
    (void)state;
    assert_hex(0, "0");
    assert_hex(0xf, "f");
    assert_hex(0x10, "10");
    assert_hex(0x7f001234abcd, "7f001234abcd");
    assert_hex(UINT64_MAX, "ffffffffffffffff");
}

static void aligning_counts_from_the_start_given(void **state)
{
    (void)state;
    struct writer writer = writer_for(sizeof memory);
    writer_bytes(&writer, "abc", 3);
    writer_align(&writer, 1, 8);
    assert_bytes(memory, writer.length, "abc\0\0\0\0\0\0");
    assert_untouched_from(9);
}

static void what_is_aligned_already_gets_no_padding(void **state)
{
    (void)state;
    struct writer writer = writer_for(sizeof memory);
    writer_align(&writer, 0, 8);
    assert_int_equal(writer.length, 0);
    writer_bytes(&writer, "12345678", 8);
    writer_align(&writer, 0, 8);
    assert_int_equal(writer.length, 8);
    assert_untouched_from(8);
}

static void a_number_written_before_can_be_overwritten(void **state)
{
    (void)state;
    struct writer writer = writer_for(9);
    writer_u8(&writer, 1);
    writer_u32(&writer, 0);
    writer_u32(&writer, 7);
    writer_patch_u32(&writer, 1, 0xdeadbeef);
    uint32_t patched, behind;
    memcpy(&patched, memory + 1, sizeof patched);
    memcpy(&behind, memory + 5, sizeof behind);
    assert_int_equal(memory[0], 1);
    assert_int_equal(patched, 0xdeadbeef);
    assert_int_equal(behind, 7);
    assert_int_equal(writer.length, 9);
}

static void only_what_was_written_can_be_overwritten(void **state)
{
    (void)state;
    struct writer writer = writer_for(sizeof memory);
    writer_u32(&writer, 0xeeeeeeee);
    writer_patch_u32(&writer, 1, 0);
    writer_patch_u32(&writer, 4, 0);
    writer_patch_u32(&writer, 100, 0);
    assert_untouched_from(0);
}

static void numbers_of_dwarf_have_seven_bits_a_byte(void **state)
{
    (void)state;
    struct writer writer = writer_for(sizeof memory);
    writer_uleb(&writer, 0);
    writer_uleb(&writer, 127);
    writer_uleb(&writer, 128);
    writer_sleb(&writer, -1);
    writer_sleb(&writer, 63);
    writer_sleb(&writer, 64);
    writer_sleb(&writer, -65);
    assert_bytes(memory, writer.length, "\x00\x7f\x80\x01\x7f\x3f\xc0\x00\xbf\x7f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_in_this_machines_byte_order),
        cmocka_unit_test(bytes_are_appended),
        cmocka_unit_test(what_fills_the_memory_exactly_fits),
        cmocka_unit_test(what_does_not_fit_is_counted_but_not_written),
        cmocka_unit_test(nothing_is_written_behind_what_did_not_fit),
        cmocka_unit_test(measuring_needs_no_memory),
        cmocka_unit_test(a_length_that_would_wrap_stays_at_the_largest_number),
        cmocka_unit_test(aligning_ends_when_the_length_is_the_largest_number),
        cmocka_unit_test(hexadecimal_numbers_have_no_prefix_and_no_leading_zeros),
        cmocka_unit_test(aligning_counts_from_the_start_given),
        cmocka_unit_test(what_is_aligned_already_gets_no_padding),
        cmocka_unit_test(a_number_written_before_can_be_overwritten),
        cmocka_unit_test(only_what_was_written_can_be_overwritten),
        cmocka_unit_test(numbers_of_dwarf_have_seven_bits_a_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
