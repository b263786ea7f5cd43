#include "base/text.h"

#include "capture.h"
#include "unit.h"

static const char *print(const char *bytes, size_t length, size_t limit)
{
    FILE *out = capture_begin();
    text_print(out, bytes, length, limit);
    return capture_end(out);
}

#define PRINT(literal, limit) print(literal, sizeof(literal) - 1, limit)

static const char *nearest(const char *wrong)
{
    static const char *const words[] = {"record", "report", "export", "stat", "top"};
    return text_nearest(wrong, words, COUNT(words));
}

static const char *number(uint64_t value)
{
    static char buffer[TEXT_NUMBER_BYTES];
    return text_number(value, buffer);
}

static void utf8_is_printed_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(PRINT("foo:bäz €\xf0\x9f\x90\x8d", 0), "foo:bäz €\xf0\x9f\x90\x8d");
}

static void control_characters_are_printed_as_numbers(void **state)
{
    (void)state;
    assert_string_equal(PRINT("a\0\n\t\x1b[2J\x7f", 0), "a\\x00\\x0a\\x09\\x1b[2J\\x7f");
}

static void c1_control_characters_are_printed_as_numbers(void **state)
{
    (void)state;
    assert_string_equal(PRINT("\xc2\x9b\xc2\x80 \xc2\xa0", 0), "\\xc2\\x9b\\xc2\\x80 \xc2\xa0");
}

static void bytes_that_are_not_utf8_are_printed_as_numbers(void **state)
{
    (void)state;
    assert_string_equal(PRINT("a\xff\xe2\x82z\xc3", 0), "a\\xff\\xe2\\x82z\\xc3");
}

static void a_text_of_the_limit_is_not_cut(void **state)
{
    (void)state;
    assert_string_equal(PRINT("123456", 6), "123456");
}

static void a_longer_text_is_cut_in_the_middle(void **state)
{
    (void)state;
    assert_string_equal(PRINT("abcdefghijklmnopqrstuvwxyz", 9), "abcdef…xyz");
}

static void a_cut_never_goes_through_a_character(void **state)
{
    (void)state;
    const char text[] = "ä€ä€ä€ä€ä€ä€ä€ä€";
    for (size_t limit = 1; limit < sizeof text - 1; limit++) {
        const char *printed = PRINT(text, limit);
        assert_null(strchr(printed, '\\'));
        assert_non_null(strstr(printed, "…"));
    }
}

static void a_cut_text_is_within_the_limit(void **state)
{
    (void)state;
    const char text[] = "a€€€€b€€€€c€€€€d€€€€";
    for (size_t limit = 1; limit < sizeof text - 1; limit++)
        assert_true(strlen(PRINT(text, limit)) <= limit + strlen("…"));
}

static void a_cut_text_leaves_something_out(void **state)
{
    (void)state;
    assert_string_not_equal(PRINT("abé", 3), "ab…é");
}

/* Bytes that look like the middle of a character have no start to which the cut could move. */
static void a_text_that_is_not_utf8_is_cut_too(void **state)
{
    (void)state;
    char bytes[1000];
    memset(bytes, 0x80, sizeof bytes);
    assert_true(strlen(print(bytes, sizeof bytes, 10)) <= 10 * strlen("\\x80") + strlen("…"));
}

static void utf8_characters_have_their_length(void **state)
{
    (void)state;
    assert_int_equal(text_utf8_length("a", 1), 1);
    assert_int_equal(text_utf8_length("\0", 1), 1);
    assert_int_equal(text_utf8_length("\x7f", 1), 1);
    assert_int_equal(text_utf8_length("\xc2\x80", 2), 2);
    assert_int_equal(text_utf8_length("\xdf\xbf.", 3), 2);
    assert_int_equal(text_utf8_length("\xe0\xa0\x80", 3), 3);
    assert_int_equal(text_utf8_length("\xed\x9f\xbf", 3), 3);
    assert_int_equal(text_utf8_length("\xef\xbf\xbf", 3), 3);
    assert_int_equal(text_utf8_length("\xf0\x90\x80\x80", 4), 4);
    assert_int_equal(text_utf8_length("\xf4\x8f\xbf\xbf.", 5), 4);
}

static void what_is_not_utf8_has_no_length(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "\x80",             /* the middle of a character */
        "\xc0\x80",         /* longer than needed */
        "\xc1\xbf",         /* the same */
        "\xe0\x9f\xbf",     /* the same */
        "\xf0\x8f\xbf\xbf", /* the same */
        "\xed\xa0\x80",     /* half of a UTF-16 pair */
        "\xed\xbf\xbf",     /* the same */
        "\xf4\x90\x80\x80", /* beyond U+10FFFF */
        "\xf5\x80\x80\x80", /* the same */
        "\xff",             /* never used */
        "\xc3(",            /* the second byte is none */
        "\xe2\x82(",        /* the third */
        "\xf0\x9f\x90(",    /* the fourth */
    };
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_int_equal(text_utf8_length(wrong[i], strlen(wrong[i])), 0);
}

static void a_character_that_is_cut_off_has_no_length(void **state)
{
    (void)state;
    const char snake[] = "\xf0\x9f\x90\x8d";
    for (size_t length = 0; length < 4; length++) {
        uint8_t *cut = exact_copy(snake, length);
        assert_int_equal(text_utf8_length((const char *)cut, length), 0);
        free(cut);
    }
}

static void numbers_have_separators(void **state)
{
    (void)state;
    assert_string_equal(number(0), "0");
    assert_string_equal(number(999), "999");
    assert_string_equal(number(1000), "1,000");
    assert_string_equal(number(1234567), "1,234,567");
    assert_string_equal(number(UINT64_MAX), "18,446,744,073,709,551,615");
}

static void the_nearest_word_is_one_slip_away(void **state)
{
    (void)state;
    assert_string_equal(nearest("recrod"), "record"); /* swapped */
    assert_string_equal(nearest("reord"), "record");  /* left out */
    assert_string_equal(nearest("staat"), "stat");    /* doubled */
    assert_string_equal(nearest("exporr"), "export"); /* replaced */
    assert_string_equal(nearest("tpo"), "top");
}

static void the_start_of_a_word_is_near_it(void **state)
{
    (void)state;
    assert_string_equal(nearest("rep"), "report");
    assert_string_equal(nearest("ex"), "export");
}

static void of_two_near_words_the_nearer_wins(void **state)
{
    (void)state;
    assert_string_equal(nearest("eport"), "report");
    assert_string_equal(nearest("xport"), "export");
}

static void other_words_are_not_near(void **state)
{
    (void)state;
    assert_null(nearest("compile"));
    assert_null(nearest("a-word-that-is-much-longer-than-any-command-could-ever-be"));
    assert_null(text_nearest("record", NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_printed_as_it_is),
        cmocka_unit_test(control_characters_are_printed_as_numbers),
        cmocka_unit_test(c1_control_characters_are_printed_as_numbers),
        cmocka_unit_test(bytes_that_are_not_utf8_are_printed_as_numbers),
        cmocka_unit_test(a_text_of_the_limit_is_not_cut),
        cmocka_unit_test(a_longer_text_is_cut_in_the_middle),
        cmocka_unit_test(a_cut_never_goes_through_a_character),
        cmocka_unit_test(a_cut_text_is_within_the_limit),
        cmocka_unit_test(a_cut_text_leaves_something_out),
        cmocka_unit_test(a_text_that_is_not_utf8_is_cut_too),
        cmocka_unit_test(utf8_characters_have_their_length),
        cmocka_unit_test(what_is_not_utf8_has_no_length),
        cmocka_unit_test(a_character_that_is_cut_off_has_no_length),
        cmocka_unit_test(numbers_have_separators),
        cmocka_unit_test(the_nearest_word_is_one_slip_away),
        cmocka_unit_test(the_start_of_a_word_is_near_it),
        cmocka_unit_test(of_two_near_words_the_nearer_wins),
        cmocka_unit_test(other_words_are_not_near),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
