/* A recording of one process that writes a jitdump, both in a folder of the test. */
#ifndef PITVIPER_UNIT_INJECT_SAMPLE_H
#define PITVIPER_UNIT_INJECT_SAMPLE_H

#include "formats/jitdump.h"

#include "perfdata_sample.h"
#include "unit.h"

#include <dirent.h>
#include <elf.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define CODE_AVMA UINT64_C(0x7f0000010000)
enum { CODE_BYTES = 32, ANON_BYTES = 0x10000 };

static char folder[64];
static char dump_path[96], input_path[96], output_path[96];
static uint8_t dump_bytes[1 << 16];
static struct writer dump_writer;

static inline int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/pitviper-inject-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(dump_path, sizeof dump_path, "%s/jit-%d.dump", folder, SAMPLE_PID);
    snprintf(input_path, sizeof input_path, "%s/perf.data", folder);
    snprintf(output_path, sizeof output_path, "%s/out.data", folder);
    return 0;
}

/* Removes the files whose names start so, and says how many there were. */
static inline size_t remove_files(const char *start)
{
    size_t count = 0;
    DIR *list = opendir(folder);
    assert_non_null(list);
    for (struct dirent *entry; (entry = readdir(list));) {
        if (entry->d_name[0] == '.' || strncmp(entry->d_name, start, strlen(start)) != 0)
            continue;
        assert_int_equal(unlinkat(dirfd(list), entry->d_name, 0), 0);
        count++;
    }
    closedir(list);
    return count;
}

static inline int remove_folder(void **state)
{
    (void)state;
    remove_files("");
    return rmdir(folder);
}

static inline void write_file(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* --- the dump
 * -----------------------------------------------------------------------------------*/

static inline void dump_begin_with(struct jitdump_header header)
{
    writer_init(&dump_writer, dump_bytes, sizeof dump_bytes);
    jitdump_encode_header(&dump_writer, &header);
}

static inline void dump_begin(void)
{
    dump_begin_with(
        (struct jitdump_header){.elf_machine = EM_X86_64, .pid = SAMPLE_PID, .timestamp = 1000});
}

static inline void dump_load(uint64_t time_ns, uint64_t avma, uint64_t code_index, const char *name)
{
    static const uint8_t code[CODE_BYTES] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};
    jitdump_encode_load(&dump_writer, time_ns,
                        &(struct jitdump_load){.pid = SAMPLE_PID,
                                               .tid = SAMPLE_PID,
                                               .vma = avma,
                                               .code_avma = avma,
                                               .code_size = CODE_BYTES,
                                               .code_index = code_index,
                                               .name = name,
                                               .name_length = strlen(name),
                                               .code = code});
}

static inline void dump_end(void)
{
    assert_true(writer_fits(&dump_writer));
    write_file(dump_path, dump_bytes, dump_writer.length);
}

/* --- the recording
 * ------------------------------------------------------------------------------*/

static inline struct perfdata_event clocked_event(bool is_monotonic)
{
    struct perfdata_event event = sample_event(0);
    event.attr.use_clockid = is_monotonic;
    event.attr.clockid = is_monotonic ? CLOCK_MONOTONIC : 0;
    return event;
}

static inline void add_mapping(struct sample_file *file, uint64_t time_ns, const char *path,
                               uint64_t start_avma, uint64_t length)
{
    sample_add(file, (struct perfdata_record){.type = PERF_RECORD_MMAP2,
                                              .misc = PERF_RECORD_MISC_USER,
                                              .time_ns = time_ns,
                                              .mmap = {.pid = SAMPLE_PID,
                                                       .tid = SAMPLE_PID,
                                                       .start_avma = start_avma,
                                                       .length = length,
                                                       .protection = PROT_READ | PROT_EXEC,
                                                       .path = path,
                                                       .path_length = strlen(path)}});
}

/* Memory for code and the marker, at 1000 ns, and a sample in the code at 5000 ns. */
static inline void recording_begin(struct sample_file *file, bool is_monotonic)
{
    struct perfdata_event event = clocked_event(is_monotonic);
    sample_begin_with(file, &event, 1);
    add_mapping(file, 1000, "//anon", CODE_AVMA, ANON_BYTES);
    add_mapping(file, 1000, dump_path, 0x7f0000800000, 0x1000);
    perfdata_writer_round(file->writer);
    sample_add_sample(file, 5000);
}

static inline void recording_end(struct sample_file *file)
{
    sample_end(file);
    write_file(input_path, file->bytes, file->length);
    sample_done(file);
}

#endif
