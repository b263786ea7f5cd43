#include "base/number.h"

#include "unit.h"

static void assert_number(const char *text, unsigned base, uint64_t wanted, const char *rest)
{
    uint64_t number;
    assert_true(number_take(&text, base, &number));
    assert_int_equal(number, wanted);
    assert_string_equal(text, rest);
}

static void assert_none(const char *text, unsigned base, const char *rest)
{
    uint64_t number;
    assert_false(number_take(&text, base, &number));
    assert_string_equal(text, rest);
}

static void digits_make_a_number(void **state)
{
    (void)state;
    assert_number("3.13", 10, 3, ".13");
    assert_number("0", 10, 0, "");
    assert_number("7ffE-1", 16, 0x7ffe, "-1");
    assert_number("12ab", 10, 12, "ab");
    assert_number("18446744073709551615", 10, UINT64_MAX, "");
}

static void other_characters_do_not(void **state)
{
    (void)state;
    assert_none("", 10, "");
    assert_none("-1", 10, "-1");
    assert_none(" 1", 10, " 1");
    assert_none("g", 16, "g");
}

static void too_many_digits_do_not(void **state)
{
    (void)state;
    assert_none("18446744073709551616,", 10, ",");
    assert_none("10000000000000000x", 16, "x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digits_make_a_number),
        cmocka_unit_test(other_characters_do_not),
        cmocka_unit_test(too_many_digits_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
