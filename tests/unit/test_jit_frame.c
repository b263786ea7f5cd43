/* Unwinding data of a jitdump, written by hand and taken apart. That unwinders follow what is made
 * from it is shown by tests/e2e/test_inject.py. */
#include "formats/jit_frame.h"

#include "failing_malloc.h"
#include "unit.h"

#include <elf.h>
#include <errno.h>

enum { CODE_BYTES = 100, SECTION = 104 /* the next multiple of 8 */ };

static uint8_t bytes[1024];
static struct writer data;
static struct jit_frames frames;

static int release(void **state)
{
    (void)state;
    vector_done(&frames.list);
    return 0;
}

static void begin(void)
{
    memset(bytes, 0xaa, sizeof bytes);
    writer_init(&data, bytes, sizeof bytes);
}

/* A CIE with pointers of this encoding, and `marker` as its only instruction. */
static size_t add_cie(uint8_t encoding, uint8_t marker)
{
    size_t start = data.length;
    writer_u32(&data, 0);
    writer_u32(&data, 0);
    writer_u8(&data, 1);
    writer_bytes(&data, "zR", 3);
    writer_uleb(&data, 1);
    writer_sleb(&data, -8);
    writer_u8(&data, 16);
    writer_uleb(&data, 1);
    writer_u8(&data, encoding);
    writer_u8(&data, marker);
    writer_patch_u32(&data, start, (uint32_t)(data.length - start - 4));
    return start;
}

/* An FDE of `size` bytes from `code` on, with 32-bit pointers relative to themselves. */
static size_t add_fde(size_t cie, int64_t code, uint32_t size, uint8_t marker)
{
    size_t start = data.length;
    writer_u32(&data, 0);
    writer_u32(&data, (uint32_t)(data.length - cie));
    writer_u32(&data, (uint32_t)(code - (int64_t)(SECTION + data.length)));
    writer_u32(&data, size);
    writer_uleb(&data, 0);
    writer_u8(&data, marker);
    writer_patch_u32(&data, start, (uint32_t)(data.length - start - 4));
    return start;
}

static int parse(void)
{
    assert_true(writer_fits(&data));
    uint8_t *exact = exact_copy(bytes, data.length);
    struct jitdump_unwinding_info info = {.data = exact, .size = data.length};
    int result = jit_frames_parse(&frames, &info, CODE_BYTES);
    free(exact);
    return result;
}

/* The same, in the memory of the test, so that what frames borrow can be looked at. */
static void assert_parsed(size_t count)
{
    struct jitdump_unwinding_info info = {.data = bytes, .size = data.length};
    assert_int_equal(jit_frames_parse(&frames, &info, CODE_BYTES), 0);
    assert_int_equal(frames.list.count, count);
}

static void assert_frame(size_t i, uint64_t start, uint64_t size, uint8_t marker)
{
    const struct jit_frame *frame = &frames.list.items[i];
    assert_int_equal(frame->start, start);
    assert_int_equal(frame->size, size);
    assert_int_equal(frame->instruction_bytes, 1);
    assert_int_equal(frame->instructions[0], marker);
}

static void a_single_frame_is_for_all_of_the_code(void **state)
{
    (void)state;
    begin();
    add_fde(add_cie(0x1b, 7), 12, 3, 1);
    assert_parsed(1);
    assert_frame(0, 0, CODE_BYTES, 1);
    assert_int_equal(frames.list.items[0].return_register, 16);
    assert_int_equal(frames.list.items[0].data_alignment, -8);
    assert_bytes(frames.list.items[0].initial, frames.list.items[0].initial_bytes, "\7");
}

static void each_of_several_is_for_its_part(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x1b, 7);
    add_fde(cie, 60, 40, 2);
    add_fde(cie, 0, 60, 1);
    assert_parsed(2);
    assert_frame(0, 0, 60, 1);
    assert_frame(1, 60, 40, 2);
}

static void frames_find_their_own_common_part(void **state)
{
    (void)state;
    begin();
    size_t first = add_cie(0x1b, 7), second = add_cie(0x1b, 8);
    add_fde(first, 0, 10, 1);
    add_fde(second, 10, 10, 2);
    add_fde(first, 20, 10, 3);
    assert_parsed(3);
    assert_int_equal(frames.list.items[0].initial[0], 7);
    assert_int_equal(frames.list.items[1].initial[0], 8);
    assert_int_equal(frames.list.items[2].initial[0], 7);
}

static void overlaps_and_what_is_outside_are_left_out(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x1b, 7);
    add_fde(cie, 0, 50, 1);
    add_fde(cie, 49, 10, 2);
    add_fde(cie, -8, 8, 3);
    add_fde(cie, 90, 11, 4);
    add_fde(cie, 100, 1, 5);
    add_fde(cie, 60, 0, 6);
    add_fde(cie, 70, UINT32_MAX, 7);
    add_fde(cie, 50, 10, 8);
    assert_parsed(2);
    assert_frame(0, 0, 50, 1);
    assert_frame(1, 50, 10, 8);
}

static void when_none_is_in_the_code_the_first_is_for_all_of_it(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x1b, 7);
    add_fde(cie, 5000, 10, 2);
    add_fde(cie, -5000, 10, 1);
    assert_parsed(1);
    assert_frame(0, 0, CODE_BYTES, 2);
}

static void addresses_that_are_not_relative_say_nothing(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x0b, 7);
    add_fde(cie, 0, 50, 1);
    add_fde(cie, 50, 50, 2);
    assert_parsed(1);
    assert_frame(0, 0, CODE_BYTES, 1);
}

static void a_frame_without_common_part_is_none(void **state)
{
    (void)state;
    begin();
    size_t fde = add_fde(add_cie(0x1b, 7), 0, 50, 1);
    size_t length = data.length;
    static const uint32_t wrong[] = {1, 3, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        writer_patch_u32(&data, fde + 4, wrong[i]);
        assert_int_equal(parse(), -EBADMSG);
    }
    /* The CIE of the second FDE is the first FDE. */
    writer_patch_u32(&data, fde + 4, (uint32_t)(fde + 4));
    add_fde(fde, 50, 50, 2);
    assert_int_equal(parse(), 0);
    assert_int_equal(frames.list.count, 1);
    assert_true(length < data.length);
}

static void no_data_is_told_apart_from_damage(void **state)
{
    (void)state;
    struct jitdump_unwinding_info none = {.data = bytes, .size = 16, .eh_frame_hdr_size = 16};
    assert_int_equal(jit_frames_parse(&frames, &none, CODE_BYTES), -ENOENT);
    begin();
    add_cie(0x1b, 7);
    assert_int_equal(parse(), -EBADMSG);
}

static void data_may_end_anywhere(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x1b, 7);
    size_t first_end = (add_fde(cie, 0, 50, 1), data.length);
    add_fde(cie, 50, 50, 2);
    size_t whole = data.length;
    for (data.length = 1; data.length < whole; data.length++)
        assert_int_equal(parse(), data.length < first_end ? -EBADMSG : 0);
}

static void any_byte_may_be_wrong(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x1b, 7);
    add_fde(cie, 0, 50, 1);
    add_fde(cie, 50, 50, 2);
    for (size_t i = 0; i < data.length; i++) {
        uint8_t right = bytes[i];
        for (int value = 0; value < 256; value++) {
            bytes[i] = (uint8_t)value;
            int result = parse();
            assert_true(result == -EBADMSG || (result == 0 && frames.list.count));
            uint64_t end = 0;
            for (size_t n = 0; n < frames.list.count && !result; n++) {
                const struct jit_frame *frame = &frames.list.items[n];
                assert_true(frame->start >= end && frame->size);
                assert_true(frame->size <= CODE_BYTES - frame->start);
                end = frame->start + frame->size;
            }
        }
        bytes[i] = right;
    }
}

static void memory_may_run_short(void **state)
{
    (void)state;
    begin();
    size_t cie = add_cie(0x1b, 7);
    for (uint8_t i = 0; i < 20; i++)
        add_fde(cie, i * 5, 5, i);
    for (long n = 0;; n++) {
        struct jit_frames own = {0};
        struct jitdump_unwinding_info info = {.data = bytes, .size = data.length};
        failing_malloc_after(n);
        int result = jit_frames_parse(&own, &info, CODE_BYTES);
        bool failed = failing_malloc_stop();
        vector_done(&own.list);
        assert_int_equal(result, failed ? -ENOMEM : 0);
        if (!failed)
            break;
    }
}

static void what_is_encoded_can_be_parsed_again(void **state)
{
    (void)state;
    struct jit_frame made;
    assert_int_equal(jit_frame_by_frame_pointer(EM_X86_64, CODE_BYTES, &made), 0);
    begin();
    jit_frame_encode_cie(&data, &made);
    jit_frame_encode_fde(&data, &made,
                         &(struct jit_frame_place){.section = SECTION, .cie = SECTION});
    assert_parsed(1);
    const struct jit_frame *frame = &frames.list.items[0];
    assert_int_equal(frame->size, CODE_BYTES);
    assert_int_equal(frame->return_register, 16);
    assert_memory_equal(frame->initial, made.initial, made.initial_bytes);
    assert_int_equal(jit_frame_by_frame_pointer(EM_S390, CODE_BYTES, &made), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_single_frame_is_for_all_of_the_code),
        cmocka_unit_test(each_of_several_is_for_its_part),
        cmocka_unit_test(frames_find_their_own_common_part),
        cmocka_unit_test(overlaps_and_what_is_outside_are_left_out),
        cmocka_unit_test(when_none_is_in_the_code_the_first_is_for_all_of_it),
        cmocka_unit_test(addresses_that_are_not_relative_say_nothing),
        cmocka_unit_test(a_frame_without_common_part_is_none),
        cmocka_unit_test(no_data_is_told_apart_from_damage),
        cmocka_unit_test(data_may_end_anywhere),
        cmocka_unit_test(any_byte_may_be_wrong),
        cmocka_unit_test(memory_may_run_short),
        cmocka_unit_test(what_is_encoded_can_be_parsed_again),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
