#include "base/gzip_file.h"

#include "failing_malloc.h"
#include "unit.h"

#include <stdio.h>
#include <zlib.h>

enum { BYTES = 1 << 20 };

static void what_went_in_comes_out(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(BYTES), *packed = malloc(2 * BYTES), *again = malloc(BYTES + 1);
    assert_true(bytes && packed && again);
    uint64_t random = 1;
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (uint8_t)(i % 3 ? next_random(&random) : 'x');
    FILE *out = fmemopen(packed, 2 * (size_t)BYTES, "w");
    FILE *file = gzip_file_open(out);
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, BYTES, file), BYTES);
    assert_int_equal(fclose(file), 0);
    long length = ftell(out);
    assert_int_equal(fclose(out), 0);
    z_stream stream = {
        .next_in = packed, .avail_in = (uInt)length, .next_out = again, .avail_out = BYTES + 1};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, BYTES);
    assert_int_equal(stream.avail_in, 0);
    assert_memory_equal(again, bytes, BYTES);
    inflateEnd(&stream);
    free(bytes);
    free(packed);
    free(again);
}

static void errors_of_the_file_below_are_known(void **state)
{
    (void)state;
    FILE *out = fopen("/dev/full", "w");
    assert_non_null(out);
    setvbuf(out, NULL, _IONBF, 0);
    FILE *file = gzip_file_open(out);
    uint64_t random = 1;
    for (size_t i = 0; i < BYTES; i++)
        fputc((int)(next_random(&random) & 0xff), file);
    bool has_failed = ferror(file);
    has_failed |= fclose(file) != 0;
    assert_true(has_failed && ferror(out));
    fclose(out);
}

static void short_memory_gives_no_file(void **state)
{
    (void)state;
    failing_malloc_after(0);
    assert_null(gzip_file_open(stdout));
    assert_true(failing_malloc_stop());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_went_in_comes_out),
        cmocka_unit_test(errors_of_the_file_below_are_known),
        cmocka_unit_test(short_memory_gives_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
