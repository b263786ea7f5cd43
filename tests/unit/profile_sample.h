/* A recording made record by record, and loaded as a profile: what the tests of src/profile share.
 *
 *     recording_begin(&recording);
 *     recording_map(&recording, 10, PID, (struct mapped){0x1000, 0x2000, "//anon"});
 *     recording_sample(&recording, 20, PID, 3, (uint64_t[]){USER, 0x1010, 0x1020});
 *     struct profile *profile = recording_load(&recording);
 *
 * The PID is one that no process has, so that nothing of this machine is in the way. */
#ifndef PITVIPER_UNIT_PROFILE_SAMPLE_H
#define PITVIPER_UNIT_PROFILE_SAMPLE_H

#include "formats/perfdata_writer.h"
#include "profile/profile.h"

#include "unit.h"

#include <stdio.h>

#define USER ((uint64_t)PERF_CONTEXT_USER)
#define KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)

enum { PID = 999999999, CHILD = 999999998 };

struct recording {
    char folder[64]; /* for the recording, perf maps, … */
    char path[128];
    int fd;
    struct perfdata_writer *writer;
    struct profile_options options;
    const char *written_by; /* as perf's version; NULL: unsaid */
    uint16_t misc;          /* of the samples to come, besides where they are */
};

struct mapped {
    uint64_t start;
    uint64_t length;
    const char *path;
    uint64_t fileoff;
};

static inline void recording_begin(struct recording *recording)
{
    struct perfdata_event event = {
        .name = "cpu-clock",
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD,
                 .sample_id_all = 1,
                 .use_clockid = 1,
                 .clockid = 1}};
    snprintf(recording->folder, sizeof recording->folder, "/tmp/pitviper-profile-XXXXXX");
    assert_non_null(mkdtemp(recording->folder));
    snprintf(recording->path, sizeof recording->path, "%s/perf.data", recording->folder);
    FILE *file = fopen(recording->path, "w+");
    assert_non_null(file);
    recording->fd = dup(fileno(file));
    fclose(file);
    assert_int_equal(perfdata_writer_open(recording->fd, &event, 1, &recording->writer), 0);
    recording->options = profile_options_default();
    recording->options.tmp_dir = recording->folder;
    recording->options.buildid_dir = recording->folder;
    recording->written_by = NULL;
    recording->misc = 0;
}

static inline void recording_add(struct recording *recording, struct perfdata_record record)
{
    assert_int_equal(perfdata_writer_record(recording->writer, &record), 0);
}

static inline void recording_map(struct recording *recording, uint64_t time_ns, int32_t pid,
                                 struct mapped mapped)
{
    recording_add(recording,
                  (struct perfdata_record){.type = PERF_RECORD_MMAP2,
                                           .misc = pid == -1 ? PERF_RECORD_MISC_KERNEL
                                                             : PERF_RECORD_MISC_USER,
                                           .time_ns = time_ns,
                                           .pid = pid,
                                           .tid = pid,
                                           .mmap = {.pid = pid,
                                                    .tid = pid,
                                                    .start_avma = mapped.start,
                                                    .length = mapped.length,
                                                    .fileoff = mapped.fileoff,
                                                    .has_protection = true,
                                                    .protection = 5,
                                                    .path = mapped.path,
                                                    .path_length = strlen(mapped.path)}});
}

static inline void recording_comm(struct recording *recording, uint64_t time_ns, int32_t pid,
                                  const char *name, bool is_exec)
{
    recording_add(recording, (struct perfdata_record){.type = PERF_RECORD_COMM,
                                                      .time_ns = time_ns,
                                                      .pid = pid,
                                                      .tid = pid,
                                                      .comm = {.pid = pid,
                                                               .tid = pid,
                                                               .is_exec = is_exec,
                                                               .name = name,
                                                               .name_length = strlen(name)}});
}

static inline void recording_task(struct recording *recording, uint32_t type, uint64_t time_ns,
                                  struct perfdata_task task)
{
    recording_add(
        recording,
        (struct perfdata_record){
            .type = type, .time_ns = time_ns, .pid = task.pid, .tid = task.tid, .task = task});
}

/* A sample with a chain of `count` entries; the first that is no marker is its address. */
static inline void recording_sample(struct recording *recording, uint64_t time_ns, int32_t pid,
                                    size_t count, const uint64_t *chain)
{
    bool is_kernel = count && chain[0] == KERNEL;
    recording_add(recording, (struct perfdata_record){
                                 .type = PERF_RECORD_SAMPLE,
                                 .misc = recording->misc | (is_kernel ? PERF_RECORD_MISC_KERNEL
                                                                      : PERF_RECORD_MISC_USER),
                                 .time_ns = time_ns,
                                 .pid = pid,
                                 .tid = pid,
                                 .sample = {.ip_avma = count > 1 ? chain[1] : 0,
                                            .period = 1000,
                                            .callchain = chain,
                                            .callchain_length = count}});
}

/* Writes a file into the folder of the recording. */
static inline void recording_file(const struct recording *recording, const char *name,
                                  const void *bytes, size_t length)
{
    char path[192];
    snprintf(path, sizeof path, "%s/%s", recording->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    fclose(file);
}

static inline void recording_finish(struct recording *recording)
{
    struct perfdata_info info = {.arch = "x86_64",
                                 .perf_version = recording->written_by,
                                 .cpus_online = 1,
                                 .cpus_available = 1};
    assert_int_equal(perfdata_writer_finish(recording->writer, &info), 0);
    perfdata_writer_close(recording->writer);
    close(recording->fd);
}

static inline void recording_remove(const struct recording *recording)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", recording->folder);
    assert_int_equal(system(command), 0);
}

static inline struct profile *recording_load(struct recording *recording)
{
    recording_finish(recording);
    struct profile *profile;
    const char *problem;
    assert_int_equal(profile_load(recording->path, &recording->options, &problem, &profile), 0);
    recording_remove(recording);
    return profile;
}

/* Puts a name in front of a list: "b;c" becomes "a;b;c". */
static inline void prepend(char *list, size_t room, const char *name)
{
    size_t length = strlen(list), more = strlen(name), shift = more + (length > 0);
    assert_true(length + shift < room);
    memmove(list + shift, list, length + 1);
    memcpy(list, name, more);
    if (length)
        list[more] = ';';
    else
        list[more] = '\0';
}

/* The functions of a sample, outermost first: "a;b;c". Unresolved ones are "module+offset". */
static inline const char *stack_of(const struct profile *profile, size_t sample)
{
    static char text[1024];
    text[0] = '\0';
    for (uint32_t stack = profile->samples.items[sample].stack; stack != PROFILE_ROOT;
         stack = profile->stacks.items[stack].parent) {
        const struct profile_function *function = profile_function_of(profile, stack);
        const char *name = profile_text(profile, function->name);
        char number[256];
        snprintf(number, sizeof number, "%s+%#llx",
                 profile_text(profile, profile->modules.items[function->module].name),
                 (unsigned long long)function->start);
        prepend(text, sizeof text, *name ? name : number);
    }
    return text;
}

#endif
