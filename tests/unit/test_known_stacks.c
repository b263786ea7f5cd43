#include "record/known_stacks.h"

#include "unit.h"

#include <stdio.h>

/* C functions of 512 bytes of stack each, the innermost at BOTTOM. A pc is told by its number,
 * counted from the outermost; the return address in the copy is one behind that of its caller. */
enum { MOST = 256, BOTTOM = 0x100000, FRAME = 512, TID = 7, RSP = 7 };

static const uint64_t END = BOTTOM + MOST * FRAME;

static struct sample_ring ring;
static struct known_stacks stacks;
static uint8_t copy[MOST * FRAME];
static uint64_t pcs[MOST], cfas[MOST];
static struct unwind_frames frames;
static struct ring_record record;
static uint64_t now_ns;

static int begin(void **state)
{
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "/tmp/pitviper-known-%d", (int)getpid());
    assert_int_equal(sample_ring_create(&ring, path, 4096), 0);
    unlink(path);
    stacks = (struct known_stacks){0};
    now_ns = (uint64_t)1 << 62; /* later than anything that was told */
    return 0;
}

static int end(void **state)
{
    (void)state;
    known_stacks_done(&stacks);
    sample_ring_close(&ring);
    return 0;
}

/* A sample that is `depth` functions deep, of which the outermost `left_out` are not there. Those
 * deeper than `same` are others than before: `kind` tells which. */
static void sample(size_t depth, size_t left_out, size_t same, uint64_t kind)
{
    record = (struct ring_record){.type = SAMPLE_RECORD_SAMPLE,
                                  .flags = left_out ? SAMPLE_STACK_KNOWN : SAMPLE_STACK_WHOLE,
                                  .tid = TID,
                                  .time_ns = now_ns};
    frames = (struct unwind_frames){.pcs = pcs, .cfas = cfas, .capacity = MOST};
    uint64_t pointer = END - depth * FRAME;
    for (size_t i = 0; i < depth - left_out; i++) {
        size_t level = depth - 1 - i; /* 0: the outermost */
        pcs[i] = level < same ? level + 1 : level + 1 + kind;
        cfas[i] = pointer + (i + 1) * FRAME;
        uint64_t caller = level == 0 || level - 1 < same ? level + 1 : level + 1 + kind;
        memcpy(copy + (i + 1) * FRAME - 8, &caller, sizeof caller);
        frames.count++;
    }
    record.sample.registers[RSP] = pointer;
    record.sample.stack = copy;
    record.sample.stack_bytes = (depth - left_out) * FRAME;
}

static uint32_t version(void)
{
    const struct sample_landmarks *table = (const void *)ring.tables;
    return ring.header->table_tids[0] ? table->version : 0;
}

static void tell_whole(size_t depth)
{
    sample(depth, 0, depth, 0);
    known_stacks_tell(&stacks, &ring, &record, &frames, (struct known_joint){0});
}

static void a_thread_is_told_where_its_return_addresses_are(void **state)
{
    (void)state;
    tell_whole(200);
    assert_int_equal(ring.header->table_tids[0], TID);
    const struct sample_landmarks *table = (const void *)ring.tables;
    assert_int_equal(table->version, 2);
    assert_int_equal(table->count, 200);
    assert_int_equal(table->end_avma, END);
    for (uint32_t i = 0; i < 200; i++) {
        assert_int_equal(table->marks[i].depth, i * FRAME + 8);
        assert_int_equal(table->marks[i].word, i + 1);
    }
}

static void shallow_stacks_are_not_told(void **state)
{
    (void)state;
    tell_whole(SAMPLE_LANDMARKS_LEAST_BYTES / FRAME - 1);
    assert_int_equal(version(), 0);
}

static void what_was_left_out_is_put_back(void **state)
{
    (void)state;
    tell_whole(200);
    sample(210, 150, 180, 1000);
    enum unwind_end result = UNWIND_TRUNCATED;
    struct sample_known_stack known = {.version = version(), .count = 180};
    struct known_joint joint = known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_non_null(joint.stack);
    assert_int_equal(joint.version, version());
    assert_int_equal(joint.left, 150);
    assert_int_equal(result, UNWIND_COMPLETE);
    assert_int_equal(frames.count, 60);
    known_stacks_append(joint, &frames, 100);
    assert_int_equal(frames.count, 100);
    known_stacks_append(joint, &frames, 210);
    assert_int_equal(frames.count, 210);
    for (size_t i = 0; i < 210; i++) {
        size_t level = 209 - i;
        assert_int_equal(pcs[i], level < 180 ? level + 1 : level + 1001);
        assert_int_equal(cfas[i], END - level * FRAME);
    }
}

static void what_is_put_together_can_be_told_again(void **state)
{
    (void)state;
    tell_whole(200);
    uint32_t first = version();
    sample(256, 60, 100, 1000);
    enum unwind_end result;
    struct sample_known_stack known = {.version = first, .count = 100};
    struct known_joint joint = known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    known_stacks_tell(&stacks, &ring, &record, &frames, joint);
    assert_int_not_equal(version(), first);
    const struct sample_landmarks *table = (const void *)ring.tables;
    assert_int_equal(table->count, 256);
    for (uint32_t i = 0; i < 256; i++)
        assert_int_equal(table->marks[i].word, i == 0 || i - 1 < 100 ? i + 1 : i + 1001);
    /* Both are known now: samples of before may still come. */
    sample(200, 150, 200, 0);
    known.count = 200;
    joint = known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_int_equal(result, UNWIND_COMPLETE);
    assert_int_equal(frames.count + joint.left, 200);
}

static void what_has_no_room_is_cut_off(void **state)
{
    (void)state;
    tell_whole(200);
    sample(210, 150, 180, 1000);
    frames.capacity = 209;
    enum unwind_end result;
    struct sample_known_stack known = {.version = version(), .count = 180};
    struct known_joint joint = known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_int_equal(result, UNWIND_TRUNCATED);
    assert_int_equal(frames.count + joint.left, 209);
}

static void nothing_new_is_told_before_the_last_was_heard(void **state)
{
    (void)state;
    tell_whole(200);
    uint32_t first = version();
    now_ns = 1; /* taken before the thread was told */
    tell_whole(250);
    assert_int_equal(version(), first);
}

/* A sample that does not come to anything that is known. */
static void assert_broken(size_t left_out, uint64_t told_version, uint64_t count)
{
    sample(200, left_out, 200, 0);
    enum unwind_end result = UNWIND_TRUNCATED;
    struct sample_known_stack known = {.version = told_version, .count = count};
    struct known_joint joint = known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_null(joint.stack);
    assert_int_equal(result, UNWIND_BROKEN);
    assert_int_equal(frames.count, 200 - left_out);
}

static void what_is_not_known_stays_away(void **state)
{
    (void)state;
    assert_broken(150, 2, 200); /* nothing was ever told */
    tell_whole(200);
    uint32_t first = version();
    assert_broken(150, first + 2, 200);
    assert_broken(150, 0, 200);
    assert_int_equal(version(), first);
}

static void landmarks_that_mislead_are_taken_back(void **state)
{
    (void)state;
    tell_whole(200);
    uint32_t first = version();
    assert_broken(150, first, 100); /* those that held are all among those left out */
    const struct sample_landmarks *table = (const void *)ring.tables;
    assert_int_not_equal(version(), first);
    assert_int_equal(table->count, 0);
    /* Samples of before are still understood; then it is told again. */
    sample(200, 150, 200, 0);
    enum unwind_end result;
    struct sample_known_stack known = {.version = first, .count = 200};
    known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_int_equal(result, UNWIND_COMPLETE);
    tell_whole(200);
    assert_int_equal(table->count, 200);
}

static void a_function_that_is_not_known_is_no_joint(void **state)
{
    (void)state;
    tell_whole(200);
    sample(200, 150, 200, 0);
    cfas[frames.count - 1] -= 8; /* the outermost; the next one would be known */
    enum unwind_end result;
    struct sample_known_stack known = {.version = version(), .count = 200};
    known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_int_equal(result, UNWIND_BROKEN);
}

static void stacks_that_are_none_are_not_told(void **state)
{
    (void)state;
    sample(200, 0, 200, 0);
    cfas[20] = cfas[19]; /* no way up */
    known_stacks_tell(&stacks, &ring, &record, &frames, (struct known_joint){0});
    sample(200, 0, 200, 0);
    cfas[199] = END + FRAME; /* not in the copy */
    known_stacks_tell(&stacks, &ring, &record, &frames, (struct known_joint){0});
    sample(200, 0, 200, 0);
    pcs[101] = 7777; /* not where the return address is, as behind a signal's handler */
    known_stacks_tell(&stacks, &ring, &record, &frames, (struct known_joint){0});
    sample(200, 0, 200, 0);
    record.flags |= SAMPLE_TWO_STACKS;
    known_stacks_tell(&stacks, &ring, &record, &frames, (struct known_joint){0});
    assert_int_equal(version(), 0);
}

static void more_threads_than_tables_are_left_alone(void **state)
{
    (void)state;
    for (uint32_t i = 0; i <= SAMPLE_RING_TABLES; i++) {
        sample(200, 0, 200, 0);
        record.tid = 100 + i;
        known_stacks_tell(&stacks, &ring, &record, &frames, (struct known_joint){0});
    }
    for (uint32_t i = 0; i < SAMPLE_RING_TABLES; i++)
        assert_int_equal(ring.header->table_tids[i], 100 + i);
    /* One that has not been heard of for long gives its table up; small samples count, too. */
    now_ns += (uint64_t)2 * 1000000000;
    sample(200, 190, 200, 0);
    record.tid = 100;
    enum unwind_end result;
    struct sample_known_stack known = {.version = version(), .count = 200};
    known_stacks_join(&stacks, &ring, &record, known, &frames, &result);
    assert_int_equal(result, UNWIND_COMPLETE);
    tell_whole(200);
    assert_int_equal(ring.header->table_tids[0], 100);
    assert_int_equal(ring.header->table_tids[1], TID);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(a_thread_is_told_where_its_return_addresses_are),
        TEST(shallow_stacks_are_not_told),
        TEST(what_was_left_out_is_put_back),
        TEST(what_is_put_together_can_be_told_again),
        TEST(what_has_no_room_is_cut_off),
        TEST(nothing_new_is_told_before_the_last_was_heard),
        TEST(what_is_not_known_stays_away),
        TEST(landmarks_that_mislead_are_taken_back),
        TEST(a_function_that_is_not_known_is_no_joint),
        TEST(stacks_that_are_none_are_not_told),
        TEST(more_threads_than_tables_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
