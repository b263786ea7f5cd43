#include "record/inject_scan.h"

#include "failing_malloc.h"
#include "inject_sample.h"
#include "unit.h"

static struct sample_file file;
static struct perfdata_splice splice;
static struct perfdata_reader *reader;
static struct inject_scan scan;

static void begin(void)
{
    struct perfdata_event event = clocked_event(true);
    sample_begin_with(&file, &event, 1);
}

static void end(void)
{
    sample_end(&file);
    reader = sample_open(&file);
    assert_int_equal(perfdata_splice_open(&splice, file.bytes, file.length), 0);
    assert_int_equal(inject_scan_init(&scan, reader, &splice), 0);
}

static void done(void)
{
    inject_scan_done(&scan);
    perfdata_splice_done(&splice);
    perfdata_close(reader);
    sample_done(&file);
}

static void markers_are_told_by_their_names(void **state)
{
    (void)state;
    static const char *const others[] = {"/tmp/jit-.dump",       "/tmp/jit-1x.dump",
                                         "/tmp/jit-1.dump.old",  "/tmp/xjit-1.dump",
                                         "/tmp/jit--1.dump",     "/tmp/jit-99999999999.dump",
                                         "/tmp/jit-1.dump/name", "/tmp/jit- 1.dump"};
    begin();
    for (size_t i = 0; i < COUNT(others); i++)
        add_mapping(&file, 10, others[i], 0x1000, 0x1000);
    add_mapping(&file, 11, "/a folder/jit-17.dump", 0x1000, 0x1000);
    add_mapping(&file, 12, "jit-18.dump", 0x1000, 0x1000);
    end();
    assert_int_equal(scan.markers.count, 2);
    assert_int_equal(scan.markers.items[0].named_pid, 17);
    assert_int_equal(scan.markers.items[0].pid, SAMPLE_PID);
    assert_int_equal(scan.markers.items[1].named_pid, 18);
    done();
}

static void the_last_marker_of_a_path_counts(void **state)
{
    (void)state;
    begin();
    add_mapping(&file, 10, "/tmp/jit-17.dump", 0x1000, 0x1000);
    sample_add(&file, (struct perfdata_record){.type = PERF_RECORD_COMM,
                                               .time_ns = 20,
                                               .comm = {.pid = SAMPLE_PID,
                                                        .tid = SAMPLE_PID,
                                                        .is_exec = true,
                                                        .name = "again",
                                                        .name_length = 5}});
    add_mapping(&file, 30, "/tmp/jit-17.dump", 0x2000, 0x1000);
    end();
    assert_int_equal(scan.markers.count, 1);
    assert_int_equal(scan.markers.items[0].time_ns, 30);
    assert_int_equal(scan.markers.items[0].exec_time_ns, 20);
    done();
}

static void a_time_belongs_to_the_first_round_that_reaches_it(void **state)
{
    (void)state;
    begin();
    sample_add_sample(&file, 10);
    perfdata_writer_round(file.writer);
    sample_add_sample(&file, 5); /* a round may be older than the one before */
    perfdata_writer_round(file.writer);
    sample_add_sample(&file, 20);
    end();
    assert_int_equal(inject_scan_round(&scan, 0), 0);
    assert_int_equal(inject_scan_round(&scan, 10), 0);
    assert_int_equal(inject_scan_round(&scan, 11), 2);
    assert_int_equal(inject_scan_round(&scan, UINT64_MAX), 2);
    done();
}

static void room_is_where_nothing_ever_was(void **state)
{
    (void)state;
    begin();
    add_mapping(&file, 10, "/lib/b", 0x40000, 0x10000);
    add_mapping(&file, 10, "/lib/a", 0x20000, 0x10000);
    add_mapping(&file, 10, "/lib/inside a", 0x24000, 0x1000);
    end();
    assert_int_equal(scan.used.count, 2);
    /* A page on either side stays free. */
    assert_int_equal(inject_scan_room(&scan, 0x10000, 0x1000), 0x11000);
    assert_int_equal(inject_scan_room(&scan, 0x10000, 0xe000), 0x11000);
    assert_int_equal(inject_scan_room(&scan, 0x10000, 0xe001), 0x51000);
    assert_int_equal(inject_scan_room(&scan, 0x24800, 0x1000), 0x31000);
    assert_int_equal(inject_scan_room(&scan, 0x90000, 0x1000), 0x91000);
    done();
}

static void there_may_be_no_room(void **state)
{
    (void)state;
    begin();
    add_mapping(&file, 10, "/lib/all", 0x10000, UINT64_MAX);
    end();
    assert_int_equal(inject_scan_room(&scan, 0x20000, 0x1000), 0);
    assert_int_equal(inject_scan_room(&scan, UINT64_MAX, 0x1000), 0);
    assert_int_equal(inject_scan_room(&scan, UINT64_MAX - 0x1000, 0x1000), 0);
    done();
}

static void only_executable_memory_without_a_file_is_for_code(void **state)
{
    (void)state;
    static const char *const paths[] = {"//anon",
                                        "[anon:python]",
                                        "/memfd:code (deleted)",
                                        "/dev/zero (deleted)",
                                        "[heap]",
                                        "/lib/x.so",
                                        ""};
    begin();
    for (size_t i = 0; i < COUNT(paths); i++)
        add_mapping(&file, 10, paths[i], 0x1000 * (i + 1), 0x1000);
    sample_add(&file, (struct perfdata_record){.type = PERF_RECORD_MMAP2,
                                               .time_ns = 11,
                                               .mmap = {.pid = SAMPLE_PID,
                                                        .start_avma = 0x90000,
                                                        .length = 0x1000,
                                                        .protection = PROT_READ | PROT_WRITE,
                                                        .path = "//anon",
                                                        .path_length = 6}});
    end();
    assert_int_equal(scan.anons.count, 4);
    assert_int_equal(scan.anons.items[3].start_avma, 0x4000);
    done();
}

static void memory_may_run_short(void **state)
{
    (void)state;
    begin();
    add_mapping(&file, 10, "//anon", 0x1000, 0x1000);
    add_mapping(&file, 11, "/tmp/jit-17.dump", 0x2000, 0x1000);
    sample_add(&file, (struct perfdata_record){.type = PERF_RECORD_COMM,
                                               .time_ns = 20,
                                               .comm = {.is_exec = true, .name = ""}});
    sample_end(&file);
    assert_int_equal(perfdata_splice_open(&splice, file.bytes, file.length), 0);
    for (long n = 0;; n++) {
        reader = sample_open(&file);
        failing_malloc_after(n);
        int error = inject_scan_init(&scan, reader, &splice);
        bool failed = failing_malloc_stop();
        assert_int_equal(error, failed ? -ENOMEM : 0);
        perfdata_close(reader);
        if (!failed)
            break;
    }
    inject_scan_done(&scan);
    perfdata_splice_done(&splice);
    sample_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(markers_are_told_by_their_names),
        cmocka_unit_test(the_last_marker_of_a_path_counts),
        cmocka_unit_test(a_time_belongs_to_the_first_round_that_reaches_it),
        cmocka_unit_test(room_is_where_nothing_ever_was),
        cmocka_unit_test(there_may_be_no_room),
        cmocka_unit_test(only_executable_memory_without_a_file_is_for_code),
        cmocka_unit_test(memory_may_run_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
