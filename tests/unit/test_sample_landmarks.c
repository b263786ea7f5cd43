#include "formats/sample_landmarks.h"

#include "unit.h"

#include <stdio.h>

/* A stack of 128 KB with a return address every 512 bytes, as a thread and the recorder see it. */
enum { WORDS = 16384, EVERY = 64, MARKS = WORDS / EVERY, TID = 7 };

static struct sample_ring writer, reader;
static uint64_t stack[WORDS];
static struct sample_landmark marks[MARKS];
static struct sample_known_stack known;

static uint64_t address_of(size_t word)
{
    return (uintptr_t)&stack[word];
}

static int begin(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/pitviper-landmarks-%d", (int)getpid());
    assert_int_equal(sample_ring_create(&writer, path, 4096), 0);
    writer.header->version = SAMPLE_RING_VERSION;
    writer.header->magic = SAMPLE_RING_MAGIC;
    assert_int_equal(sample_ring_open(&reader, path), 0);
    unlink(path);
    for (size_t i = 0; i < WORDS; i++)
        stack[i] = 0x123400000000 + i;
    for (size_t i = 0; i < MARKS; i++) {
        size_t word = WORDS - 1 - i * EVERY;
        marks[i] = (struct sample_landmark){.depth = (uint32_t)((WORDS - word) * sizeof *stack),
                                            .word = (uint32_t)stack[word]};
    }
    known = (struct sample_known_stack){0};
    return 0;
}

static int end(void **state)
{
    (void)state;
    sample_ring_close(&writer);
    sample_ring_close(&reader);
    return 0;
}

static uint32_t version;

static void publish(size_t count)
{
    version += 2;
    assert_true(
        sample_landmarks_publish(&reader, 3, TID, version, address_of(WORDS), marks, count));
}

/* The word up to which the stack from word `first` on has to be copied. */
static size_t copied_up_to(size_t first)
{
    uint64_t place =
        sample_landmarks_check(&writer, TID, address_of(first), address_of(WORDS), &known);
    return (size_t)(place - address_of(0)) / sizeof *stack;
}

static const size_t MARGIN = SAMPLE_LANDMARKS_MARGIN_BYTES / sizeof(uint64_t);

static void all_is_copied_before_anything_is_known(void **state)
{
    (void)state;
    assert_int_equal(copied_up_to(0), WORDS);
    assert_int_equal(known.count, 0);
}

static void what_is_the_same_is_left_out(void **state)
{
    (void)state;
    publish(MARKS);
    assert_int_equal(copied_up_to(0), WORDS - 1 - (MARKS - 1) * EVERY + MARGIN);
    assert_int_equal(known.count, MARKS);
    assert_int_equal(known.version, version);
    /* Other words may change. */
    stack[WORDS - 2] = stack[WORDS / 2] = 1;
    assert_int_equal(copied_up_to(0), WORDS - 1 - (MARKS - 1) * EVERY + MARGIN);
}

static void a_change_is_copied_with_all_that_is_deeper(void **state)
{
    (void)state;
    publish(MARKS);
    stack[WORDS - 1 - 100 * EVERY] = 1;
    assert_int_equal(copied_up_to(0), WORDS - 1 - 99 * EVERY + MARGIN);
    assert_int_equal(known.count, 100);
}

static void what_has_been_left_does_not_count(void **state)
{
    (void)state;
    publish(MARKS);
    size_t first = WORDS - 1 - 200 * EVERY + 1; /* just behind landmark 200 */
    assert_int_equal(copied_up_to(first), WORDS - 1 - 199 * EVERY + MARGIN);
    assert_int_equal(known.count, 200);
}

static void little_is_not_left_out(void **state)
{
    (void)state;
    publish(MARGIN / EVERY);
    assert_int_equal(copied_up_to(0), WORDS);
    assert_int_equal(known.count, 0);
}

static void another_thread_or_stack_knows_nothing(void **state)
{
    (void)state;
    publish(MARKS);
    assert_int_equal(
        sample_landmarks_check(&writer, TID + 1, address_of(0), address_of(WORDS), &known),
        address_of(WORDS));
    assert_int_equal(
        sample_landmarks_check(&writer, TID, address_of(0), address_of(WORDS - 8), &known),
        address_of(WORDS - 8));
}

static void one_that_is_being_written_is_not_used(void **state)
{
    (void)state;
    publish(MARKS);
    struct sample_landmarks *table = (void *)(reader.tables + 3 * sizeof *table);
    table->version = version + 1;
    assert_int_equal(copied_up_to(0), WORDS);
}

static void they_can_be_taken_back(void **state)
{
    (void)state;
    publish(MARKS);
    publish(0);
    assert_int_equal(copied_up_to(0), WORDS);
    assert_int_equal(known.count, 0);
}

static void nonsense_is_not_followed(void **state)
{
    (void)state;
    marks[50].depth = UINT32_MAX;
    publish(MARKS);
    copied_up_to(0);
    assert_int_equal(known.count, 50);
    marks[50].depth = 4; /* not all of a word before the end */
    publish(MARKS);
    copied_up_to(0);
    assert_int_equal(known.count, 50);
    struct sample_landmarks *table = (void *)(reader.tables + 3 * sizeof *table);
    table->count = UINT32_MAX;
    copied_up_to(0);
    assert_int_equal(known.count, 50);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(all_is_copied_before_anything_is_known),
        TEST(what_is_the_same_is_left_out),
        TEST(a_change_is_copied_with_all_that_is_deeper),
        TEST(what_has_been_left_does_not_count),
        TEST(little_is_not_left_out),
        TEST(another_thread_or_stack_knows_nothing),
        TEST(one_that_is_being_written_is_not_used),
        TEST(they_can_be_taken_back),
        TEST(nonsense_is_not_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
