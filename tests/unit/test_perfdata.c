/* Whole recordings, made by our writer: what was put in comes out, in the order of time. */
#include "formats/perfdata.h"

#include "failing_malloc.h"
#include "perfdata_sample.h"
#include "unit.h"

static struct sample_file file;

static void assert_times(const uint64_t *times, size_t count)
{
    struct sample_reading reading = sample_read(&file);
    assert_int_equal(reading.count, count);
    assert_memory_equal(reading.times, times, count * sizeof *times);
    assert_int_equal(reading.damage.count, 0);
    assert_false(reading.damage.truncated);
    sample_done(&file);
}

/* Writes one record and reads it back. The record is valid until close_only. */
static struct perfdata_reader *only_reader;

static struct perfdata_record write_and_read(const struct perfdata_event *event,
                                             struct perfdata_record record)
{
    struct perfdata_record read;
    sample_begin_with(&file, event, 1);
    sample_add(&file, record);
    sample_end(&file);
    only_reader = sample_open(&file);
    assert_int_equal(perfdata_next(only_reader, &read), 1);
    assert_int_equal(read.type, record.type);
    assert_int_equal(read.time_ns, record.time_ns);
    assert_int_equal(read.pid, SAMPLE_PID);
    assert_true(read.lasting);
    return read;
}

static void close_only(void)
{
    struct perfdata_record record;
    assert_int_equal(perfdata_next(only_reader, &record), 0);
    assert_int_equal(perfdata_damage(only_reader)->count, 0);
    perfdata_close(only_reader);
    sample_done(&file);
}

static void assert_not_opened(const void *data, size_t length, int error)
{
    struct perfdata_reader *reader;
    const char *problem = NULL;
    assert_int_equal(perfdata_open_memory("x", data, length, &problem, &reader), error);
    assert_non_null(problem);
}

static void samples_are_sorted_by_time(void **state)
{
    (void)state;
    static const uint64_t written[] = {5, 3, 9, 1, 2, 8, 7};
    sample_begin(&file);
    for (size_t i = 0; i < COUNT(written); i++)
        sample_add_sample(&file, written[i]);
    sample_end(&file);
    assert_times((const uint64_t[]){1, 2, 3, 5, 7, 8, 9}, COUNT(written));
}

static void a_record_without_time_comes_first_in_its_round(void **state)
{
    (void)state;
    sample_begin(&file);
    sample_add_sample(&file, 5);
    sample_add(&file, (struct perfdata_record){.type = PERF_RECORD_COMM, .comm = {.name = ""}});
    sample_end(&file);
    assert_times((const uint64_t[]){0, 5}, 2);
}

static void equal_times_keep_the_order_of_the_file(void **state)
{
    (void)state;
    sample_begin(&file);
    for (uint64_t i = 0; i < 20; i++) {
        struct perfdata_record record = sample_at(10 - i % 2);
        record.sample.period = i;
        sample_add(&file, record);
    }
    sample_end(&file);
    struct perfdata_reader *reader = sample_open(&file);
    struct perfdata_record record;
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(perfdata_next(reader, &record), 1);
        assert_int_equal(record.sample.period, i < 10 ? i * 2 + 1 : (i - 10) * 2);
    }
    perfdata_close(reader);
    sample_done(&file);
}

static void a_round_is_handed_out_when_the_next_one_is_complete(void **state)
{
    (void)state;
    sample_begin(&file);
    sample_add_sample(&file, 3);
    sample_add_sample(&file, 1);
    perfdata_writer_round(file.writer);
    sample_add_sample(&file, 4);
    sample_add_sample(&file, 2);
    perfdata_writer_round(file.writer);
    sample_end(&file);
    assert_times((const uint64_t[]){1, 2, 3, 4}, 4);
}

static void a_record_that_comes_too_late_is_counted(void **state)
{
    (void)state;
    sample_begin(&file);
    sample_add_sample(&file, 3);
    perfdata_writer_round(file.writer);
    perfdata_writer_round(file.writer);
    sample_add_sample(&file, 1);
    sample_end(&file);
    struct sample_reading reading = sample_read(&file);
    assert_int_equal(reading.count, 2);
    assert_int_equal(reading.times[1], 1);
    assert_int_equal(reading.stats.unordered, 1);
    sample_done(&file);
}

static void events_are_told_by_their_ids(void **state)
{
    (void)state;
    sample_begin(&file);
    struct perfdata_record second = sample_at(2), unknown = sample_at(3);
    second.event = 1;
    unknown.sample.id = 99;
    sample_add_sample(&file, 1);
    sample_add(&file, second);
    sample_add(&file, unknown);
    sample_end(&file);
    struct perfdata_reader *reader = sample_open(&file);
    const struct perfdata_info *info = perfdata_info(reader);
    struct perfdata_record record;
    assert_int_equal(info->event_count, 2);
    assert_int_equal(perfdata_next(reader, &record), 1);
    assert_string_equal(info->events[record.event].name, "first");
    assert_int_equal(perfdata_next(reader, &record), 1);
    assert_string_equal(info->events[record.event].name, "second");
    assert_int_equal(perfdata_next(reader, &record), 0);
    assert_int_equal(perfdata_stats(reader)->unknown_events, 1);
    perfdata_close(reader);
    sample_done(&file);
}

static void a_second_pass_finds_the_same(void **state)
{
    (void)state;
    sample_begin(&file);
    for (uint64_t i = 1; i <= 10; i++)
        sample_add_sample(&file, 100 - i);
    sample_end(&file);
    struct perfdata_reader *reader = sample_open(&file);
    struct perfdata_record record;
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(perfdata_next(reader, &record), 1);
    perfdata_rewind(reader);
    for (uint64_t i = 90; i < 100; i++) {
        assert_int_equal(perfdata_next(reader, &record), 1);
        assert_int_equal(record.time_ns, i);
    }
    assert_int_equal(perfdata_next(reader, &record), 0);
    assert_int_equal(perfdata_stats(reader)->records[PERF_RECORD_SAMPLE], 10);
    perfdata_close(reader);
    sample_done(&file);
}

static void a_sample_has_its_chain(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record read = write_and_read(&event, sample_at(12));
    assert_int_equal(read.sample.ip_avma, 0x1010);
    assert_int_equal(read.sample.period, 7);
    assert_int_equal(perfdata_cpumode(&read), PERF_RECORD_MISC_USER);
    assert_int_equal(read.sample.callchain_length, COUNT(SAMPLE_CHAIN));
    assert_memory_equal(read.sample.callchain, SAMPLE_CHAIN, sizeof SAMPLE_CHAIN);
    assert_true(perfdata_is_marker(read.sample.callchain[0]));
    assert_false(perfdata_is_marker(read.sample.callchain[1]));
    close_only();
}

static void a_sample_has_its_registers_and_stack(void **state)
{
    (void)state;
    static const uint64_t regs[] = {1, 2, 3};
    struct perfdata_event event = sample_event(0);
    event.attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    event.attr.sample_regs_user = 0x111;
    struct perfdata_record record = sample_at(12);
    record.sample.user_regs_abi = PERF_SAMPLE_REGS_ABI_64;
    record.sample.user_regs = regs;
    record.sample.user_stack = (const uint8_t *)"0123456789abcdef";
    record.sample.user_stack_room = 16;
    record.sample.user_stack_length = 8;
    struct perfdata_record read = write_and_read(&event, record);
    assert_int_equal(read.sample.user_regs_mask, 0x111);
    assert_memory_equal(read.sample.user_regs, regs, sizeof regs);
    assert_int_equal(read.sample.user_stack_room, 16);
    assert_bytes(read.sample.user_stack, read.sample.user_stack_length, "01234567");
    close_only();
}

static void a_kernel_thread_has_neither_registers_nor_stack(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    event.attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    event.attr.sample_regs_user = 0x111;
    struct perfdata_record read = write_and_read(&event, sample_at(12));
    assert_null(read.sample.user_regs);
    assert_int_equal(read.sample.user_regs_mask, 0);
    assert_int_equal(read.sample.user_stack_length, 0);
    close_only();
}

static void every_part_of_a_trailer_is_in_its_place(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    event.attr.sample_type |= PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU;
    struct perfdata_record record = {
        .type = PERF_RECORD_COMM, .time_ns = 12, .cpu = 3, .comm = {.name = "x", .name_length = 1}};
    assert_int_equal(write_and_read(&event, record).cpu, 3);
    close_only();
    record = sample_at(12);
    record.cpu = 3;
    struct perfdata_record read = write_and_read(&event, record);
    assert_int_equal(read.cpu, 3);
    assert_int_equal(read.sample.period, 7);
    assert_int_equal(read.sample.callchain_length, COUNT(SAMPLE_CHAIN));
    close_only();
}

static void a_mapping_has_its_build_id(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record record = {.type = PERF_RECORD_MMAP2,
                                     .time_ns = 5,
                                     .mmap = {.pid = 1,
                                              .tid = 2,
                                              .start_avma = 0x1000,
                                              .length = 0x2000,
                                              .fileoff = 0x3000,
                                              .protection = PROT_READ | PROT_EXEC,
                                              .build_id_size = 3,
                                              .build_id = {1, 2, 3},
                                              .path = "/lib/x.so",
                                              .path_length = 9}};
    struct perfdata_record read = write_and_read(&event, record);
    assert_int_equal(read.mmap.pid, 1);
    assert_int_equal(read.mmap.start_avma, 0x1000);
    assert_int_equal(read.mmap.length, 0x2000);
    assert_int_equal(read.mmap.fileoff, 0x3000);
    assert_int_equal(read.mmap.build_id_size, 3);
    assert_memory_equal(read.mmap.build_id, "\1\2\3", 3);
    assert_string_equal(read.mmap.path, "/lib/x.so");
    assert_false(read.mmap.is_data);
    close_only();
}

static void a_mapping_without_build_id_has_its_inode(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record record = {
        .type = PERF_RECORD_MMAP2,
        .mmap = {.device_major = 8, .inode = 1234, .protection = PROT_READ, .path = ""}};
    struct perfdata_record read = write_and_read(&event, record);
    assert_int_equal(read.mmap.build_id_size, 0);
    assert_int_equal(read.mmap.device_major, 8);
    assert_int_equal(read.mmap.inode, 1234);
    assert_true(read.mmap.is_data);
    close_only();
}

static void a_mapping_without_end_ends_with_the_address_space(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record record = {
        .type = PERF_RECORD_MMAP,
        .mmap = {.pid = -1, .start_avma = 0x1000, .length = UINT64_MAX, .path = "[kernel]"}};
    record.mmap.path_length = strlen(record.mmap.path);
    struct perfdata_record read = write_and_read(&event, record);
    assert_int_equal(read.mmap.pid, -1);
    assert_true(read.mmap.start_avma + read.mmap.length == UINT64_MAX);
    close_only();
}

static void a_name_says_whether_it_comes_from_exec(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record record = {
        .type = PERF_RECORD_COMM,
        .comm = {.pid = 1, .tid = 2, .is_exec = true, .name = "app", .name_length = 3}};
    struct perfdata_record read = write_and_read(&event, record);
    assert_true(read.comm.is_exec);
    assert_string_equal(read.comm.name, "app");
    assert_int_equal(read.comm.tid, 2);
    close_only();
}

static void a_fork_has_parent_and_child(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record record = {
        .type = PERF_RECORD_FORK,
        .time_ns = 9,
        .task = {.pid = 1, .parent_pid = 2, .tid = 3, .parent_tid = 4}};
    struct perfdata_record read = write_and_read(&event, record);
    assert_memory_equal(&read.task, &record.task, sizeof read.task);
    close_only();
}

static void losses_are_counted(void **state)
{
    (void)state;
    struct perfdata_event event = sample_event(0);
    struct perfdata_record record = {.type = PERF_RECORD_LOST, .lost = {.id = 71, .count = 8}};
    assert_int_equal(write_and_read(&event, record).lost.count, 8);
    close_only();
    record.type = PERF_RECORD_LOST_SAMPLES;
    assert_int_equal(write_and_read(&event, record).lost.count, 8);
    close_only();
}

static void the_header_tells_about_the_machine(void **state)
{
    (void)state;
    static const char *const arguments[] = {"perf", "record", "a b"};
    struct perfdata_build_id build_id = {.pid = -1, .id_length = 2, .id = {7, 8}, .path = "/x"};
    struct perfdata_info written = {.hostname = "host",
                                    .os_release = "6.1",
                                    .perf_version = "us",
                                    .arch = "x86_64",
                                    .cpus_available = 8,
                                    .cpus_online = 4,
                                    .memory_kilobytes = 1024,
                                    .arguments = arguments,
                                    .argument_count = COUNT(arguments),
                                    .build_ids = &build_id,
                                    .build_id_count = 1,
                                    .has_clock = true,
                                    .clock_id = 1,
                                    .clock_wall_ns = 5,
                                    .clock_ns = 6,
                                    .private_data = (const uint8_t *)"mine",
                                    .private_length = 4};
    sample_begin(&file);
    sample_add_sample(&file, 20);
    sample_add_sample(&file, 10);
    sample_end_with(&file, &written);
    struct perfdata_reader *reader = sample_open(&file);
    const struct perfdata_info *info = perfdata_info(reader);
    assert_true(info->is_finished && !info->is_pipe_mode && !info->is_compressed);
    assert_string_equal(info->hostname, "host");
    assert_string_equal(info->os_release, "6.1");
    assert_string_equal(info->perf_version, "us");
    assert_string_equal(info->arch, "x86_64");
    assert_null(info->cpu_description);
    assert_int_equal(info->cpus_available, 8);
    assert_int_equal(info->cpus_online, 4);
    assert_int_equal(info->memory_kilobytes, 1024);
    assert_int_equal(info->argument_count, 3);
    assert_string_equal(info->arguments[2], "a b");
    assert_int_equal(info->build_id_count, 1);
    assert_string_equal(info->build_ids[0].path, "/x");
    assert_bytes(info->build_ids[0].id, info->build_ids[0].id_length, "\7\10");
    assert_int_equal(info->first_sample_ns, 10);
    assert_int_equal(info->last_sample_ns, 20);
    assert_true(info->has_clock && info->clock_id == 1 && info->clock_ns == 6);
    assert_bytes(info->private_data, info->private_length, "mine");
    perfdata_close(reader);
    sample_done(&file);
}

static void what_is_no_recording_is_not_opened(void **state)
{
    (void)state;
    assert_not_opened("", 0, -EBADMSG);
    assert_not_opened("some other text, and more of it", 31, -EBADMSG);
    assert_false(perfdata_is("PERFILE", 7));
    assert_true(perfdata_is("PERFILE2", 8));
}

static void other_byte_orders_and_versions_are_not_opened(void **state)
{
    (void)state;
    static const char rest[96];
    char bytes[8 + sizeof rest] = {0};
    static const char *const magics[] = {"2ELIFREP", "PERFFILE", "ELIFFREP"};
    for (size_t i = 0; i < COUNT(magics); i++) {
        memcpy(bytes, magics[i], 8);
        assert_not_opened(bytes, sizeof bytes, -ENOTSUP);
    }
}

static void a_header_that_is_cut_off_is_not_opened(void **state)
{
    (void)state;
    sample_begin(&file);
    sample_end(&file);
    for (size_t length = 8; length < file.data_offset; length++) {
        uint8_t *cut = exact_copy(file.bytes, length);
        assert_not_opened(cut, length, -ENODATA);
        free(cut);
    }
    sample_done(&file);
}

static void short_memory_is_reported(void **state)
{
    (void)state;
    sample_begin(&file);
    for (uint64_t i = 0; i < 20; i++)
        sample_add_sample(&file, 100 - i);
    sample_end(&file);
    for (long n = 0;; n++) {
        struct perfdata_reader *reader = NULL;
        struct perfdata_record record;
        const char *problem;
        failing_malloc_after(n);
        int result = perfdata_open_memory("x", file.bytes, file.length, &problem, &reader);
        while (result >= 0 && (result = perfdata_next(reader, &record)) == 1)
            continue;
        perfdata_close(reader);
        if (!failing_malloc_stop())
            break;
        assert_int_equal(result, -ENOMEM);
    }
    sample_done(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_sorted_by_time),
        cmocka_unit_test(a_record_without_time_comes_first_in_its_round),
        cmocka_unit_test(equal_times_keep_the_order_of_the_file),
        cmocka_unit_test(a_round_is_handed_out_when_the_next_one_is_complete),
        cmocka_unit_test(a_record_that_comes_too_late_is_counted),
        cmocka_unit_test(events_are_told_by_their_ids),
        cmocka_unit_test(a_second_pass_finds_the_same),
        cmocka_unit_test(a_sample_has_its_chain),
        cmocka_unit_test(a_sample_has_its_registers_and_stack),
        cmocka_unit_test(a_kernel_thread_has_neither_registers_nor_stack),
        cmocka_unit_test(every_part_of_a_trailer_is_in_its_place),
        cmocka_unit_test(a_mapping_has_its_build_id),
        cmocka_unit_test(a_mapping_without_build_id_has_its_inode),
        cmocka_unit_test(a_mapping_without_end_ends_with_the_address_space),
        cmocka_unit_test(a_name_says_whether_it_comes_from_exec),
        cmocka_unit_test(a_fork_has_parent_and_child),
        cmocka_unit_test(losses_are_counted),
        cmocka_unit_test(the_header_tells_about_the_machine),
        cmocka_unit_test(what_is_no_recording_is_not_opened),
        cmocka_unit_test(other_byte_orders_and_versions_are_not_opened),
        cmocka_unit_test(a_header_that_is_cut_off_is_not_opened),
        cmocka_unit_test(short_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
