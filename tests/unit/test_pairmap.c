#include "profile/pairmap.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>

static void nothing_is_in_an_empty_map(void **state)
{
    (void)state;
    struct pairmap map = {0};
    uint32_t value;
    assert_false(pairmap_get(&map, 0, 0, &value));
}

static void both_halves_of_a_key_count(void **state)
{
    (void)state;
    struct pairmap map = {0};
    uint32_t value;
    assert_int_equal(pairmap_set(&map, 1, 2, 3), 0);
    assert_int_equal(pairmap_set(&map, 2, 1, 4), 0);
    assert_false(pairmap_get(&map, 1, 1, &value));
    assert_true(pairmap_get(&map, 1, 2, &value));
    assert_int_equal(value, 3);
    assert_int_equal(pairmap_set(&map, 1, 2, 0), 0);
    assert_true(pairmap_get(&map, 1, 2, &value));
    assert_int_equal(value, 0);
    assert_int_equal(map.count, 2);
    pairmap_done(&map);
}

static void many_keys_are_all_found_again(void **state)
{
    (void)state;
    struct pairmap map = {0};
    uint32_t value;
    for (uint32_t i = 0; i < 50000; i++)
        assert_int_equal(pairmap_set(&map, (uint64_t)i << 12, i % 7, i), 0);
    for (uint32_t i = 0; i < 50000; i++) {
        assert_true(pairmap_get(&map, (uint64_t)i << 12, i % 7, &value));
        assert_int_equal(value, i);
    }
    pairmap_done(&map);
}

static void short_memory_leaves_the_map_as_it_was(void **state)
{
    (void)state;
    struct pairmap map = {0};
    uint32_t value;
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(pairmap_set(&map, i, 0, i), 0);
    failing_malloc_after(0);
    assert_int_equal(pairmap_set(&map, 40, 0, 40), -ENOMEM);
    assert_true(failing_malloc_stop());
    assert_false(pairmap_get(&map, 40, 0, &value));
    assert_true(pairmap_get(&map, 39, 0, &value));
    pairmap_done(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_in_an_empty_map),
        cmocka_unit_test(both_halves_of_a_key_count),
        cmocka_unit_test(many_keys_are_all_found_again),
        cmocka_unit_test(short_memory_leaves_the_map_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
