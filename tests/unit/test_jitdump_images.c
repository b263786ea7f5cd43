#include "formats/jitdump_images.h"

#include "jitdump_sample.h"
#include "unit.h"

static struct sample sample;
static struct jitdump_index dump;
static struct jitdump_images images;

static int release(void **state)
{
    (void)state;
    jitdump_images_done(&images);
    jitdump_index_done(&dump);
    return 0;
}

static void divide(bool per_function)
{
    const char *problem;
    release(NULL);
    assert_int_equal(
        jitdump_index_init(&dump, "dump", sample.bytes, sample.writer.length, &problem), 0);
    assert_int_equal(jitdump_images_init(&images, &dump, per_function), 0);
}

static void neighbours_share_image_and_mapping(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x10060, 1, "two");
    sample_add_load(&sample, 0x10000, 2, "one");
    divide(false);
    assert_int_equal(images.images.count, 1);
    assert_int_equal(images.mappings.count, 1);
    assert_int_equal(images.generations, 1);
    assert_string_equal(images.functions.items[0].code->load.name, "one");
    assert_int_equal(images.mappings.items[0].start_avma, 0x10000);
    assert_int_equal(images.mappings.items[0].end_avma, 0x10060 + sizeof SAMPLE_CODE);
    assert_int_equal(images.mappings.items[0].timestamp, 100);
}

static void a_gap_ends_a_mapping_and_a_whole_page_the_image(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x10000, 1, "one");
    sample_add_load(&sample, 0x10800, 2, "two");
    sample_add_load(&sample, 0x11ffe, 3, "in the next page");
    sample_add_load(&sample, 0x13000, 4, "in the one behind that");
    sample_add_load(&sample, 0x15000, 5, "with a page between");
    divide(false);
    assert_int_equal(images.images.count, 2);
    assert_int_equal(images.images.items[0].function_count, 4);
    assert_int_equal(images.mappings.count, 5);
}

static void memory_that_is_used_again_is_another_generation(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x10000, 1, "first");
    sample_add_load(&sample, 0x10010, 2, "second");
    sample_add_load(&sample, 0x10008, 3, "third");
    sample_add_load(&sample, 0x20000, 4, "elsewhere");
    divide(false);
    assert_int_equal(images.generations, 3);
    assert_int_equal(images.images.count, 4);
    assert_int_equal(images.mappings.items[2].generation, 1);
    assert_int_equal(images.mappings.items[2].start_avma, 0x10010);
    assert_int_equal(images.mappings.items[2].timestamp, 200);
    assert_int_equal(images.mappings.items[3].generation, 2);
}

static void what_is_said_twice_counts_once(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x10000, 1, "same");
    sample_add_load(&sample, 0x10000, 1, "same");
    divide(false);
    assert_int_equal(images.functions.count, 1);
    assert_int_equal(images.generations, 1);
}

static void moved_code_is_in_both_places(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x10000, 1, "moving");
    struct jitdump_move move = sample_move(0x10000, 0x18000, 1);
    jitdump_encode_move(&sample.writer, sample_next_stamp(&sample), &move);
    sample_note(&sample);
    divide(false);
    assert_int_equal(images.functions.count, 2);
    assert_int_equal(images.functions.items[1].avma, 0x18000);
    assert_ptr_equal(images.functions.items[0].code, images.functions.items[1].code);
}

static void each_function_can_have_an_image(void **state)
{
    (void)state;
    sample_begin(&sample);
    sample_add_load(&sample, 0x10000, 1, "one");
    sample_add_load(&sample, 0x10060, 2, "two");
    divide(true);
    assert_int_equal(images.images.count, 2);
    assert_int_equal(images.mappings.items[0].limit_avma, 0x10060);
    assert_int_equal(images.mappings.items[1].limit_avma, UINT64_MAX);
}

static bool divide_one_address(void)
{
    enum { LOADS = 50000, RECORD_BYTES = 128 };
    uint8_t *bytes = malloc((size_t)LOADS * RECORD_BYTES);
    struct writer writer;
    writer_init(&writer, bytes, (size_t)LOADS * RECORD_BYTES);
    jitdump_encode_header(
        &writer, &(struct jitdump_header){.elf_machine = SAMPLE_MACHINE, .pid = SAMPLE_PID});
    for (uint64_t i = 0; i < LOADS; i++) {
        struct jitdump_load load = sample_load(0x10000 + i % 7, i, i % 2 ? "a" : "b");
        jitdump_encode_load(&writer, i, &load);
    }
    struct jitdump_index index;
    struct jitdump_images divided;
    const char *problem;
    if (jitdump_index_init(&index, "dump", bytes, writer.length, &problem) < 0)
        return false;
    bool done = jitdump_images_init(&divided, &index, false) == 0 && divided.generations == LOADS;
    jitdump_images_done(&divided);
    jitdump_index_done(&index);
    free(bytes);
    return done;
}

static void one_address_used_again_and_again_takes_bounded_time(void **state)
{
    (void)state;
    assert_true(ends_within(20, divide_one_address));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_share_image_and_mapping),
        cmocka_unit_test(a_gap_ends_a_mapping_and_a_whole_page_the_image),
        cmocka_unit_test(memory_that_is_used_again_is_another_generation),
        cmocka_unit_test(what_is_said_twice_counts_once),
        cmocka_unit_test(moved_code_is_in_both_places),
        cmocka_unit_test(each_function_can_have_an_image),
        cmocka_unit_test(one_address_used_again_and_again_takes_bounded_time),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
