#include "record/thread_frames.h"

#include "unit.h"

enum { MOST = 1024, TID = 7 };

static uint64_t ring_frames[MOST], room[MOST];
static struct thread_frames_taken taken;
static struct thread_frames threads;
static size_t resolved_count;
static uint64_t hidden_frame, now_ns;
static uint32_t deep_number;

/* A frame stands for itself and 1000. */
static uint64_t resolve(void *context, uint64_t frame)
{
    (void)context;
    resolved_count++;
    return frame == hidden_frame ? 0 : frame + 1000;
}

static int begin(void **state)
{
    (void)state;
    threads = (struct thread_frames){.resolve = resolve};
    resolved_count = 0;
    hidden_frame = UINT64_MAX;
    now_ns = 1;
    deep_number = 0;
    return 0;
}

static int end(void **state)
{
    (void)state;
    thread_frames_done(&threads);
    return 0;
}

/* Frames first, first - 1, ... of which the last `kept` are not in the ring. How many there are. */
static size_t take(uint32_t tid, uint64_t first, size_t count, size_t kept)
{
    struct ring_record record = {.tid = tid,
                                 .time_ns = now_ns,
                                 .sample = {.frames = ring_frames,
                                            .frame_count = count - kept,
                                            .kept_frames = kept,
                                            .deep_number = deep_number}};
    for (size_t i = 0; i < count - kept; i++)
        ring_frames[i] = first - i;
    thread_frames_take(&threads, &record, room, MOST, &taken);
    return taken.count;
}

static size_t take_next(uint64_t first, size_t count, size_t kept)
{
    deep_number++;
    return take(TID, first, count, kept);
}

static void assert_frames(size_t got, uint64_t first, size_t count)
{
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(taken.items[i], first - i + 1000);
}

static void frames_that_are_kept_come_back(void **state)
{
    (void)state;
    assert_frames(take_next(500, 500, 0), 500, 500);
    assert_frames(take_next(510, 510, 490), 510, 510);
    assert_frames(take_next(450, 450, 450), 450, 450);
    assert_int_equal(resolved_count, 500 + 20);
    assert_false(taken.is_cut);
}

static void what_is_the_same_is_told(void **state)
{
    (void)state;
    take_next(500, 500, 0);
    assert_int_equal(taken.same, 0);
    struct kept_chain *chain = taken.chain;
    assert_non_null(chain);
    take_next(510, 510, 490);
    assert_int_equal(taken.same, 490);
    assert_ptr_equal(taken.chain, chain);
    deep_number++; /* missed */
    take_next(510, 510, 490);
    assert_int_equal(taken.same, 0);
    take_next(511, 511, 510); /* some are missing still */
    assert_int_equal(taken.same, 0);
    deep_number = 0;
    take(TID, 900, 20, 0);
    assert_int_equal(taken.same, 0);
    assert_null(taken.chain);
}

static void shallow_samples_change_nothing(void **state)
{
    (void)state;
    assert_frames(take_next(500, 500, 0), 500, 500);
    deep_number = 0;
    assert_frames(take(TID, 900, 20, 0), 900, 20);
    deep_number = 1;
    assert_frames(take_next(500, 500, 500), 500, 500);
}

static void threads_are_told_apart(void **state)
{
    (void)state;
    take_next(500, 500, 0);
    take(TID + 1, 800, 300, 0);
    assert_frames(take_next(501, 501, 500), 501, 501);
    assert_int_equal(take(TID + 1, 801, 301, 300), 301);
    assert_int_equal(taken.items[1], 1800);
}

static void what_is_hidden_is_0_or_left_out(void **state)
{
    (void)state;
    hidden_frame = 250;
    assert_int_equal(take_next(500, 500, 0), 500);
    assert_int_equal(taken.items[250], 0);
    assert_int_equal(take_next(501, 501, 500), 501);
    assert_int_equal(taken.items[251], 0);
    assert_false(taken.is_cut);
    deep_number = 0;
    assert_int_equal(take(TID, 260, 20, 0), 19);
    assert_int_equal(taken.items[10], 1249);
}

static void the_outermost_is_never_hidden(void **state)
{
    (void)state;
    hidden_frame = 1;
    assert_frames(take_next(500, 500, 0), 500, 499);
    assert_frames(take_next(501, 501, 500), 501, 500);
    assert_int_equal(taken.same, 0);
    assert_false(taken.is_cut);
}

static void borders_stay_as_they_are(void **state)
{
    (void)state;
    struct ring_record record = {
        .sample = {.frames = ring_frames, .frame_count = 200, .deep_number = 1}};
    for (size_t i = 0; i < 200; i++)
        ring_frames[i] = i % 2 ? SAMPLE_FRAME_BORDER | i : 300 - i;
    thread_frames_take(&threads, &record, room, MOST, &taken);
    assert_int_equal(taken.count, 200);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(taken.items[i], i % 2 ? SAMPLE_FRAME_BORDER | i : 1300 - i);
}

/* The sample before was not taken here: nothing is made up. */
static void what_was_missed_is_cut_off(void **state)
{
    (void)state;
    take_next(500, 500, 0);
    deep_number++; /* missed */
    assert_frames(take_next(600, 400, 300), 600, 100);
    assert_true(taken.is_cut);
    assert_frames(take_next(601, 401, 350), 601, 101); /* 50 of the one before, 300 of none */
    assert_true(taken.is_cut);
    assert_frames(take_next(500, 500, 0), 500, 500);
    assert_false(taken.is_cut);
    assert_frames(take_next(501, 501, 500), 501, 501);
    assert_false(taken.is_cut);
}

static void more_kept_than_there_are_is_cut_off(void **state)
{
    (void)state;
    assert_int_equal(take_next(300, 300, 300), 0);
    assert_true(taken.is_cut);
    take_next(200, 200, 0);
    assert_int_equal(take_next(900, 900, 900), 0);
    assert_true(taken.is_cut);
}

static void no_frames_are_none(void **state)
{
    (void)state;
    assert_int_equal(take_next(1, 0, 0), 0);
    assert_false(taken.is_cut);
    assert_frames(take_next(300, 300, 0), 300, 300);
    assert_int_equal(take_next(1, 0, 0), 0);
}

static void threads_that_are_not_heard_of_are_forgotten(void **state)
{
    (void)state;
    deep_number = 1;
    for (uint32_t i = 0; i < 10000; i++) {
        now_ns += 100000000; /* 0.1 s */
        take(100 + i, 300, 300, 0);
    }
    assert_true(threads.stacks.count <= 64);
}

static void frames_that_are_only_claimed_need_no_room(void **state)
{
    (void)state;
    for (deep_number = 1; deep_number <= 4; deep_number++)
        for (uint32_t i = 0; i < 1000; i++) {
            assert_frames(take(100 + i, 300, 131072, 131070), 300, 2);
            assert_true(taken.is_cut);
        }
    assert_true(threads.words < 1000 * 32);
}

static void thousands_of_threads_are_remembered(void **state)
{
    (void)state;
    enum { THREADS = 5000, FRAMES = 500 };
    for (deep_number = 1; deep_number <= 3; deep_number++)
        for (uint32_t i = 0; i < THREADS; i++) {
            assert_frames(take(100 + i, FRAMES, FRAMES, deep_number > 1 ? FRAMES - 1 : 0), FRAMES,
                          FRAMES);
            assert_false(taken.is_cut);
        }
    assert_int_equal(threads.stacks.count, THREADS);
}

static void the_number_of_threads_is_bounded(void **state)
{
    (void)state;
    enum { MANY = 100000, MOST_STACKS = 1 << 15 };
    deep_number = 1;
    for (uint32_t i = 0; i < MANY; i++)
        assert_frames(take(100 + i, 3, 3, 0), 3, 3);
    assert_int_equal(threads.stacks.count, MOST_STACKS);
    assert_null(taken.chain);
    deep_number = 2;
    assert_frames(take(100, 4, 4, 3), 4, 4); /* the first ones stay */
    assert_frames(take(100 + MANY - 1, 4, 4, 3), 4, 1);
    assert_true(taken.is_cut);
    now_ns += UINT64_C(3000000000);
    deep_number = 3;
    assert_frames(take(100 + MANY - 1, 5, 5, 0), 5, 5); /* until they are not heard of */
    assert_int_equal(threads.stacks.count, 1);
    assert_int_equal(threads.chains, 1);
    assert_non_null(taken.chain);
}

static void room_is_bounded(void **state)
{
    (void)state;
    enum { MANY = 20000, FRAMES = 1000, MOST_WORDS = 1 << 23 };
    deep_number = 1;
    for (uint32_t i = 0; i < MANY; i++)
        assert_frames(take(100 + i, FRAMES, FRAMES, 0), FRAMES, FRAMES);
    assert_true(threads.words <= MOST_WORDS);
    deep_number = 2;
    assert_frames(take(100, FRAMES, FRAMES, FRAMES - 1), FRAMES, FRAMES);
    assert_frames(take(100 + MANY - 1, FRAMES, FRAMES, FRAMES - 1), FRAMES, 1);
    assert_true(taken.is_cut);
    now_ns += UINT64_C(3000000000);
    deep_number = 3;
    assert_frames(take(100 + MANY - 1, FRAMES, FRAMES, 0), FRAMES, FRAMES);
    deep_number = 4;
    assert_frames(take(100 + MANY - 1, FRAMES, FRAMES, FRAMES - 1), FRAMES, FRAMES);
    assert_true(threads.words < 2 * FRAMES);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(frames_that_are_kept_come_back),
        TEST(shallow_samples_change_nothing),
        TEST(threads_are_told_apart),
        TEST(what_is_the_same_is_told),
        TEST(what_is_hidden_is_0_or_left_out),
        TEST(the_outermost_is_never_hidden),
        TEST(borders_stay_as_they_are),
        TEST(what_was_missed_is_cut_off),
        TEST(more_kept_than_there_are_is_cut_off),
        TEST(no_frames_are_none),
        TEST(threads_that_are_not_heard_of_are_forgotten),
        TEST(frames_that_are_only_claimed_need_no_room),
        TEST(thousands_of_threads_are_remembered),
        TEST(the_number_of_threads_is_bounded),
        TEST(room_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
