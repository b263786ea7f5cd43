#include "base/hashtable.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>

/* How many values a hash has, and their sum. */
static size_t count_values(const struct hashtable *table, uint64_t hash, uint64_t *ret_sum)
{
    size_t count = 0;
    uint64_t value;
    *ret_sum = 0;
    struct hashtable_probe probe = hashtable_probe(table, hash);
    while (hashtable_next(&probe, &value)) {
        count++;
        *ret_sum += value;
    }
    return count;
}

static void assert_only_value(const struct hashtable *table, uint64_t hash, uint64_t value)
{
    uint64_t sum;
    assert_int_equal(count_values(table, hash, &sum), 1);
    assert_int_equal(sum, value);
}

static void assert_absent(const struct hashtable *table, uint64_t hash)
{
    uint64_t sum;
    assert_int_equal(count_values(table, hash, &sum), 0);
}

static void an_empty_table_has_nothing(void **state)
{
    (void)state;
    struct hashtable table = {0};
    assert_absent(&table, 0);
    assert_absent(&table, 12345);
    hashtable_done(&table);
}

static void every_entry_is_found_again_after_growth(void **state)
{
    (void)state;
    enum { ENTRIES = 10000 };
    struct hashtable table = {0};
    for (uint64_t i = 0; i < ENTRIES; i++)
        assert_int_equal(hashtable_add(&table, hash_u64(i), i * 3), 0);
    assert_int_equal(table.count, ENTRIES);
    for (uint64_t i = 0; i < ENTRIES; i++)
        assert_only_value(&table, hash_u64(i), i * 3);
    for (uint64_t i = ENTRIES; i < 2 * ENTRIES; i++)
        assert_absent(&table, hash_u64(i));
    hashtable_done(&table);
}

static void values_that_share_a_hash_are_all_found(void **state)
{
    (void)state;
    struct hashtable table = {0};
    uint64_t sum;
    for (uint64_t i = 1; i <= 100; i++)
        assert_int_equal(hashtable_add(&table, 7, i), 0);
    assert_int_equal(hashtable_add(&table, 8, 1000), 0);
    assert_int_equal(count_values(&table, 7, &sum), 100);
    assert_int_equal(sum, 5050);
    assert_only_value(&table, 8, 1000);
    hashtable_done(&table);
}

/* All of these start at the last slot of any small table, so probing goes around its end. */
static void entries_are_found_around_the_end_of_the_table(void **state)
{
    (void)state;
    struct hashtable table = {0};
    for (uint64_t i = 0; i < 20; i++)
        assert_int_equal(hashtable_add(&table, i << 32 | UINT32_MAX, i), 0);
    for (uint64_t i = 0; i < 20; i++)
        assert_only_value(&table, i << 32 | UINT32_MAX, i);
    assert_absent(&table, 20ull << 32 | UINT32_MAX);
    hashtable_done(&table);
}

static void the_extreme_hashes_and_values_can_be_stored(void **state)
{
    (void)state;
    struct hashtable table = {0};
    assert_int_equal(hashtable_add(&table, 0, 0), 0);
    assert_int_equal(hashtable_add(&table, UINT64_MAX, UINT64_MAX - 1), 0);
    assert_only_value(&table, 0, 0);
    assert_only_value(&table, UINT64_MAX, UINT64_MAX - 1);
    hashtable_done(&table);
}

static void shortage_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    struct hashtable table = {0};
    size_t shortages = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        failing_malloc_after(0);
        int result = hashtable_add(&table, hash_u64(i), i);
        if (failing_malloc_stop()) {
            shortages++;
            assert_int_equal(result, -ENOMEM);
            assert_int_equal(table.count, i);
            assert_absent(&table, hash_u64(i));
            for (uint64_t j = 0; j < i; j++)
                assert_only_value(&table, hash_u64(j), j);
            result = hashtable_add(&table, hash_u64(i), i);
        }
        assert_int_equal(result, 0);
        assert_only_value(&table, hash_u64(i), i);
    }
    assert_true(shortages > 1);
    hashtable_done(&table);
}

static void a_released_table_is_an_empty_one(void **state)
{
    (void)state;
    struct hashtable table = {0};
    assert_int_equal(hashtable_add(&table, 1, 2), 0);
    hashtable_done(&table);
    assert_absent(&table, 1);
    assert_int_equal(hashtable_add(&table, 1, 3), 0);
    assert_only_value(&table, 1, 3);
    hashtable_done(&table);
}

static int compare_u64(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

static void hashes_of_numbers_are_distinct(void **state)
{
    (void)state;
    static uint64_t hashes[64 * 1024];
    for (uint64_t i = 0; i < COUNT(hashes); i++)
        hashes[i] = hash_u64(i % 2 ? i << 40 : i);
    qsort(hashes, COUNT(hashes), sizeof *hashes, compare_u64);
    for (size_t i = 1; i < COUNT(hashes); i++)
        assert_true(hashes[i - 1] != hashes[i]);
}

static void the_hash_of_bytes_depends_on_every_byte_and_on_the_length(void **state)
{
    (void)state;
    uint8_t bytes[20] = {0};
    for (size_t length = 0; length < sizeof bytes; length++) {
        uint64_t hash = hash_bytes(bytes, length);
        assert_int_equal(hash_bytes(bytes, length), hash);
        assert_true(hash_bytes(bytes, length + 1) != hash);
        for (size_t i = 0; i < length; i++) {
            bytes[i] = 1;
            assert_true(hash_bytes(bytes, length) != hash);
            bytes[i] = 0;
        }
    }
}

static void the_hash_of_bytes_does_not_depend_on_where_they_are(void **state)
{
    (void)state;
    char shifted[8 + 14];
    for (size_t shift = 0; shift < 8; shift++) {
        memcpy(shifted + shift, "a name of code", 14);
        assert_int_equal(hash_bytes(shifted + shift, 14), hash_bytes("a name of code", 14));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_has_nothing),
        cmocka_unit_test(every_entry_is_found_again_after_growth),
        cmocka_unit_test(values_that_share_a_hash_are_all_found),
        cmocka_unit_test(entries_are_found_around_the_end_of_the_table),
        cmocka_unit_test(the_extreme_hashes_and_values_can_be_stored),
        cmocka_unit_test(shortage_leaves_the_table_as_it_was),
        cmocka_unit_test(a_released_table_is_an_empty_one),
        cmocka_unit_test(hashes_of_numbers_are_distinct),
        cmocka_unit_test(the_hash_of_bytes_depends_on_every_byte_and_on_the_length),
        cmocka_unit_test(the_hash_of_bytes_does_not_depend_on_where_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
