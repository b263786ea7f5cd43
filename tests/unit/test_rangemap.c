#include "base/rangemap.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>

static void add(struct rangemap *map, uint64_t start, uint64_t end, uint64_t time, uint32_t value)
{
    struct rangetree_range range = {.start = start, .end = end, .time = time, .value = value};
    assert_int_equal(rangemap_add(map, range), 0);
}

static void build(struct rangemap *map)
{
    assert_int_equal(rangemap_build(map), 0);
}

/* The value at an address and a time, or RANGEMAP_NOTHING. */
static uint32_t find(const struct rangemap *map, uint64_t address, uint64_t time)
{
    uint32_t value;
    return rangemap_find(map, address, time, &value) ? value : RANGEMAP_NOTHING;
}

/* What find should say, by looking at all ranges. */
static uint32_t find_slowly(const struct rangetree_range *ranges, size_t count, uint64_t address,
                            uint64_t time)
{
    const struct rangetree_range *best = NULL;
    for (size_t i = 0; i < count; i++) {
        if (ranges[i].start <= address && address < ranges[i].end && ranges[i].time <= time &&
            (!best || ranges[i].time >= best->time))
            best = &ranges[i];
    }
    return best ? best->value : RANGEMAP_NOTHING;
}

/* Compares with find_slowly: `count` ranges between addresses below `addresses`, multiplied by
 * `scale` so that wide addresses are tried too. */
static void compare_with_oracle(size_t count, uint64_t addresses, uint64_t scale, uint64_t times)
{
    static struct rangetree_range ranges[4000];
    struct rangemap map = {0};
    uint64_t random = 88172645463325252u + count;
    for (size_t i = 0; i < count; i++) {
        uint64_t start = next_random(&random) % addresses;
        uint64_t most = next_random(&random) % 8 ? 1 + addresses / 50 : addresses;
        uint64_t size = 1 + next_random(&random) % most;
        uint64_t end = start + size < addresses ? start + size : addresses;
        bool nothing = next_random(&random) % 10 == 0;
        ranges[i] = (struct rangetree_range){.start = start * scale,
                                             .end = end * scale,
                                             .time = next_random(&random) % times,
                                             .value = nothing ? RANGEMAP_NOTHING : (uint32_t)i};
        assert_int_equal(rangemap_add(&map, ranges[i]), 0);
    }
    build(&map);
    for (size_t i = 0; i < 10000; i++) {
        uint64_t address = next_random(&random) % (addresses + 2) * scale + i % 3 - 1;
        uint64_t time = i % 10 ? next_random(&random) % (times + 1) : RANGEMAP_LATEST;
        assert_int_equal(find(&map, address, time), find_slowly(ranges, count, address, time));
    }
    rangemap_done(&map);
}

static void random_ranges_are_answered_like_a_linear_search(void **state)
{
    (void)state;
    compare_with_oracle(4000, 3000, 1, 200);
    compare_with_oracle(3000, 100000, 1, 5);
    compare_with_oracle(3000, 1u << 20, 1ull << 43, 1ull << 60);
}

static void trees_of_every_small_shape_are_answered_like_a_linear_search(void **state)
{
    (void)state;
    for (size_t count = 1; count <= 40; count++)
        compare_with_oracle(count, 60, 1, 10);
}

static void an_empty_map_finds_nothing(void **state)
{
    (void)state;
    struct rangemap map = {0};
    assert_int_equal(find(&map, 0, RANGEMAP_LATEST), RANGEMAP_NOTHING);
    build(&map);
    assert_int_equal(find(&map, 0, RANGEMAP_LATEST), RANGEMAP_NOTHING);
    rangemap_done(&map);
}

static void a_range_covers_its_start_but_not_its_end(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 10, 20, 0, 1);
    build(&map);
    assert_int_equal(find(&map, 9, 0), RANGEMAP_NOTHING);
    assert_int_equal(find(&map, 10, 0), 1);
    assert_int_equal(find(&map, 19, 0), 1);
    assert_int_equal(find(&map, 20, 0), RANGEMAP_NOTHING);
    rangemap_done(&map);
}

static void a_gap_between_ranges_is_not_covered(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 30, 40, 0, 2);
    add(&map, 10, 20, 0, 1);
    build(&map);
    assert_int_equal(find(&map, 19, 0), 1);
    assert_int_equal(find(&map, 25, 0), RANGEMAP_NOTHING);
    assert_int_equal(find(&map, 30, 0), 2);
    rangemap_done(&map);
}

static void a_range_is_valid_from_its_time_on(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 10, 20, 5, 1);
    build(&map);
    assert_int_equal(find(&map, 10, 4), RANGEMAP_NOTHING);
    assert_int_equal(find(&map, 10, 5), 1);
    assert_int_equal(find(&map, 10, RANGEMAP_LATEST), 1);
    rangemap_done(&map);
}

static void a_later_range_hides_an_earlier_one_from_its_time_on(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 15, 25, 7, 2); /* later, though added first */
    add(&map, 10, 20, 5, 1);
    build(&map);
    assert_int_equal(find(&map, 15, 6), 1);
    assert_int_equal(find(&map, 15, 7), 2);
    assert_int_equal(find(&map, 14, 7), 1);
    assert_int_equal(find(&map, 24, 6), RANGEMAP_NOTHING);
    rangemap_done(&map);
}

static void of_equal_times_the_one_added_last_hides_the_other(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 10, 20, 5, 1);
    add(&map, 10, 20, 5, 2);
    add(&map, 12, 14, 9, 4); /* out of order, so that the ranges have to be sorted */
    add(&map, 0, 100, 5, 3);
    add(&map, 15, 16, 5, 5);
    build(&map);
    assert_int_equal(find(&map, 10, 5), 3);
    assert_int_equal(find(&map, 15, 5), 5);
    assert_int_equal(find(&map, 12, 8), 3);
    assert_int_equal(find(&map, 12, 9), 4);
    rangemap_done(&map);
}

static void nothing_ends_what_was_there(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 10, 20, 5, 1);
    add(&map, 12, 14, 6, RANGEMAP_NOTHING);
    add(&map, 13, 15, 7, 2);
    build(&map);
    assert_int_equal(find(&map, 12, 5), 1);
    assert_int_equal(find(&map, 12, 6), RANGEMAP_NOTHING);
    assert_int_equal(find(&map, 13, 6), RANGEMAP_NOTHING);
    assert_int_equal(find(&map, 13, 7), 2);
    assert_int_equal(find(&map, 11, 7), 1);
    rangemap_done(&map);
}

static void ranges_may_reach_to_both_ends_of_the_address_space(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 0, UINT64_MAX, 0, 1);
    add(&map, 0, 1, 1, 2);
    add(&map, UINT64_MAX - 1, UINT64_MAX, UINT64_MAX, 3);
    build(&map);
    assert_int_equal(find(&map, 0, 0), 1);
    assert_int_equal(find(&map, 0, 1), 2);
    assert_int_equal(find(&map, 1, 1), 1);
    assert_int_equal(find(&map, UINT64_MAX - 1, UINT64_MAX - 1), 1);
    assert_int_equal(find(&map, UINT64_MAX - 1, UINT64_MAX), 3);
    assert_int_equal(find(&map, UINT64_MAX, UINT64_MAX), RANGEMAP_NOTHING);
    rangemap_done(&map);
}

static void a_range_without_addresses_is_refused(void **state)
{
    (void)state;
    struct rangemap map = {0};
    assert_int_equal(rangemap_add(&map, (struct rangetree_range){.start = 5, .end = 5}), -EINVAL);
    assert_int_equal(rangemap_add(&map, (struct rangetree_range){.start = 5, .end = 4}), -EINVAL);
    add(&map, 10, 20, 0, 1);
    build(&map);
    assert_int_equal(find(&map, 5, 0), RANGEMAP_NOTHING);
    assert_int_equal(find(&map, 10, 0), 1);
    rangemap_done(&map);
}

static void ranges_that_start_inside_another_are_counted(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 10, 20, 0, 1);
    add(&map, 20, 30, 0, 2); /* touches only */
    add(&map, 40, 50, 0, 3);
    assert_int_equal(rangemap_build(&map), 0);
    assert_int_equal(map.overlap_count, 0);
    rangemap_done(&map);
    add(&map, 10, 20, 0, 1);
    add(&map, 10, 20, 1, 2);
    add(&map, 15, 30, 0, 3);
    build(&map);
    assert_int_equal(map.overlap_count, 2);
    rangemap_done(&map);
}

/* Every range covers half of all others: lists of all versions per cell would be quadratic. */
static void deeply_nested_ranges_are_all_found(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    struct rangemap map = {0};
    for (uint32_t i = 0; i < DEPTH; i++)
        add(&map, i, 2 * DEPTH - i, i, i);
    build(&map);
    for (uint32_t i = 0; i < DEPTH; i += 997) {
        assert_int_equal(find(&map, i, RANGEMAP_LATEST), i);
        assert_int_equal(find(&map, DEPTH, i), i);
        assert_int_equal(find(&map, 2 * DEPTH - 1 - i, RANGEMAP_LATEST), i);
    }
    rangemap_done(&map);
}

static void shortage_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    long shortages = 0;
    for (bool done = false; !done; shortages += !done) {
        struct rangemap map = {0};
        int error = 0;
        failing_malloc_after(shortages);
        for (uint32_t i = 0; i < 100 && !error; i++)
            error = rangemap_add(&map, (struct rangetree_range){.start = i, .end = i + 5});
        if (!error)
            error = rangemap_build(&map);
        done = !failing_malloc_stop();
        assert_int_equal(error, done ? 0 : -ENOMEM);
        rangemap_done(&map);
    }
    assert_true(shortages > 6);
}

static void a_shortage_while_adding_keeps_what_was_added(void **state)
{
    (void)state;
    struct rangemap map = {0};
    add(&map, 10, 20, 0, 1);
    map.ranges.capacity = map.ranges.count; /* as if it were full */
    failing_malloc_after(0);
    assert_int_equal(rangemap_add(&map, (struct rangetree_range){.start = 1, .end = 2}), -ENOMEM);
    failing_malloc_stop();
    build(&map);
    assert_int_equal(find(&map, 15, 0), 1);
    assert_int_equal(find(&map, 1, 0), RANGEMAP_NOTHING);
    rangemap_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_ranges_are_answered_like_a_linear_search),
        cmocka_unit_test(trees_of_every_small_shape_are_answered_like_a_linear_search),
        cmocka_unit_test(an_empty_map_finds_nothing),
        cmocka_unit_test(a_range_covers_its_start_but_not_its_end),
        cmocka_unit_test(a_gap_between_ranges_is_not_covered),
        cmocka_unit_test(a_range_is_valid_from_its_time_on),
        cmocka_unit_test(a_later_range_hides_an_earlier_one_from_its_time_on),
        cmocka_unit_test(of_equal_times_the_one_added_last_hides_the_other),
        cmocka_unit_test(nothing_ends_what_was_there),
        cmocka_unit_test(ranges_may_reach_to_both_ends_of_the_address_space),
        cmocka_unit_test(a_range_without_addresses_is_refused),
        cmocka_unit_test(ranges_that_start_inside_another_are_counted),
        cmocka_unit_test(deeply_nested_ranges_are_all_found),
        cmocka_unit_test(shortage_is_reported_and_leaks_nothing),
        cmocka_unit_test(a_shortage_while_adding_keeps_what_was_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
