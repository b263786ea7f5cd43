#include "base/vector.h"

#include "failing_malloc.h"
#include "unit.h"

struct row {
    uint64_t number;
    char letter;
};

typedef VECTOR(struct row) rows_t;

static void push_rows(rows_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct row row = {.number = i * i, .letter = 'x'};
        assert_int_equal(vector_push(rows, row), 0);
    }
}

static void assert_rows(const rows_t *rows, size_t count)
{
    assert_int_equal(rows->count, count);
    assert_true(rows->capacity >= count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows->items[i].number, i * i);
        assert_int_equal(rows->items[i].letter, 'x');
    }
}

static void pushed_items_stay_in_order(void **state)
{
    (void)state;
    rows_t rows = {0};
    push_rows(&rows, 10000);
    assert_rows(&rows, 10000);
    vector_done(&rows);
}

static void growth_is_by_half_at_least(void **state)
{
    (void)state;
    rows_t rows = {0};
    size_t moves = 0, capacity = 0;
    for (size_t i = 0; i < 100000; i++) {
        assert_int_equal(vector_push(&rows, ((struct row){0})), 0);
        if (rows.capacity == capacity)
            continue;
        assert_true(rows.capacity >= capacity + capacity / 2);
        capacity = rows.capacity;
        moves++;
    }
    assert_true(moves < 40);
    vector_done(&rows);
}

static void reserved_room_is_used_without_allocation(void **state)
{
    (void)state;
    rows_t rows = {0};
    assert_int_equal(vector_reserve(&rows, 1000), 0);
    assert_true(rows.capacity >= 1000);
    assert_int_equal(rows.count, 0);
    failing_malloc_after(0);
    push_rows(&rows, 1000);
    assert_false(failing_malloc_stop());
    assert_rows(&rows, 1000);
    vector_done(&rows);
}

static void reserving_less_than_there_is_changes_nothing(void **state)
{
    (void)state;
    rows_t rows = {0};
    push_rows(&rows, 100);
    size_t capacity = rows.capacity;
    assert_int_equal(vector_reserve(&rows, 1), 0);
    assert_int_equal(vector_reserve(&rows, 0), 0);
    assert_int_equal(rows.capacity, capacity);
    assert_rows(&rows, 100);
    vector_done(&rows);
}

static void shortage_leaves_the_vector_as_it_was(void **state)
{
    (void)state;
    rows_t rows = {0};
    size_t shortages = 0;
    for (size_t i = 0; i < 1000; i++) {
        struct row row = {.number = i * i, .letter = 'x'};
        failing_malloc_after(0);
        int result = vector_push(&rows, row);
        if (failing_malloc_stop()) {
            shortages++;
            assert_int_equal(result, -ENOMEM);
            assert_rows(&rows, i);
            result = vector_push(&rows, row);
        }
        assert_int_equal(result, 0);
    }
    assert_true(shortages > 1);
    assert_rows(&rows, 1000);
    vector_done(&rows);
}

static void a_size_that_wraps_is_a_shortage(void **state)
{
    (void)state;
    rows_t rows = {0};
    push_rows(&rows, 10);
    assert_int_equal(vector_reserve(&rows, SIZE_MAX), -ENOMEM);
    assert_int_equal(vector_reserve(&rows, SIZE_MAX / sizeof(struct row) + 2), -ENOMEM);
    assert_rows(&rows, 10);
    vector_done(&rows);
}

static void a_released_vector_is_an_empty_one(void **state)
{
    (void)state;
    rows_t rows = {0};
    push_rows(&rows, 10);
    vector_done(&rows);
    assert_null(rows.items);
    assert_int_equal(rows.count, 0);
    push_rows(&rows, 20);
    assert_rows(&rows, 20);
    vector_done(&rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushed_items_stay_in_order),
        cmocka_unit_test(growth_is_by_half_at_least),
        cmocka_unit_test(reserved_room_is_used_without_allocation),
        cmocka_unit_test(reserving_less_than_there_is_changes_nothing),
        cmocka_unit_test(shortage_leaves_the_vector_as_it_was),
        cmocka_unit_test(a_size_that_wraps_is_a_shortage),
        cmocka_unit_test(a_released_vector_is_an_empty_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
