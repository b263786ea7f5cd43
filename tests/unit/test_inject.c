/* Whole runs on recordings and dumps that no program would write. What perf makes of the result is
 * shown by tests/e2e/test_inject.py. */
#include "record/inject.h"

#include "failing_malloc.h"
#include "inject_sample.h"
#include "unit.h"

static struct sample_file file;
static struct inject_result result;

/* The mappings of images in the output, in the order of time. */
static struct {
    uint64_t time_ns, start_avma, end_avma, fileoff;
    char path[128];
} mapped[64];
static size_t mapped_count, sample_count;

static void read_output(void)
{
    struct perfdata_reader *reader;
    struct perfdata_record record;
    const char *problem;
    mapped_count = sample_count = 0;
    assert_int_equal(perfdata_open(output_path, &problem, &reader), 0);
    while (perfdata_next(reader, &record) == 1) {
        sample_count += record.type == PERF_RECORD_SAMPLE;
        if (record.type != PERF_RECORD_MMAP2 || !strstr(record.mmap.path, "/jitted-"))
            continue;
        assert_true(mapped_count < COUNT(mapped));
        mapped[mapped_count].time_ns = record.time_ns;
        mapped[mapped_count].start_avma = record.mmap.start_avma;
        mapped[mapped_count].end_avma = record.mmap.start_avma + record.mmap.length;
        mapped[mapped_count].fileoff = record.mmap.fileoff;
        snprintf(mapped[mapped_count++].path, sizeof mapped[0].path, "%s", record.mmap.path);
        assert_int_equal(access(record.mmap.path, R_OK), 0);
    }
    assert_int_equal(perfdata_damage(reader)->count, 0);
    assert_int_equal(perfdata_stats(reader)->unordered, 0);
    perfdata_close(reader);
}

static int run(bool per_function)
{
    struct inject_request request = {
        .input = input_path, .output = output_path, .per_function = per_function};
    inject_result_done(&result);
    return inject_run(&request, &result);
}

static void run_well(bool per_function)
{
    assert_int_equal(run(per_function), 0);
    read_output();
    assert_int_equal(result.markers, 1);
}

static void begin(bool is_monotonic)
{
    remove_files("");
    recording_begin(&file, is_monotonic);
    dump_begin();
}

static void end(void)
{
    recording_end(&file);
    dump_end();
}

static void assert_note(const char *text)
{
    assert_int_equal(result.notes.count, 1);
    if (!strstr(result.notes.items[0].problem, text))
        fail_msg("the note is: %s", result.notes.items[0].problem);
}

static void code_is_mapped_behind_the_memory_it_stands_in(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "one");
    dump_load(3000, CODE_AVMA + CODE_BYTES, 2, "two");
    end();
    run_well(false);
    assert_int_equal(result.notes.count, 0);
    assert_int_equal(result.images, 1);
    assert_int_equal(mapped[0].time_ns, 1000);
    assert_int_equal(mapped[0].start_avma, CODE_AVMA);
    assert_int_equal(mapped[0].end_avma, CODE_AVMA + 2 * CODE_BYTES);
    assert_int_equal(sample_count, 1);
}

static void memory_used_again_is_mapped_from_its_own_time_on(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "first");
    dump_load(3000, CODE_AVMA + 8, 2, "second");
    dump_load(4000, CODE_AVMA, 3, "third");
    end();
    run_well(false);
    assert_int_equal(result.images, 3);
    static const uint64_t times[] = {1000, 3000, 4000};
    size_t next = 0;
    for (size_t i = 0; i < mapped_count; i++)
        if (mapped[i].start_avma < CODE_AVMA + ANON_BYTES)
            assert_int_equal(mapped[i].time_ns, times[next++]);
    assert_int_equal(next, COUNT(times));
}

static void the_order_in_the_dump_does_not_matter_but_its_times(void **state)
{
    (void)state;
    begin(true);
    dump_load(4000, CODE_AVMA, 1, "later");
    dump_load(2000, CODE_AVMA, 2, "earlier");
    end();
    run_well(true);
    assert_int_equal(mapped_count, 2);
    assert_int_equal(mapped[0].time_ns, 1000);
    assert_non_null(strstr(mapped[0].path, "-2.so"));
    assert_int_equal(mapped[1].time_ns, 4000);
    assert_non_null(strstr(mapped[1].path, "-1.so"));
}

static void without_a_clock_only_the_first_use_is_shown(void **state)
{
    (void)state;
    remove_files("");
    recording_begin(&file, false);
    dump_begin_with((struct jitdump_header){.elf_machine = EM_X86_64, .pid = SAMPLE_PID});
    dump_load(2000, CODE_AVMA, 1, "first");
    dump_load(3000, CODE_AVMA, 2, "second");
    end();
    run_well(true);
    assert_int_equal(mapped_count, 1);
    assert_note("clock can't be matched");
}

static void clocks_are_matched_by_the_marker(void **state)
{
    (void)state;
    remove_files("");
    recording_begin(&file, false);
    dump_begin_with((struct jitdump_header){
        .elf_machine = EM_X86_64, .pid = SAMPLE_PID, .timestamp = 9000000001000});
    dump_load(9000000002000, CODE_AVMA, 1, "first");
    dump_load(9000000003000, CODE_AVMA, 2, "second");
    end();
    run_well(true);
    assert_int_equal(result.notes.count, 0);
    assert_int_equal(mapped_count, 2);
    assert_int_equal(mapped[1].time_ns, 3000);
}

static void moved_code_is_in_both_places(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "moving");
    jitdump_encode_move(&dump_writer, 3000,
                        &(struct jitdump_move){.pid = SAMPLE_PID,
                                               .tid = SAMPLE_PID,
                                               .old_avma = CODE_AVMA,
                                               .new_avma = CODE_AVMA + 0x1000,
                                               .code_size = CODE_BYTES,
                                               .code_index = 1});
    jitdump_encode_move(&dump_writer, 4000,
                        &(struct jitdump_move){.pid = SAMPLE_PID,
                                               .old_avma = CODE_AVMA,
                                               .new_avma = CODE_AVMA + 0x2000,
                                               .code_size = CODE_BYTES,
                                               .code_index = 77});
    end();
    run_well(true);
    assert_int_equal(mapped_count, 2);
    assert_int_equal(mapped[0].start_avma, CODE_AVMA);
    assert_int_equal(mapped[1].start_avma, CODE_AVMA + 0x1000);
    assert_string_not_equal(mapped[0].path, mapped[1].path);
    assert_note("can't be: left out");
}

static void code_at_the_ends_of_the_address_space_does_no_harm(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, 0, 1, "at zero");
    dump_load(2000, UINT64_MAX - CODE_BYTES, 2, "at the end");
    dump_load(2000, CODE_AVMA, 3, "right");
    end();
    for (int per_function = 0; per_function < 2; per_function++) {
        run_well(per_function);
        bool seen = false;
        for (size_t i = 0; i < mapped_count; i++) {
            assert_true(mapped[i].start_avma < mapped[i].end_avma);
            seen |= mapped[i].start_avma == CODE_AVMA;
        }
        assert_true(seen);
        assert_int_equal(sample_count, 1);
    }
}

static void mappings_at_the_ends_of_the_address_space_do_no_harm(void **state)
{
    (void)state;
    begin(true);
    add_mapping(&file, 1100, "//anon", 0, UINT64_MAX);
    add_mapping(&file, 1200, "//anon", UINT64_MAX - 1, UINT64_MAX);
    dump_load(2000, CODE_AVMA, 1, "one");
    end();
    run_well(false);
    assert_true(mapped_count >= 2);
    for (size_t i = 0; i < mapped_count; i++)
        assert_int_equal(mapped[i].start_avma, CODE_AVMA);
}

static void names_may_be_anything(void **state)
{
    (void)state;
    static char huge[30000];
    memset(huge, 'n', sizeof huge - 1);
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "../../etc/passwd\n\x1b[31m");
    dump_load(2000, CODE_AVMA + CODE_BYTES, 2, huge);
    end();
    run_well(true);
    assert_int_equal(mapped_count, 2);
}

static void indices_may_come_again(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "one");
    dump_load(3000, CODE_AVMA + 0x100, 1, "two");
    end();
    run_well(true);
    assert_int_equal(mapped_count, 2);
    assert_string_not_equal(mapped[0].path, mapped[1].path);
}

static void a_missing_dump_is_a_note(void **state)
{
    (void)state;
    begin(true);
    recording_end(&file);
    run_well(false);
    assert_int_equal(mapped_count, 0);
    assert_int_equal(sample_count, 1);
    assert_int_equal(result.notes.items[0].error, -ENOENT);
}

static void a_pipe_in_the_place_of_the_dump_is_not_waited_for(void **state)
{
    (void)state;
    begin(true);
    recording_end(&file);
    assert_int_equal(mkfifo(dump_path, 0600), 0);
    run_well(false);
    assert_int_equal(result.notes.count, 1);
}

static void a_dump_may_end_anywhere(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "one");
    size_t first_end = dump_writer.length;
    dump_load(3000, CODE_AVMA + CODE_BYTES, 2, "two");
    end();
    for (size_t length = 0; length < dump_writer.length; length++) {
        write_file(dump_path, dump_bytes, length);
        run_well(true);
        assert_int_equal(sample_count, 1);
        assert_int_equal(mapped_count, length < first_end ? 0 : 1);
        assert_int_equal(result.notes.count, length == 40 || length == first_end ? 0 : 1);
    }
}

static void a_dump_of_another_machine_is_not_used(void **state)
{
    (void)state;
    remove_files("");
    recording_begin(&file, true);
    dump_begin_with(
        (struct jitdump_header){.elf_machine = EM_AARCH64, .pid = SAMPLE_PID, .timestamp = 1000});
    dump_load(2000, CODE_AVMA, 1, "one");
    end();
    run_well(false);
    assert_int_equal(mapped_count, 0);
    assert_note("another kind of machine");
}

static void a_dump_of_another_process_is_not_used(void **state)
{
    (void)state;
    remove_files("");
    recording_begin(&file, true);
    dump_begin_with((struct jitdump_header){
        .elf_machine = EM_X86_64, .pid = SAMPLE_PID + 1, .timestamp = 1000});
    dump_load(2000, CODE_AVMA, 1, "one");
    end();
    run_well(false);
    assert_int_equal(mapped_count, 0);
    assert_note("another process");
}

static void a_dump_of_another_time_is_not_used(void **state)
{
    (void)state;
    begin(true);
    dump_load(900000000000, CODE_AVMA, 1, "one");
    end();
    run_well(false);
    assert_int_equal(mapped_count, 0);
    assert_note("another time");
}

static void a_recording_that_is_none_leaves_no_output(void **state)
{
    (void)state;
    remove_files("");
    write_file(input_path, "something else", 14);
    assert_int_equal(run(false), -EBADMSG);
    assert_string_equal(result.failed_path, input_path);
    assert_int_equal(remove_files("out"), 0);
}

static void memory_may_run_short(void **state)
{
    (void)state;
    begin(true);
    dump_load(2000, CODE_AVMA, 1, "first");
    dump_load(3000, CODE_AVMA, 2, "second");
    end();
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int error = run(false);
        bool failed = failing_malloc_stop();
        if (!failed) {
            assert_int_equal(error, 0);
            break;
        }
        /* Without memory for a dump there may still be an output, which says so. */
        assert_true(error == -ENOMEM || (error == 0 && result.notes.count));
        if (error)
            assert_int_equal(access(output_path, F_OK), -1);
        remove_files("out");
        remove_files("jitted-");
    }
}

static int release(void **state)
{
    inject_result_done(&result);
    return remove_folder(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_is_mapped_behind_the_memory_it_stands_in),
        cmocka_unit_test(memory_used_again_is_mapped_from_its_own_time_on),
        cmocka_unit_test(the_order_in_the_dump_does_not_matter_but_its_times),
        cmocka_unit_test(without_a_clock_only_the_first_use_is_shown),
        cmocka_unit_test(clocks_are_matched_by_the_marker),
        cmocka_unit_test(moved_code_is_in_both_places),
        cmocka_unit_test(code_at_the_ends_of_the_address_space_does_no_harm),
        cmocka_unit_test(mappings_at_the_ends_of_the_address_space_do_no_harm),
        cmocka_unit_test(names_may_be_anything),
        cmocka_unit_test(indices_may_come_again),
        cmocka_unit_test(a_missing_dump_is_a_note),
        cmocka_unit_test(a_pipe_in_the_place_of_the_dump_is_not_waited_for),
        cmocka_unit_test(a_dump_may_end_anywhere),
        cmocka_unit_test(a_dump_of_another_machine_is_not_used),
        cmocka_unit_test(a_dump_of_another_process_is_not_used),
        cmocka_unit_test(a_dump_of_another_time_is_not_used),
        cmocka_unit_test(a_recording_that_is_none_leaves_no_output),
        cmocka_unit_test(memory_may_run_short),
    };
    return cmocka_run_group_tests(tests, make_folder, release);
}
