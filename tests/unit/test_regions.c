#include "profile/regions.h"

#include "unit.h"

#include <errno.h>

static struct regions regions;

static int release(void **state)
{
    (void)state;
    regions_done(&regions);
    return 0;
}

/* Adds [start, end) of a module from the start of its file; whether something was replaced. */
static bool add(uint64_t start, uint64_t end, uint32_t module)
{
    bool replaced;
    struct region region = {.start_avma = start, .end_avma = end, .module = module};
    assert_int_equal(regions_add(&regions, &region, &replaced), 0);
    return replaced;
}

/* The module at an address; -1: nothing is there. */
static int at(uint64_t avma)
{
    const struct region *found = regions_find(&regions, avma);
    return found ? (int)found->module : -1;
}

static void addresses_are_found_in_their_region(void **state)
{
    release(state);
    assert_int_equal(at(0), -1);
    assert_false(add(0x2000, 0x3000, 2));
    assert_false(add(0x1000, 0x1800, 1));
    assert_int_equal(at(0xfff), -1);
    assert_int_equal(at(0x1000), 1);
    assert_int_equal(at(0x17ff), 1);
    assert_int_equal(at(0x1800), -1);
    assert_int_equal(at(0x2fff), 2);
    assert_int_equal(at(UINT64_MAX), -1);
}

static void a_new_region_cuts_what_was_there(void **state)
{
    release(state);
    add(0x1000, 0x3000, 1);
    add(0x4000, 0x6000, 2);
    assert_true(add(0x2000, 0x5000, 3));
    assert_int_equal(at(0x1fff), 1);
    assert_int_equal(at(0x2000), 3);
    assert_int_equal(at(0x4fff), 3);
    assert_int_equal(at(0x5000), 2);
    assert_int_equal(regions.items.count, 3);
    /* What is left of the second starts later in its file. */
    assert_int_equal(regions_find(&regions, 0x5000)->fileoff, 0x1000);
}

static void a_region_inside_another_splits_it(void **state)
{
    release(state);
    add(0x1000, 0x9000, 1);
    add(0x3000, 0x4000, 2);
    assert_int_equal(at(0x2fff), 1);
    assert_int_equal(at(0x3000), 2);
    assert_int_equal(at(0x4000), 1);
    assert_int_equal(regions_find(&regions, 0x4000)->fileoff, 0x3000);
    assert_int_equal(regions.items.count, 3);
}

static void a_region_over_several_takes_their_place(void **state)
{
    release(state);
    for (uint64_t i = 1; i < 9; i++)
        add(i * 0x1000, i * 0x1000 + 0x800, (uint32_t)i);
    add(0, 0x10000, 42);
    assert_int_equal(regions.items.count, 1);
    assert_int_equal(at(0x4000), 42);
}

static void the_same_mapping_again_changes_nothing(void **state)
{
    release(state);
    add(0x1000, 0x3000, 1);
    assert_false(add(0x1000, 0x3000, 1));
    struct region grown = {
        .start_avma = 0x2000, .end_avma = 0x5000, .fileoff = 0x1000, .module = 1};
    bool replaced;
    assert_int_equal(regions_add(&regions, &grown, &replaced), 0);
    assert_false(replaced);
}

static void empty_and_too_many_regions_are_refused(void **state)
{
    release(state);
    struct region region = {.start_avma = 5, .end_avma = 5};
    bool replaced;
    assert_int_equal(regions_add(&regions, &region, &replaced), -EINVAL);
    for (uint64_t i = 0; i < REGIONS_MOST - 1; i++)
        add(i * 16, i * 16 + 8, 1);
    region = (struct region){.start_avma = UINT64_MAX - 8, .end_avma = UINT64_MAX};
    assert_int_equal(regions_add(&regions, &region, &replaced), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_found_in_their_region),
        cmocka_unit_test(a_new_region_cuts_what_was_there),
        cmocka_unit_test(a_region_inside_another_splits_it),
        cmocka_unit_test(a_region_over_several_takes_their_place),
        cmocka_unit_test(the_same_mapping_again_changes_nothing),
        cmocka_unit_test(empty_and_too_many_regions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
