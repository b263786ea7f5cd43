#include "record/ring_record.h"

#include "unit.h"

#include <errno.h>

/* A record that is made by hand, in memory of exactly its size. */
static struct sample_record *record;
static size_t length;
static struct ring_record decoded;

static void begin(uint16_t type, uint32_t extra, size_t body_bytes)
{
    length = sizeof *record + body_bytes;
    record = calloc(1, length);
    assert_non_null(record);
    record->bytes = (uint32_t)length;
    record->type = type;
    record->extra = extra;
    record->tid = 7;
    record->time_ns = 123;
    record->flags = SAMPLE_CUT;
}

static uint8_t *body(void)
{
    return (uint8_t *)(record + 1);
}

static int decode(void)
{
    return ring_record_decode(record, length, &decoded);
}

static int end(void **state)
{
    (void)state;
    free(record);
    record = NULL;
    return 0;
}

static void test_sample(void **state)
{
    (void)state;
    struct sample_body sample = {.weight_ns = 5, .frame_count = 2};
    for (size_t i = 0; i < SAMPLE_REGISTERS; i++)
        sample.registers[i] = 100 + i;
    begin(SAMPLE_RECORD_SAMPLE, 12, sizeof sample + 16 + 16);
    memcpy(body(), &sample, sizeof sample);
    ((uint64_t *)(body() + sizeof sample))[1] = 77;
    body()[sizeof sample + 16] = 0xaa;
    assert_int_equal(decode(), 0);
    assert_int_equal(decoded.type, SAMPLE_RECORD_SAMPLE);
    assert_int_equal(decoded.tid, 7);
    assert_int_equal(decoded.time_ns, 123);
    assert_int_equal(decoded.flags, SAMPLE_CUT);
    assert_int_equal(decoded.sample.weight_ns, 5);
    assert_int_equal(decoded.sample.registers[16], 116);
    assert_int_equal(decoded.sample.frame_count, 2);
    assert_int_equal(decoded.sample.frames[1], 77);
    assert_int_equal(decoded.sample.stack_bytes, 12);
    assert_int_equal(decoded.sample.stack[0], 0xaa);
}

static void test_red_zone(void **state)
{
    (void)state;
    begin(SAMPLE_RECORD_SAMPLE, SAMPLE_RED_ZONE_BYTES + 8,
          sizeof(struct sample_body) + SAMPLE_RED_ZONE_BYTES + 8);
    record->flags = SAMPLE_RED_ZONE;
    body()[sizeof(struct sample_body)] = 0xbb;
    body()[sizeof(struct sample_body) + SAMPLE_RED_ZONE_BYTES] = 0xaa;
    assert_int_equal(decode(), 0);
    assert_int_equal(decoded.sample.stack_bytes, 8);
    assert_int_equal(decoded.sample.stack[0], 0xaa);
    assert_int_equal(decoded.sample.red_zone_bytes, SAMPLE_RED_ZONE_BYTES);
    assert_int_equal(decoded.sample.stack[-SAMPLE_RED_ZONE_BYTES], 0xbb);
    record->extra = SAMPLE_RED_ZONE_BYTES - 8;
    assert_int_equal(decode(), -EBADMSG);
}

/* A sample whose kernel part is these words. */
static void begin_chains(const uint64_t *words, size_t count)
{
    struct sample_body sample = {.kernel_weight_ns = 9, .kernel_words = count};
    begin(SAMPLE_RECORD_SAMPLE, 0, sizeof sample + count * sizeof *words);
    memcpy(body(), &sample, sizeof sample);
    memcpy(body() + sizeof sample, words, count * sizeof *words);
    assert_int_equal(decode(), 0);
    assert_int_equal(decoded.sample.kernel_weight_ns, 9);
}

static void test_chains_of_the_kernel(void **state)
{
    (void)state;
    static const uint64_t words[] = {1000, 2, 0xa, 0xb, 2000, 1, 0xc};
    struct ring_record_chain chain;
    size_t position = 0;
    begin_chains(words, COUNT(words));
    assert_int_equal(ring_record_next_chain(&decoded.sample, &position, &chain), 1);
    assert_int_equal(chain.time_ns, 1000);
    assert_int_equal(chain.count, 2);
    assert_int_equal(chain.addresses[1], 0xb);
    assert_int_equal(ring_record_next_chain(&decoded.sample, &position, &chain), 1);
    assert_int_equal(chain.time_ns, 2000);
    assert_int_equal(chain.count, 1);
    assert_int_equal(chain.addresses[0], 0xc);
    assert_int_equal(ring_record_next_chain(&decoded.sample, &position, &chain), 0);
}

static void test_a_chain_that_does_not_fit_is_the_end(void **state)
{
    (void)state;
    static const uint64_t counts[] = {0, 2, UINT64_MAX, UINT64_MAX - 1, (uint64_t)1 << 61};
    for (size_t i = 0; i < COUNT(counts); i++) {
        uint64_t words[] = {1000, 1, 0xa, 2000, counts[i], 0xb};
        struct ring_record_chain chain;
        size_t position = 0;
        begin_chains(words, COUNT(words));
        assert_int_equal(ring_record_next_chain(&decoded.sample, &position, &chain), 1);
        assert_int_equal(ring_record_next_chain(&decoded.sample, &position, &chain), 0);
        end(NULL);
    }
}

static void test_more_chains_than_there_is_room_for(void **state)
{
    (void)state;
    static const uint64_t counts[] = {3, 1 << 20, UINT64_MAX, UINT64_MAX / 8 + 2};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct sample_body sample = {.kernel_words = counts[i]};
        begin(SAMPLE_RECORD_SAMPLE, 0, sizeof sample + 16);
        memcpy(body(), &sample, sizeof sample);
        assert_int_equal(decode(), -EBADMSG);
        end(NULL);
    }
}

static void test_code(void **state)
{
    (void)state;
    struct sample_code code = {.first_line = 3, .name_bytes = 3, .file_bytes = 9, .lines_bytes = 2};
    begin(SAMPLE_RECORD_CODE, 42, sizeof code + 8 + 16 + 8);
    memcpy(body(), &code, sizeof code);
    memcpy(body() + sizeof code, "foo", 3);
    memcpy(body() + sizeof code + 8, "/tmp/a.py", 9);
    memcpy(body() + sizeof code + 24, "\1\2", 2);
    assert_int_equal(decode(), 0);
    assert_int_equal(decoded.code.number, 42);
    assert_int_equal(decoded.code.first_line, 3);
    assert_bytes(decoded.code.name, decoded.code.name_length, "foo");
    assert_bytes(decoded.code.file, decoded.code.file_length, "/tmp/a.py");
    assert_bytes(decoded.code.lines, decoded.code.lines_length, "\1\2");
}

static void test_text(void **state)
{
    (void)state;
    begin(SAMPLE_RECORD_THREAD, 4, 8);
    memcpy(body(), "main", 4);
    assert_int_equal(decode(), 0);
    assert_bytes(decoded.text.bytes, decoded.text.length, "main");
}

static void test_code_number_0_is_none(void **state)
{
    (void)state;
    begin(SAMPLE_RECORD_CODE, 0, sizeof(struct sample_code));
    assert_int_equal(decode(), -EBADMSG);
}

static void test_more_frames_than_there_is_room_for(void **state)
{
    (void)state;
    static const uint64_t counts[] = {3, 1 << 20, UINT64_MAX, UINT64_MAX / 8 + 2,
                                      (uint64_t)1 << 61};
    for (size_t i = 0; i < COUNT(counts); i++) {
        struct sample_body sample = {.frame_count = counts[i]};
        begin(SAMPLE_RECORD_SAMPLE, 0, sizeof sample + 16);
        memcpy(body(), &sample, sizeof sample);
        assert_int_equal(decode(), -EBADMSG);
        end(NULL);
    }
}

static void test_more_stack_than_there_is(void **state)
{
    (void)state;
    static const uint32_t extras[] = {17, 1 << 20, UINT32_MAX - 6, UINT32_MAX};
    for (size_t i = 0; i < COUNT(extras); i++) {
        begin(SAMPLE_RECORD_SAMPLE, extras[i], sizeof(struct sample_body) + 16);
        assert_int_equal(decode(), -EBADMSG);
        end(NULL);
    }
}

static void test_texts_longer_than_the_record(void **state)
{
    (void)state;
    static const struct sample_code codes[] = {{.name_bytes = 17},
                                               {.file_bytes = UINT32_MAX},
                                               {.name_bytes = 8, .lines_bytes = 9},
                                               {.name_bytes = UINT32_MAX, .file_bytes = 2}};
    for (size_t i = 0; i < COUNT(codes); i++) {
        begin(SAMPLE_RECORD_CODE, 1, sizeof codes[i] + 16);
        memcpy(body(), &codes[i], sizeof codes[i]);
        assert_int_equal(decode(), -EBADMSG);
        end(NULL);
    }
    begin(SAMPLE_RECORD_MAPS, 9, 8);
    assert_int_equal(decode(), -EBADMSG);
}

static void test_a_record_too_short_for_its_type(void **state)
{
    (void)state;
    begin(SAMPLE_RECORD_SAMPLE, 0, sizeof(struct sample_body) - 8);
    assert_int_equal(decode(), -EBADMSG);
    end(NULL);
    begin(SAMPLE_RECORD_CODE, 1, 0);
    assert_int_equal(decode(), -EBADMSG);
}

static void test_a_record_longer_than_the_ring(void **state)
{
    (void)state;
    begin(SAMPLE_RECORD_THREAD, 0, 0);
    record->bytes += 8;
    assert_int_equal(decode(), -EBADMSG);
    record->bytes = 8;
    assert_int_equal(decode(), -EBADMSG);
}

static void test_another_type(void **state)
{
    (void)state;
    begin(99, 0, 0);
    assert_int_equal(decode(), -ENOTSUP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_sample, end),
        cmocka_unit_test_teardown(test_red_zone, end),
        cmocka_unit_test_teardown(test_chains_of_the_kernel, end),
        cmocka_unit_test_teardown(test_a_chain_that_does_not_fit_is_the_end, end),
        cmocka_unit_test_teardown(test_more_chains_than_there_is_room_for, end),
        cmocka_unit_test_teardown(test_code, end),
        cmocka_unit_test_teardown(test_text, end),
        cmocka_unit_test_teardown(test_code_number_0_is_none, end),
        cmocka_unit_test_teardown(test_more_frames_than_there_is_room_for, end),
        cmocka_unit_test_teardown(test_more_stack_than_there_is, end),
        cmocka_unit_test_teardown(test_texts_longer_than_the_record, end),
        cmocka_unit_test_teardown(test_a_record_too_short_for_its_type, end),
        cmocka_unit_test_teardown(test_a_record_longer_than_the_ring, end),
        cmocka_unit_test_teardown(test_another_type, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
