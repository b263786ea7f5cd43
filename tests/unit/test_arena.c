#include "base/arena.h"

#include "failing_malloc.h"
#include "unit.h"

/* Enough blocks of growing size to need several chunks. */
enum { BLOCKS = 500 };

static void fill_blocks(struct arena *arena, unsigned char *blocks[BLOCKS])
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = arena_alloc(arena, i);
        assert_non_null(blocks[i]);
        memset(blocks[i], (int)(i % 256), i);
    }
}

static void check_blocks(unsigned char *const blocks[BLOCKS])
{
    for (size_t i = 0; i < BLOCKS; i++) {
        for (size_t j = 0; j < i; j++)
            assert_int_equal(blocks[i][j], i % 256);
    }
}

static void memory_is_zeroed(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena);
    for (size_t size = 1; size < 3000; size += 7) {
        unsigned char *memory = arena_alloc(&arena, size);
        assert_non_null(memory);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xff, size);
    }
    arena_done(&arena);
}

static void memory_is_aligned_for_any_type(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t size = 1; size < 100; size++)
        assert_int_equal((uintptr_t)arena_alloc(&arena, size) % _Alignof(max_align_t), 0);
    arena_done(&arena);
}

static void blocks_keep_their_place_and_content(void **state)
{
    (void)state;
    struct arena arena = {0};
    unsigned char *blocks[BLOCKS];
    fill_blocks(&arena, blocks);
    check_blocks(blocks);
    arena_done(&arena);
}

static void a_block_may_be_larger_than_any_chunk(void **state)
{
    (void)state;
    enum { LARGE = 3 << 20 };
    struct arena arena = {0};
    unsigned char *blocks[BLOCKS];
    fill_blocks(&arena, blocks);
    char *large = arena_alloc(&arena, LARGE), *small = arena_alloc(&arena, 1);
    assert_non_null(large);
    assert_non_null(small);
    memset(large, 1, LARGE);
    assert_int_equal(*small, 0);
    check_blocks(blocks);
    arena_done(&arena);
}

static void a_copy_has_a_nul_behind_it(void **state)
{
    (void)state;
    struct arena arena = {0};
    char *copy = arena_copy(&arena, "a\0bcd", 4);
    assert_memory_equal(copy, "a\0bc", 5);
    arena_done(&arena);
}

static void a_copy_of_nothing_is_the_empty_string(void **state)
{
    (void)state;
    struct arena arena = {0};
    assert_string_equal(arena_copy(&arena, NULL, 0), "");
    arena_done(&arena);
}

static void sizes_that_no_memory_can_hold_give_null(void **state)
{
    (void)state;
    struct arena arena = {0};
    for (size_t less = 0; less < 100; less++)
        assert_null(arena_alloc(&arena, SIZE_MAX - less));
    assert_null(arena_copy(&arena, "", SIZE_MAX));
    assert_non_null(arena_alloc(&arena, 1));
    arena_done(&arena);
}

static void shortage_gives_null_and_spares_what_was_there(void **state)
{
    (void)state;
    struct arena arena = {0};
    unsigned char *blocks[BLOCKS];
    fill_blocks(&arena, blocks);
    failing_malloc_after(0);
    assert_null(arena_alloc(&arena, 1 << 20));
    assert_true(failing_malloc_stop());
    failing_malloc_after(0);
    assert_null(arena_copy(&arena, blocks[1], 1 << 20));
    assert_true(failing_malloc_stop());
    check_blocks(blocks);
    char *next = arena_alloc(&arena, 1 << 20);
    assert_non_null(next);
    assert_int_equal(next[(1 << 20) - 1], 0);
    check_blocks(blocks);
    arena_done(&arena);
}

static void a_released_arena_is_an_empty_one(void **state)
{
    (void)state;
    struct arena arena = {0};
    memset(arena_alloc(&arena, 100), 0xff, 100);
    arena_done(&arena);
    assert_null(arena.chunks);
    assert_string_equal(arena_copy(&arena, "again", 5), "again");
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(memory_is_aligned_for_any_type),
        cmocka_unit_test(blocks_keep_their_place_and_content),
        cmocka_unit_test(a_block_may_be_larger_than_any_chunk),
        cmocka_unit_test(a_copy_has_a_nul_behind_it),
        cmocka_unit_test(a_copy_of_nothing_is_the_empty_string),
        cmocka_unit_test(sizes_that_no_memory_can_hold_give_null),
        cmocka_unit_test(shortage_gives_null_and_spares_what_was_there),
        cmocka_unit_test(a_released_arena_is_an_empty_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
