/* Where the names of a profile come from: object files, perf maps, jitdumps, the kernel. */
#include "base/cleanup.h"
#include "base/file.h"
#include "elf/elf_file.h"
#include "formats/jitdump.h"
#include "profile_sample.h"

#include <inttypes.h>
#include <sys/stat.h>

static struct recording recording;

static const struct profile_function *innermost(const struct profile *profile, size_t sample)
{
    return profile_function_of(profile, profile->samples.items[sample].stack);
}

static void python_functions_are_taken_apart(void **state)
{
    (void)state;
    static const char map[] = "1000 100 py::C.method:/dir/file.py\n";
    recording_begin(&recording);
    recording_file(&recording, "perf-999999999.map", map, sizeof map - 1);
    recording_map(&recording, 1, PID, (struct mapped){0x1000, 0x1000, "//anon", 0});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){USER, 0x1010});
    struct profile *profile = recording_load(&recording);
    const struct profile_function *function = innermost(profile, 0);
    const struct profile_module *module = &profile->modules.items[function->module];
    assert_int_equal(function->kind, PROFILE_FUNCTION_PYTHON);
    assert_string_equal(profile_text(profile, function->name), "py::C.method:/dir/file.py");
    assert_string_equal(profile_text(profile, function->python_name), "C.method");
    assert_string_equal(profile_text(profile, function->file), "/dir/file.py");
    assert_int_equal(function->start, 0x1000);
    assert_string_equal(profile_text(profile, module->path), "/tmp/perf-999999999.map");
    assert_string_equal(profile_text(profile, module->name), "[JIT] tid 999999999");
    assert_int_equal(module->kind, PROFILE_MODULE_PYTHON);
    assert_true(profile->processes.items[0].has_perf_map);
    profile_free(profile);
}

/* Maps this test program into the recorded process, where it is mapped in this one. */
static void map_this_program(void)
{
    static char path[1024];
    char line[1024];
    FILE *maps = fopen("/proc/self/maps", "r");
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    assert_true(maps && length > 0);
    while (fgets(line, sizeof line, maps)) {
        uint64_t start, end, fileoff;
        char permissions[8];
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &start, &end, permissions,
                   &fileoff) == 4 &&
            permissions[2] == 'x' && strstr(line, path))
            recording_map(&recording, 1, PID, (struct mapped){start, end - start, path, fileoff});
    }
    fclose(maps);
}

static void functions_of_object_files_have_their_symbols(void **state)
{
    (void)state;
    recording_begin(&recording);
    map_this_program();
    uint64_t here = (uint64_t)(uintptr_t)functions_of_object_files_have_their_symbols;
    recording_sample(&recording, 10, PID, 3, (uint64_t[]){USER, here + 1, here});
    struct profile *profile = recording_load(&recording);
    const struct profile_function *function = innermost(profile, 0);
    assert_string_equal(profile_text(profile, function->name),
                        "functions_of_object_files_have_their_symbols");
    assert_int_equal(function->kind, PROFILE_FUNCTION_NATIVE);
    assert_true(profile->modules.items[function->module].has_symbols);
    assert_int_equal(profile->functions.count, 1);
    assert_int_equal(profile->frames.count, 2);
    profile_free(profile);
}

static void addresses_in_unknown_files_keep_module_and_offset(void **state)
{
    (void)state;
    recording_begin(&recording);
    recording_map(&recording, 1, PID, (struct mapped){0x5000, 0x1000, "/gone/libx.so", 0x2000});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){USER, 0x5123});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "libx.so+0x2123");
    assert_int_equal(innermost(profile, 0)->kind, PROFILE_FUNCTION_UNRESOLVED);
    assert_int_equal(profile->losses.unresolved_frames, 1);
    profile_free(profile);
}

static void kernel_functions_come_from_kallsyms(void **state)
{
    (void)state;
    static const char symbols[] = "ffffffff81000000 T _text\nffffffff81000100 T do_work\n";
    char path[128];
    recording_begin(&recording);
    recording_file(&recording, "kallsyms", symbols, sizeof symbols - 1);
    snprintf(path, sizeof path, "%s/kallsyms", recording.folder);
    recording.options.kallsyms = path;
    /* Started again since: everything is 0x1000 higher. */
    recording_map(&recording, 0, -1,
                  (struct mapped){0xffffffff81001000, 0x100000, "[kernel.kallsyms]_text",
                                  0xffffffff81001000});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){KERNEL, 0xffffffff81001110});
    struct profile *profile = recording_load(&recording);
    const struct profile_function *function = innermost(profile, 0);
    assert_string_equal(stack_of(profile, 0), "do_work");
    assert_int_equal(function->kind, PROFILE_FUNCTION_KERNEL);
    assert_int_equal(function->start, 0xffffffff81001100);
    assert_int_equal(profile->samples.items[0].cpumode, 'k');
    assert_int_equal(profile->samples.items[0].end, PROFILE_STACK_COMPLETE);
    assert_string_equal(profile_text(profile, profile->modules.items[function->module].name),
                        "[kernel.kallsyms]");
    profile_free(profile);
}

static void kernel_functions_may_be_hidden(void **state)
{
    (void)state;
    char path[128];
    recording_begin(&recording);
    recording_file(&recording, "kallsyms", "0 T _text\n", 10);
    snprintf(path, sizeof path, "%s/kallsyms", recording.folder);
    recording.options.kallsyms = path;
    recording_map(&recording, 0, -1,
                  (struct mapped){0xffffffff81000000, 0x100000, "[kernel.kallsyms]_text",
                                  0xffffffff81000000});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){KERNEL, 0xffffffff81000110});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "[kernel.kallsyms]+0xffffffff81000110");
    assert_int_equal(profile->losses.kernel_hidden, 1);
    profile_free(profile);
}

/* Gives the kernel of the recording a build-id, and perf's cache a list of its symbols. */
static void map_kernel_of_build_id(const uint8_t id[20])
{
    static const char symbols[] = "ffffffff81000000 T _text\nffffffff81000100 T not_in_proc\n"
                                  "ffffffffc0000100 t init_of_it\t[a_module]\n";
    char path[160];
    struct perfdata_mmap mmap = {.pid = -1,
                                 .tid = -1,
                                 .start_avma = 0xffffffff81001000,
                                 .length = 0x100000,
                                 .fileoff = 0xffffffff81001000,
                                 .has_protection = true,
                                 .path = "[kernel.kallsyms]_text",
                                 .path_length = 22,
                                 .build_id_size = 20};
    memcpy(mmap.build_id, id, 20);
    recording_add(&recording, (struct perfdata_record){.type = PERF_RECORD_MMAP2,
                                                       .misc = PERF_RECORD_MISC_KERNEL,
                                                       .pid = -1,
                                                       .tid = -1,
                                                       .mmap = mmap});
    snprintf(path, sizeof path, "%s/[kernel.kallsyms]", recording.folder);
    assert_int_equal(mkdir(path, 0700), 0);
    char *end = path + strlen(path);
    *end++ = '/';
    for (size_t i = 0; i < 20; i++)
        end += sprintf(end, "%02x", id[i]);
    assert_int_equal(mkdir(path, 0700), 0);
    strcpy(end, "/kallsyms");
    recording_file(&recording, path + strlen(recording.folder) + 1, symbols, sizeof symbols - 1);
}

static void a_kernel_of_elsewhere_has_its_names_from_perfs_copy(void **state)
{
    (void)state;
    recording_begin(&recording);
    map_kernel_of_build_id((const uint8_t[20]){0xab, 0xcd});
    recording_map(&recording, 0, -1, (struct mapped){0xffffffffc0001000, 0x1000, "[a_module]", 0});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){KERNEL, 0xffffffff81001110});
    recording_sample(&recording, 11, PID, 2, (uint64_t[]){KERNEL, 0xffffffffc0001110});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "not_in_proc");
    assert_string_equal(stack_of(profile, 1), "init_of_it");
    profile_free(profile);
}

static void perfs_copy_serves_the_running_kernel_but_not_its_modules(void **state)
{
    (void)state;
    CLEANUP(file_done) struct file notes = {0};
    size_t length = 0;
    const uint8_t *id = NULL;
    if (file_read("/sys/kernel/notes", &notes) == 0)
        id = elf_build_id_in_notes(notes.data, notes.length, &length);
    if (!id || length != 20)
        skip(); /* this kernel does not tell its build-id */
    recording_begin(&recording);
    map_kernel_of_build_id(id);
    recording_map(&recording, 0, -1, (struct mapped){0xffffffffc0001000, 0x1000, "[a_module]", 0});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){KERNEL, 0xffffffff81001110});
    recording_sample(&recording, 11, PID, 2, (uint64_t[]){KERNEL, 0xffffffffc0001110});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "not_in_proc");
    assert_string_not_equal(stack_of(profile, 1), "init_of_it");
    profile_free(profile);
}

/* A dump with two functions at the same address, one after the other; the second moves later. */
static void write_dump(const char *name)
{
    uint8_t bytes[1024];
    struct writer writer;
    writer_init(&writer, bytes, sizeof bytes);
    jitdump_encode_header(
        &writer,
        &(struct jitdump_header){.version = 1, .elf_machine = 62, .pid = PID, .timestamp = 50});
    struct jitdump_load load = {.pid = PID,
                                .vma = 0x7000,
                                .code_avma = 0x7000,
                                .code_size = 4,
                                .name = "py::old:/f.py",
                                .name_length = 13,
                                .code = (const uint8_t *)"\x90\x90\x90\xc3"};
    jitdump_encode_load(&writer, 100, &load);
    load.name = "py::new:/f.py";
    load.code_index = 1;
    struct jitdump_line lines[] = {{.avma = 0x7000, .line = 7, .file = "/f.py"},
                                   {.avma = 0x7002, .line = 9, .file = "/f.py"}};
    jitdump_encode_debug_info(&writer, 199, 0x7000, lines, 2);
    jitdump_encode_load(&writer, 200, &load);
    struct jitdump_move move = {.pid = PID,
                                .vma = 0x7100,
                                .old_avma = 0x7000,
                                .new_avma = 0x7100,
                                .code_size = 4,
                                .code_index = 1};
    jitdump_encode_move(&writer, 1000, &move);
    assert_true(writer_fits(&writer));
    recording_file(&recording, name, bytes, writer.length);
}

static const struct profile_frame *frame_of(const struct profile *profile, size_t sample)
{
    uint32_t stack = profile->samples.items[sample].stack;
    return &profile->frames.items[profile->stacks.items[stack].frame];
}

static void jitted_code_is_that_of_its_time(void **state)
{
    (void)state;
    char marker[128];
    recording_begin(&recording);
    write_dump("jit-999999999.dump");
    snprintf(marker, sizeof marker, "%s/jit-999999999.dump", recording.folder);
    recording_map(&recording, 1, PID, (struct mapped){0x7000, 0x1000, "//anon", 0});
    recording_map(&recording, 60, PID, (struct mapped){0x20000, 0x1000, marker, 0});
    recording_sample(&recording, 90, PID, 2, (uint64_t[]){USER, 0x7001});
    recording_sample(&recording, 150, PID, 2, (uint64_t[]){USER, 0x7001});
    recording_sample(&recording, 151, PID, 2, (uint64_t[]){USER, 0x7001});
    recording_sample(&recording, 250, PID, 2, (uint64_t[]){USER, 0x7003});
    struct profile *profile = recording_load(&recording);
    assert_int_equal(innermost(profile, 0)->kind, PROFILE_FUNCTION_UNRESOLVED);
    assert_string_equal(stack_of(profile, 1), "py::old:/f.py");
    assert_string_equal(stack_of(profile, 2), "py::old:/f.py");
    assert_string_equal(stack_of(profile, 3), "py::new:/f.py");
    assert_int_equal(innermost(profile, 3)->line, 7);
    assert_int_equal(frame_of(profile, 3)->line, 9);
    assert_string_equal(profile_text(profile, frame_of(profile, 3)->file), "/f.py");
    assert_true(profile->processes.items[0].has_jitdump);
    profile_free(profile);
}

static void code_that_moves_takes_its_lines_along(void **state)
{
    (void)state;
    char marker[128];
    recording_begin(&recording);
    write_dump("jit-999999999.dump");
    snprintf(marker, sizeof marker, "%s/jit-999999999.dump", recording.folder);
    recording_map(&recording, 1, PID, (struct mapped){0x7000, 0x1000, "//anon", 0});
    recording_map(&recording, 60, PID, (struct mapped){0x20000, 0x1000, marker, 0});
    recording_sample(&recording, 250, PID, 2, (uint64_t[]){USER, 0x7001});
    recording_sample(&recording, 1050, PID, 2, (uint64_t[]){USER, 0x7101});
    recording_sample(&recording, 1051, PID, 2, (uint64_t[]){USER, 0x7102});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 1), "py::new:/f.py");
    assert_ptr_equal(innermost(profile, 0), innermost(profile, 1));
    assert_int_equal(frame_of(profile, 0)->line, 7);
    assert_int_equal(frame_of(profile, 1)->line, 7);
    assert_int_equal(frame_of(profile, 2)->line, 9);
    profile_free(profile);
}

static void a_file_mapped_over_jitted_code_hides_it(void **state)
{
    (void)state;
    char marker[128];
    recording_begin(&recording);
    write_dump("jit-999999999.dump");
    snprintf(marker, sizeof marker, "%s/jit-999999999.dump", recording.folder);
    recording_map(&recording, 60, PID, (struct mapped){0x20000, 0x1000, marker, 0});
    recording_sample(&recording, 250, PID, 2, (uint64_t[]){USER, 0x7003});
    recording_map(&recording, 300, PID, (struct mapped){0x7000, 0x1000, "/gone/lib.so", 0});
    recording_sample(&recording, 350, PID, 2, (uint64_t[]){USER, 0x7003});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "py::new:/f.py");
    assert_string_equal(stack_of(profile, 1), "lib.so+0x3");
    profile_free(profile);
}

static void a_marker_without_its_dump_does_no_harm(void **state)
{
    (void)state;
    recording_begin(&recording);
    recording_file(&recording, "jit-1.dump", "no dump at all", 14);
    char marker[128];
    snprintf(marker, sizeof marker, "%s/jit-1.dump", recording.folder);
    recording_map(&recording, 1, PID, (struct mapped){0x20000, 0x1000, "/gone/jit-5.dump", 0});
    recording_map(&recording, 1, PID, (struct mapped){0x30000, 0x1000, marker, 0});
    recording_sample(&recording, 10, PID, 2, (uint64_t[]){USER, 0x7001});
    struct profile *profile = recording_load(&recording);
    assert_string_equal(stack_of(profile, 0), "[unknown]+0x7001");
    profile_free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_functions_are_taken_apart),
        cmocka_unit_test(functions_of_object_files_have_their_symbols),
        cmocka_unit_test(addresses_in_unknown_files_keep_module_and_offset),
        cmocka_unit_test(kernel_functions_come_from_kallsyms),
        cmocka_unit_test(kernel_functions_may_be_hidden),
        cmocka_unit_test(a_kernel_of_elsewhere_has_its_names_from_perfs_copy),
        cmocka_unit_test(perfs_copy_serves_the_running_kernel_but_not_its_modules),
        cmocka_unit_test(jitted_code_is_that_of_its_time),
        cmocka_unit_test(code_that_moves_takes_its_lines_along),
        cmocka_unit_test(a_file_mapped_over_jitted_code_hides_it),
        cmocka_unit_test(a_marker_without_its_dump_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
