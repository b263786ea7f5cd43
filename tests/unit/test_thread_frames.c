#include "record/thread_frames.h"

#include "unit.h"

enum { MOST = 1024, TID = 7 };

static uint64_t ring_frames[MOST], result[MOST];
static struct thread_frames threads;
static size_t resolved_count;
static uint64_t unknown_frame;

/* A frame stands for itself and 1000. */
static uint64_t resolve(void *context, uint64_t frame)
{
    (void)context;
    resolved_count++;
    return frame == unknown_frame ? 0 : frame + 1000;
}

static int begin(void **state)
{
    (void)state;
    threads = (struct thread_frames){.resolve = resolve};
    resolved_count = 0;
    unknown_frame = UINT64_MAX;
    return 0;
}

static int end(void **state)
{
    (void)state;
    thread_frames_done(&threads);
    return 0;
}

/* Frames first, first - 1, ... of which the last `kept` are not in the ring. */
static size_t take(uint32_t tid, uint64_t first, size_t count, size_t kept)
{
    struct ring_record_sample sample = {
        .frames = ring_frames, .frame_count = count - kept, .kept_frames = kept};
    for (size_t i = 0; i < sample.frame_count; i++)
        ring_frames[i] = first - i;
    return thread_frames_take(&threads, tid, &sample, result, MOST);
}

static void assert_frames(size_t got, uint64_t first, size_t count)
{
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(result[i], first - i + 1000);
}

static void frames_that_are_kept_come_back(void **state)
{
    (void)state;
    assert_frames(take(TID, 500, 500, 0), 500, 500);
    assert_frames(take(TID, 510, 510, 490), 510, 510);
    assert_frames(take(TID, 450, 450, 450), 450, 450);
    assert_int_equal(resolved_count, 500 + 20);
}

static void shallow_samples_change_nothing(void **state)
{
    (void)state;
    assert_frames(take(TID, 500, 500, 0), 500, 500);
    assert_frames(take(TID, 900, SAMPLE_DEEP_FRAMES - 1, 0), 900, SAMPLE_DEEP_FRAMES - 1);
    assert_frames(take(TID, 500, 500, 500), 500, 500);
    assert_int_equal(threads.stacks.count, 1);
}

static void threads_are_told_apart(void **state)
{
    (void)state;
    take(TID, 500, 500, 0);
    take(TID + 1, 800, 300, 0);
    assert_frames(take(TID, 501, 501, 500), 501, 501);
    assert_int_equal(take(TID + 1, 801, 301, 300), 301);
    assert_int_equal(result[1], 1800);
}

static void what_is_not_known_is_left_out_until_it_is(void **state)
{
    (void)state;
    unknown_frame = 250;
    assert_int_equal(take(TID, 500, 500, 0), 499);
    assert_int_equal(take(TID, 501, 501, 500), 500);
    unknown_frame = UINT64_MAX;
    assert_frames(take(TID, 502, 502, 501), 502, 502);
}

static void borders_stay_as_they_are(void **state)
{
    (void)state;
    struct ring_record_sample sample = {.frames = ring_frames, .frame_count = 200};
    for (size_t i = 0; i < 200; i++)
        ring_frames[i] = i % 2 ? SAMPLE_FRAME_BORDER | i : 300 - i;
    assert_int_equal(thread_frames_take(&threads, TID, &sample, result, MOST), 200);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(result[i], i % 2 ? SAMPLE_FRAME_BORDER | i : 1300 - i);
}

static void more_kept_than_there_are_is_what_there_is(void **state)
{
    (void)state;
    assert_int_equal(take(TID, 300, 300, 300), 0);
    take(TID, 200, 200, 0);
    assert_frames(take(TID, 900, 900, 900), 200, 200);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(frames_that_are_kept_come_back), TEST(shallow_samples_change_nothing),
        TEST(threads_are_told_apart),         TEST(what_is_not_known_is_left_out_until_it_is),
        TEST(borders_stay_as_they_are),       TEST(more_kept_than_there_are_is_what_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
