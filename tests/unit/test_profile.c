#include "profile_sample.h"

#include "failing_malloc.h"

#include <errno.h>

static const char map[] = "1000 100 py::outer:/a.py\n1100 100 py::inner:/a.py\n1200 100 helper\n";
static struct recording recording;

/* A process with a perf map and a region for it. */
static void begin(void)
{
    recording_begin(&recording);
    recording_file(&recording, "perf-999999999.map", map, sizeof map - 1);
    recording_comm(&recording, 1, PID, "python3", true);
    recording_map(&recording, 2, PID, (struct mapped){0x1000, 0x1000, "//anon", 0});
}

static void samples_become_stacks_with_the_outermost_frame_at_the_root(void **state)
{
    (void)state;
    begin();
    recording_sample(&recording, 10, PID, 4, (uint64_t[]){USER, 0x1210, 0x1110, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_int_equal(profile->samples.count, 1);
    assert_string_equal(stack_of(profile, 0), "py::outer:/a.py;py::inner:/a.py;helper");
    const struct profile_sample *sample = &profile->samples.items[0];
    assert_int_equal(profile->stacks.items[sample->stack].depth, 3);
    assert_int_equal(sample->period, 1000);
    assert_int_equal(sample->time_ns, 10);
    assert_int_equal(sample->cpumode, '.');
    assert_int_equal(profile->frames.items[sample->leaf].ip_avma, 0x1210);
    assert_int_equal(profile->events.items[0].samples, 1);
    assert_int_equal(profile->events.items[0].periods, 1000);
    assert_string_equal(profile_text(profile, profile->events.items[0].name), "cpu-clock");
    profile_free(profile);
}

static void equal_stacks_and_common_callers_are_there_once(void **state)
{
    (void)state;
    begin();
    for (uint64_t i = 0; i < 100; i++)
        recording_sample(&recording, 10 + i, PID, 4,
                         (uint64_t[]){USER, 0x1200 + i % 2, 0x1110, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_int_equal(profile->samples.count, 100);
    assert_int_equal(profile->stacks.count, 1 + 2 + 2);
    assert_int_equal(profile->frames.count, 4);
    assert_int_equal(profile->functions.count, 3);
    profile_free(profile);
}

static void samples_have_the_name_that_the_thread_had_then(void **state)
{
    (void)state;
    begin();
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){USER, 0x1010});
    recording_comm(&recording, 20, PID, "renamed", false);
    recording_sample(&recording, 30, PID, 2, (uint64_t[]){USER, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(profile_text(profile, profile->samples.items[0].comm), "python3");
    assert_string_equal(profile_text(profile, profile->samples.items[1].comm), "renamed");
    assert_string_equal(profile_text(profile, profile->processes.items[0].comm), "renamed");
    profile_free(profile);
}

static void a_process_that_nothing_announced_goes_by_its_number(void **state)
{
    (void)state;
    begin();
    recording_sample(&recording, 10, CHILD, 2, (uint64_t[]){USER, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(profile_text(profile, profile->samples.items[0].comm), ":999999998");
    assert_string_equal(stack_of(profile, 0), "[unknown]+0x1010");
    assert_int_equal(profile->losses.no_process, 1);
    assert_int_equal(profile->losses.unresolved_frames, 1);
    profile_free(profile);
}

static void a_child_has_what_its_parent_had_mapped(void **state)
{
    (void)state;
    struct perfdata_task fork = {.pid = CHILD, .tid = CHILD, .parent_pid = PID, .parent_tid = PID};
    begin();
    recording_task(&recording, PERF_RECORD_FORK, 5, fork);
    recording_sample(&recording, 10, CHILD, 2, (uint64_t[]){USER, 0x1010});
    recording_map(&recording, 11, PID, (struct mapped){0x1000, 0x1000, "/gone", 0});
    recording_sample(&recording, 12, CHILD, 2, (uint64_t[]){USER, 0x1010});
    recording_sample(&recording, 13, PID, 2, (uint64_t[]){USER, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "py::outer:/a.py");
    assert_string_equal(stack_of(profile, 1), "py::outer:/a.py");
    assert_string_equal(profile_text(profile, profile->samples.items[0].comm), "python3");
    assert_int_equal(profile->processes.items[1].parent, 0);
    assert_int_equal(profile->processes.items[1].start_ns, 5);
    profile_free(profile);
}

static void exec_leaves_mappings_until_others_are_over_them(void **state)
{
    (void)state;
    begin();
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){USER, 0x1010});
    recording_comm(&recording, 11, PID, "other", true);
    recording_sample(&recording, 12, PID, 2, (uint64_t[]){USER, 0x1010});
    recording_map(&recording, 13, PID, (struct mapped){0x1000, 0x1000, "/bin/sh", 0});
    recording_sample(&recording, 14, PID, 2, (uint64_t[]){USER, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "py::outer:/a.py");
    assert_string_equal(stack_of(profile, 1), "py::outer:/a.py");
    assert_string_equal(stack_of(profile, 2), "sh+0x10");
    profile_free(profile);
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
    (void)state;
    struct perfdata_task again = {.pid = PID, .tid = PID, .parent_pid = 1, .parent_tid = 1};
    begin();
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){USER, 0x1010});
    recording_task(&recording, PERF_RECORD_EXIT, 20, again);
    recording_task(&recording, PERF_RECORD_FORK, 30, again);
    recording_sample(&recording, 40, PID, 2, (uint64_t[]){USER, 0x1010});
    struct profile *profile = recording_load(&recording);
    uint32_t first = profile->threads.items[profile->samples.items[0].thread].process;
    uint32_t second = profile->threads.items[profile->samples.items[1].thread].process;
    assert_int_not_equal(first, second);
    assert_int_equal(profile->processes.items[first].end_ns, 20);
    assert_string_equal(stack_of(profile, 1), "[unknown]+0x1010");
    profile_free(profile);
}

static void chains_are_cut_at_the_longest_that_is_asked_for(void **state)
{
    (void)state;
    begin();
    recording.options.max_stack = 2;
    recording_sample(&recording, 10, PID, 4, (uint64_t[]){USER, 0x1210, 0x1110, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "py::inner:/a.py;helper");
    assert_int_equal(profile->samples.items[0].end, PROFILE_STACK_TRUNCATED);
    assert_int_equal(profile->losses.truncated, 1);
    profile_free(profile);
}

/* The same chain four times, told to have ended in each way, and not told. */
static struct profile *load_ends(const char *written_by)
{
    static const uint64_t chain[] = {USER, 0x1210, 0x1110, 0x1010};
    begin();
    recording.written_by = written_by;
    for (enum perfdata_stack_end end = 0; end <= PERFDATA_STACK_BROKEN; end++) {
        recording.misc = perfdata_stack_end_misc(end);
        recording_sample(&recording, 10 + end, PID, 4, chain);
    }
    return recording_load(&recording);
}

static void our_recorder_says_how_stacks_ended(void **state)
{
    (void)state;
    struct profile *profile = load_ends("pitviper 0.1.0, by timers");
    const struct profile_sample *samples = profile->samples.items;
    assert_int_equal(samples[PERFDATA_STACK_COMPLETE].end, PROFILE_STACK_COMPLETE);
    assert_int_equal(samples[PERFDATA_STACK_TRUNCATED].end, PROFILE_STACK_TRUNCATED);
    assert_int_equal(samples[PERFDATA_STACK_BROKEN].end, PROFILE_STACK_BROKEN);
    assert_int_equal(samples[PERFDATA_STACK_UNTOLD].end, PROFILE_STACK_BROKEN); /* by its name */
    for (size_t i = 0; i < profile->samples.count; i++) {
        assert_string_equal(stack_of(profile, i), "py::outer:/a.py;py::inner:/a.py;helper");
        assert_false(samples[i].waiting);
    }
    profile_free(profile);
}

static void others_do_not_say_how_stacks_ended(void **state)
{
    (void)state;
    struct profile *profile = load_ends("6.1.187");
    assert_int_equal(profile->losses.broken, 4);
    profile_free(profile);
}

static void a_chain_that_is_cut_here_is_not_complete(void **state)
{
    (void)state;
    begin();
    recording.written_by = "pitviper 0.1.0, by timers";
    recording.misc = perfdata_stack_end_misc(PERFDATA_STACK_COMPLETE);
    recording.options.max_stack = 2;
    recording_sample(&recording, 10, PID, 3, (uint64_t[]){USER, 0x1110, 0x1010});
    recording_sample(&recording, 11, PID, 4, (uint64_t[]){USER, 0x1210, 0x1110, 0x1010});
    struct profile *profile = recording_load(&recording);
    assert_int_equal(profile->samples.items[0].end, PROFILE_STACK_COMPLETE);
    assert_int_equal(profile->samples.items[1].end, PROFILE_STACK_TRUNCATED);
    profile_free(profile);
}

static void an_unknown_marker_makes_a_chain_worthless(void **state)
{
    (void)state;
    begin();
    recording_sample(&recording, 10, PID, 4, (uint64_t[]){USER, 0x1210, (uint64_t)-4000, 0x1010});
    recording_sample(&recording, 11, PID, 0, NULL);
    struct profile *profile = recording_load(&recording);
    assert_int_equal(profile->samples.items[0].stack, PROFILE_ROOT);
    assert_int_equal(profile->samples.items[1].stack, PROFILE_ROOT);
    assert_int_equal(profile->losses.broken, 2);
    profile_free(profile);
}

static bool refuse(void *context, uint64_t done, uint64_t total)
{
    *(bool *)context = done <= total;
    return false;
}

static void loading_can_be_cancelled(void **state)
{
    (void)state;
    begin();
    for (uint64_t i = 0; i < 10000; i++)
        recording_sample(&recording, 10 + i, PID, 2, (uint64_t[]){USER, 0x1010});
    recording_finish(&recording);
    bool was_called = false;
    recording.options.progress = refuse;
    recording.options.progress_context = &was_called;
    struct profile *profile;
    const char *problem;
    assert_int_equal(profile_load(recording.path, &recording.options, &problem, &profile),
                     -ECANCELED);
    assert_true(was_called);
    recording_remove(&recording);
}

static void what_is_no_recording_is_refused_with_a_reason(void **state)
{
    (void)state;
    struct profile_options options = profile_options_default();
    struct profile *profile;
    const char *problem = NULL;
    assert_true(profile_load("/nonexistent", &options, &problem, &profile) < 0);
    assert_true(profile_load("/dev/null", &options, &problem, &profile) < 0);
    assert_non_null(problem);
}

static void short_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    struct perfdata_task fork = {.pid = CHILD, .tid = CHILD, .parent_pid = PID, .parent_tid = PID};
    begin();
    recording_sample(&recording, 10, PID, 4, (uint64_t[]){USER, 0x1210, 0x1110, 0x1010});
    recording_task(&recording, PERF_RECORD_FORK, 12, fork);
    recording_map(&recording, 13, CHILD, (struct mapped){0x9000, 0x1000, "/gone", 0});
    recording_sample(&recording, 14, CHILD, 3, (uint64_t[]){USER, 0x9010, 0x1010});
    recording_finish(&recording);
    for (long n = 0;; n++) {
        struct profile *profile = NULL;
        const char *problem;
        failing_malloc_after(n);
        int result = profile_load(recording.path, &recording.options, &problem, &profile);
        bool has_failed = failing_malloc_stop();
        /* A map that could not be read for want of memory leaves names out: no error. */
        assert_true(result == 0 || result == -ENOMEM);
        if (result == 0)
            profile_free(profile);
        if (!has_failed)
            break;
    }
    recording_remove(&recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_become_stacks_with_the_outermost_frame_at_the_root),
        cmocka_unit_test(equal_stacks_and_common_callers_are_there_once),
        cmocka_unit_test(samples_have_the_name_that_the_thread_had_then),
        cmocka_unit_test(a_process_that_nothing_announced_goes_by_its_number),
        cmocka_unit_test(a_child_has_what_its_parent_had_mapped),
        cmocka_unit_test(exec_leaves_mappings_until_others_are_over_them),
        cmocka_unit_test(a_pid_that_is_used_again_is_another_process),
        cmocka_unit_test(chains_are_cut_at_the_longest_that_is_asked_for),
        cmocka_unit_test(our_recorder_says_how_stacks_ended),
        cmocka_unit_test(others_do_not_say_how_stacks_ended),
        cmocka_unit_test(a_chain_that_is_cut_here_is_not_complete),
        cmocka_unit_test(an_unknown_marker_makes_a_chain_worthless),
        cmocka_unit_test(loading_can_be_cancelled),
        cmocka_unit_test(what_is_no_recording_is_refused_with_a_reason),
        cmocka_unit_test(short_memory_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
