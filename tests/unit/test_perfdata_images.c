#include "formats/perfdata_images.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>

static struct perfdata_images_maker maker;
static struct perfdata_images images;

static int release(void **state)
{
    (void)state;
    perfdata_images_maker_done(&maker);
    perfdata_images_done(&images);
    return 0;
}

static const uint8_t ONE[20] = "one", TWO[20] = "two";

enum { LARGE = 100000 };

/* Two images: one that can be packed, and one that can't. */
static void make_two(void)
{
    static uint8_t large[LARGE];
    perfdata_images_maker_done(&maker);
    memset(large, 'x', sizeof large);
    assert_int_equal(perfdata_images_add(&maker, "/a", ONE, sizeof ONE, large, sizeof large), 0);
    assert_int_equal(perfdata_images_add(&maker, "/long/b", TWO, sizeof TWO, "small", 5), 0);
}

static void open_images(size_t length)
{
    perfdata_images_done(&images);
    assert_int_equal(perfdata_images_open(&images, maker.bytes.items, length), 0);
}

static void images_are_found_by_build_id(void **state)
{
    (void)state;
    make_two();
    open_images(maker.bytes.count);
    assert_true(maker.bytes.count < LARGE / 10);
    assert_int_equal(images.items.count, 2);
    const struct perfdata_image *image = perfdata_images_find(&images, "/a", TWO, sizeof TWO);
    assert_non_null(image);
    assert_bytes(image->path, image->path_length, "/long/b");
    uint8_t *data;
    assert_int_equal(perfdata_image_unpack(image, &data), 0);
    assert_bytes(data, image->length, "small");
    free(data);
    image = perfdata_images_find(&images, "/b", ONE, sizeof ONE);
    assert_int_equal(perfdata_image_unpack(image, &data), 0);
    assert_int_equal(image->length, LARGE);
    assert_int_equal(data[LARGE - 1], 'x');
    free(data);
    assert_null(perfdata_images_find(&images, "/a", (const uint8_t *)"other", 5));
}

static void without_a_build_id_the_path_counts(void **state)
{
    (void)state;
    make_two();
    open_images(maker.bytes.count);
    const struct perfdata_image *image = perfdata_images_find(&images, "/long/b", NULL, 0);
    assert_ptr_equal(image, &images.items.items[1]);
    assert_null(perfdata_images_find(&images, "/long", NULL, 0));
}

static void other_private_data_has_no_images(void **state)
{
    (void)state;
    perfdata_images_done(&images);
    assert_int_equal(perfdata_images_open(&images, "data of our own, longer", 23), 0);
    assert_int_equal(images.items.count, 0);
    assert_int_equal(perfdata_images_open(&images, NULL, 0), 0);
    assert_int_equal(images.items.count, 0);
}

static void what_is_cut_off_leaves_the_images_before(void **state)
{
    (void)state;
    make_two();
    for (size_t length = 16; length < maker.bytes.count; length++) {
        uint8_t *copy = exact_copy(maker.bytes.items, length);
        perfdata_images_done(&images);
        int result = perfdata_images_open(&images, copy, length);
        /* Only the padding behind the last one may be missing. */
        assert_true(result == -EBADMSG || maker.bytes.count - length < 8);
        assert_true(images.items.count <= 2);
        perfdata_images_done(&images);
        free(copy);
    }
}

static void a_wrong_size_is_damage(void **state)
{
    (void)state;
    make_two();
    open_images(maker.bytes.count);
    struct perfdata_image image = images.items.items[0];
    uint8_t *data;
    image.length--;
    assert_int_equal(perfdata_image_unpack(&image, &data), -EBADMSG);
    image.length += 2;
    assert_int_equal(perfdata_image_unpack(&image, &data), -EBADMSG);
}

static void a_few_bytes_can_not_claim_all_memory(void **state)
{
    (void)state;
    make_two();
    uint64_t huge = 1 << 30;
    memcpy(maker.bytes.items + 16 + 8, &huge, sizeof huge);
    perfdata_images_done(&images);
    assert_int_equal(perfdata_images_open(&images, maker.bytes.items, maker.bytes.count), -EBADMSG);
    assert_int_equal(images.items.count, 0);
}

static void what_is_too_large_is_refused(void **state)
{
    (void)state;
    make_two();
    size_t before = maker.bytes.count;
    assert_int_equal(perfdata_images_add(&maker, "/a", ONE, 21, "x", 1), -EINVAL);
    assert_int_equal(perfdata_images_add(&maker, "/a", ONE, 20, "x", SIZE_MAX), -EFBIG);
    assert_int_equal(maker.bytes.count, before);
}

static void memory_may_be_short(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct perfdata_images_maker small = {0};
        struct perfdata_images read = {0};
        failing_malloc_after(n);
        int result = perfdata_images_add(&small, "/a", ONE, sizeof ONE, "x", 1);
        if (!result)
            result = perfdata_images_open(&read, small.bytes.items, small.bytes.count);
        bool failed = failing_malloc_stop();
        assert_int_equal(result, failed ? -ENOMEM : 0);
        perfdata_images_done(&read);
        perfdata_images_maker_done(&small);
        if (!failed) {
            assert_true(n > 1);
            return;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_are_found_by_build_id),
        cmocka_unit_test(without_a_build_id_the_path_counts),
        cmocka_unit_test(other_private_data_has_no_images),
        cmocka_unit_test(what_is_cut_off_leaves_the_images_before),
        cmocka_unit_test(a_wrong_size_is_damage),
        cmocka_unit_test(a_few_bytes_can_not_claim_all_memory),
        cmocka_unit_test(what_is_too_large_is_refused),
        cmocka_unit_test(memory_may_be_short),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
