#include "base/strings.h"

#include "failing_malloc.h"
#include "unit.h"

#include <stdio.h>

static struct strings begin(void)
{
    struct strings strings;
    assert_int_equal(strings_init(&strings), 0);
    return strings;
}

static uint32_t intern(struct strings *strings, const char *bytes, size_t length)
{
    uint32_t id = UINT32_MAX;
    assert_int_equal(strings_intern(strings, bytes, length, &id), 0);
    return id;
}

static uint32_t intern_number(struct strings *strings, unsigned number)
{
    char text[16];
    int length = snprintf(text, sizeof text, "name %u", number);
    return intern(strings, text, (size_t)length);
}

static void assert_number(const struct strings *strings, uint32_t id, unsigned number)
{
    char text[16];
    int length = snprintf(text, sizeof text, "name %u", number);
    assert_int_equal(strings_get(strings, id).length, length);
    assert_string_equal(strings_get(strings, id).bytes, text);
}

static void the_empty_string_is_number_0(void **state)
{
    (void)state;
    struct strings strings = begin();
    assert_int_equal(strings_get(&strings, 0).length, 0);
    assert_string_equal(strings_get(&strings, 0).bytes, "");
    assert_int_equal(intern(&strings, "", 0), 0);
    assert_int_equal(intern(&strings, NULL, 0), 0);
    strings_done(&strings);
}

static void numbers_are_dense_in_the_order_of_appearance(void **state)
{
    (void)state;
    struct strings strings = begin();
    for (unsigned i = 1; i <= 5000; i++)
        assert_int_equal(intern_number(&strings, i), i);
    for (unsigned i = 5000; i >= 1; i--)
        assert_int_equal(intern_number(&strings, i), i);
    assert_int_equal(strings.texts.count, 5001);
    strings_done(&strings);
}

static void texts_never_move(void **state)
{
    (void)state;
    struct strings strings = begin();
    const char *first = strings_get(&strings, intern_number(&strings, 1)).bytes;
    for (unsigned i = 2; i <= 5000; i++)
        intern_number(&strings, i);
    assert_ptr_equal(strings_get(&strings, 1).bytes, first);
    for (unsigned i = 1; i <= 5000; i++)
        assert_number(&strings, i, i);
    strings_done(&strings);
}

static void texts_are_copies(void **state)
{
    (void)state;
    struct strings strings = begin();
    char text[] = "abc";
    uint32_t id = intern(&strings, text, 3);
    text[0] = 'x';
    assert_string_equal(strings_get(&strings, id).bytes, "abc");
    assert_true(intern(&strings, text, 3) != id);
    strings_done(&strings);
}

static void texts_may_hold_any_bytes(void **state)
{
    (void)state;
    struct strings strings = begin();
    uint32_t with_nul = intern(&strings, "a\0b", 3), other = intern(&strings, "a\0c", 3);
    uint32_t shorter = intern(&strings, "a", 1), nul = intern(&strings, "\0", 1);
    assert_int_equal(with_nul, 1);
    assert_int_equal(other, 2);
    assert_int_equal(shorter, 3);
    assert_int_equal(nul, 4);
    assert_bytes(strings_get(&strings, with_nul).bytes, strings_get(&strings, with_nul).length,
                 "a\0b");
    assert_int_equal(strings_get(&strings, with_nul).bytes[3], '\0');
    strings_done(&strings);
}

static void shortage_at_the_start_leaves_nothing_to_release(void **state)
{
    (void)state;
    long shortages = 0;
    for (;; shortages++) {
        struct strings strings;
        failing_malloc_after(shortages);
        int result = strings_init(&strings);
        if (!failing_malloc_stop()) {
            assert_int_equal(result, 0);
            strings_done(&strings);
            break;
        }
        assert_int_equal(result, -ENOMEM);
    }
    assert_true(shortages > 0);
}

/* Interns one string after another, the first time with a shortage at its nth allocation. */
static size_t intern_with_shortages(long nth)
{
    struct strings strings = begin();
    size_t shortages = 0;
    for (unsigned i = 1; i <= 1000; i++) {
        char text[16];
        uint32_t id = UINT32_MAX;
        int length = snprintf(text, sizeof text, "name %u", i);
        failing_malloc_after(nth);
        int result = strings_intern(&strings, text, (size_t)length, &id);
        if (failing_malloc_stop()) {
            shortages++;
            assert_int_equal(result, -ENOMEM);
            assert_int_equal(strings.texts.count, i);
            assert_int_equal(intern_number(&strings, i), i);
        } else {
            assert_int_equal(result, 0);
            assert_int_equal(id, i);
        }
    }
    for (unsigned i = 1; i <= 1000; i++) {
        assert_number(&strings, i, i);
        assert_int_equal(intern_number(&strings, i), i);
    }
    strings_done(&strings);
    return shortages;
}

static void shortage_leaves_the_table_as_it_was(void **state)
{
    (void)state;
    assert_true(intern_with_shortages(0) > 3);
    intern_with_shortages(1);
    intern_with_shortages(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_empty_string_is_number_0),
        cmocka_unit_test(numbers_are_dense_in_the_order_of_appearance),
        cmocka_unit_test(texts_never_move),
        cmocka_unit_test(texts_are_copies),
        cmocka_unit_test(texts_may_hold_any_bytes),
        cmocka_unit_test(shortage_at_the_start_leaves_nothing_to_release),
        cmocka_unit_test(shortage_leaves_the_table_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
