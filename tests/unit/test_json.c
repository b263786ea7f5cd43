#include "base/json.h"

#include "capture.h"
#include "unit.h"

static struct json begin(void)
{
    struct json json;
    json_init(&json, capture_begin());
    return json;
}

/* How one string looks as JSON. */
static const char *string(const char *bytes, size_t length)
{
    struct json json = begin();
    json_string(&json, NULL, bytes, length);
    return capture_end(json.out);
}

#define STRING(literal) string(literal, sizeof(literal) - 1)

static void members_get_keys_commas_and_indentation(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_object(&json, NULL);
    json_number(&json, "samples", 12);
    json_begin_array(&json, "rows");
    json_string(&json, NULL, "abc", 2);
    json_begin_object(&json, NULL);
    json_bool(&json, "deep", true);
    json_end_object(&json);
    json_end_array(&json);
    json_bool(&json, "last", false);
    json_end_object(&json);
    assert_string_equal(capture_end(json.out), "{\n"
                                               "  \"samples\": 12,\n"
                                               "  \"rows\": [\n"
                                               "    \"ab\",\n"
                                               "    {\n"
                                               "      \"deep\": true\n"
                                               "    }\n"
                                               "  ],\n"
                                               "  \"last\": false\n"
                                               "}\n");
}

static void empty_groups_stay_on_one_line(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_array(&json, NULL);
    json_begin_object(&json, NULL);
    json_end_object(&json);
    json_begin_array(&json, NULL);
    json_end_array(&json);
    json_end_array(&json);
    assert_string_equal(capture_end(json.out), "[\n  {},\n  []\n]\n");
}

static void an_empty_document_is_one_line(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_object(&json, NULL);
    json_end_object(&json);
    assert_string_equal(capture_end(json.out), "{}\n");
}

static void quotes_and_backslashes_are_escaped(void **state)
{
    (void)state;
    assert_string_equal(STRING("a\"b\\c/"), "\"a\\\"b\\\\c/\"");
}

static void control_characters_are_escaped(void **state)
{
    (void)state;
    assert_string_equal(STRING("\0\n\x1f\x7f~ "), "\"\\u0000\\u000a\\u001f\\u007f~ \"");
}

static void utf8_is_written_as_it_is(void **state)
{
    (void)state;
    assert_string_equal(STRING("é€\xf0\x9f\x90\x8d"), "\"é€\xf0\x9f\x90\x8d\"");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
    (void)state;
    assert_string_equal(STRING("a\xff\xc3"), "\"a\\ufffd\\ufffd\"");
}

static void keys_are_escaped_too(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_object(&json, NULL);
    json_number(&json, "a\"\n", 1);
    json_end_object(&json);
    assert_string_equal(capture_end(json.out), "{\n  \"a\\\"\\u000a\": 1\n}\n");
}

static void a_missing_text_becomes_null(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_array(&json, NULL);
    json_text(&json, NULL, NULL);
    json_text(&json, NULL, "null");
    json_end_array(&json);
    assert_string_equal(capture_end(json.out), "[\n  null,\n  \"null\"\n]\n");
}

static void numbers_are_written_in_full(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_array(&json, NULL);
    json_number(&json, NULL, 0);
    json_number(&json, NULL, UINT64_MAX);
    json_end_array(&json);
    assert_string_equal(capture_end(json.out), "[\n  0,\n  18446744073709551615\n]\n");
}

static void addresses_are_hexadecimal_strings(void **state)
{
    (void)state;
    struct json json = begin();
    json_begin_object(&json, NULL);
    json_address(&json, "from", 0);
    json_address(&json, "to", UINT64_MAX);
    json_end_object(&json);
    assert_string_equal(capture_end(json.out),
                        "{\n  \"from\": \"0x0\",\n  \"to\": \"0xffffffffffffffff\"\n}\n");
}

static void a_write_error_stays_in_the_file(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setbuf(full, NULL);
    struct json json;
    json_init(&json, full);
    json_begin_object(&json, NULL);
    json_end_object(&json);
    assert_true(ferror(full));
    fclose(full);
}

static void compact_json_has_no_spaces(void **state)
{
    (void)state;
    struct json json;
    json_init_compact(&json, capture_begin());
    json_begin_object(&json, NULL);
    json_begin_array(&json, "rows");
    json_millionths(&json, NULL, 1000002);
    json_null(&json, NULL);
    json_raw(&json, NULL, "-1");
    json_end_array(&json);
    json_number(&json, "n", 3);
    json_end_object(&json);
    assert_string_equal(capture_end(json.out), "{\"rows\":[1.000002,null,-1],\"n\":3}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compact_json_has_no_spaces),
        cmocka_unit_test(members_get_keys_commas_and_indentation),
        cmocka_unit_test(empty_groups_stay_on_one_line),
        cmocka_unit_test(an_empty_document_is_one_line),
        cmocka_unit_test(quotes_and_backslashes_are_escaped),
        cmocka_unit_test(control_characters_are_escaped),
        cmocka_unit_test(utf8_is_written_as_it_is),
        cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
        cmocka_unit_test(keys_are_escaped_too),
        cmocka_unit_test(a_missing_text_becomes_null),
        cmocka_unit_test(numbers_are_written_in_full),
        cmocka_unit_test(addresses_are_hexadecimal_strings),
        cmocka_unit_test(a_write_error_stays_in_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
