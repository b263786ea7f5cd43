#include "base/base64_file.h"

#include "capture.h"
#include "failing_malloc.h"
#include "unit.h"

static const char *encoded(const char *text, size_t step)
{
    size_t length = strlen(text);
    FILE *out = capture_begin(), *file = base64_file_open(out);
    assert_non_null(file);
    for (size_t i = 0; i < length; i += step) {
        size_t piece = i + step < length ? step : length - i;
        assert_int_equal(fwrite(text + i, 1, piece, file), piece);
        assert_int_equal(fflush(file), 0);
    }
    assert_int_equal(fclose(file), 0);
    return capture_end(out);
}

/* The examples of RFC 4648. */
static void lengths_that_are_no_groups_are_filled_up(void **state)
{
    (void)state;
    assert_string_equal(encoded("", 1), "");
    assert_string_equal(encoded("f", 1), "Zg==");
    assert_string_equal(encoded("fo", 2), "Zm8=");
    assert_string_equal(encoded("foo", 3), "Zm9v");
    assert_string_equal(encoded("foob", 4), "Zm9vYg==");
    assert_string_equal(encoded("fooba", 5), "Zm9vYmE=");
    assert_string_equal(encoded("foobar", 6), "Zm9vYmFy");
}

static void pieces_make_the_same_text_as_the_whole(void **state)
{
    (void)state;
    char text[10001];
    for (size_t i = 0; i < sizeof text - 1; i++)
        text[i] = (char)(1 + i * 7 % 255);
    text[sizeof text - 1] = '\0';
    char *whole = strdup(encoded(text, sizeof text));
    for (size_t step = 1; step < 8; step++)
        assert_string_equal(encoded(text, step), whole);
    free(whole);
}

static void a_full_disk_is_told(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w");
    assert_non_null(full);
    setvbuf(full, NULL, _IONBF, 0);
    FILE *file = base64_file_open(full);
    assert_non_null(file);
    fputs("foo", file);
    assert_int_equal(fclose(file), EOF);
    assert_true(ferror(full));
    fclose(full);
}

static void short_memory_is_told(void **state)
{
    (void)state;
    failing_malloc_after(0);
    FILE *file = base64_file_open(stdout);
    assert_true(failing_malloc_stop());
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_that_are_no_groups_are_filled_up),
        cmocka_unit_test(pieces_make_the_same_text_as_the_whole),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(short_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
