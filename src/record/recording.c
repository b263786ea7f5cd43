/* Readers sort records by time, round by round: behind the end of a round nothing may come that is
 * older than the newest record of the round before. Samples come out of the rings within some
 * milliseconds; only a thread that is stopped in the middle of its signal handler is later. So a
 * round is a second long, and what is later still is moved to the earliest time possible.
 *
 * A recorder that is killed leaves what was written up to the last tick, and the object file of
 * some moments before. */
#include "record/recording.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "formats/perfdata_images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define KERNEL_NAME "[kernel.kallsyms]"

/* Only deep stacks are longer. */
enum { PACKED_FROM_BYTES = 350 };

static const uint64_t ROUND_NS = 1000000000;
static const uint64_t FIRST_SAVE_NS = 1000000000, LAST_SAVE_NS = 60000000000;

/* --- the basis ------------------------------------------------------------------------------ */

static void put(struct recording *recording, struct perfdata_record *record)
{
    if (record->time_ns < recording->floor_ns)
        record->time_ns = recording->floor_ns;
    if (record->time_ns > recording->newest_ns)
        recording->newest_ns = record->time_ns;
    int error = perfdata_writer_record(recording->writer, record);
    if (error < 0 && error != -EMSGSIZE && !recording->error)
        recording->error = error;
}

static struct perfdata_record record_of(uint32_t type, struct recording_task task)
{
    return (struct perfdata_record){
        .type = type, .time_ns = task.time_ns, .pid = task.pid, .tid = task.tid};
}

static void put_kernel_mmap(struct recording *recording, uint64_t start_avma, uint64_t end_avma,
                            uint64_t fileoff, const char *path)
{
    struct perfdata_record record =
        record_of(PERF_RECORD_MMAP, (struct recording_task){.pid = -1, .time_ns = 0});
    record.misc = PERF_RECORD_MISC_KERNEL;
    record.mmap = (struct perfdata_mmap){.pid = -1,
                                         .start_avma = start_avma,
                                         .length = end_avma - start_avma,
                                         .fileoff = fileoff,
                                         .path = path,
                                         .path_length = strlen(path)};
    put(recording, &record);
}

/* --- open ------------------------------------------------------------------------------------- */

static int open_writer(struct recording *recording)
{
    const struct recording_settings *settings = &recording->settings;
    bool has_kernel = recording->has_kernel;
    struct perfdata_event event = {
        .name = settings->is_wall ? "wall-clock:u"
                : has_kernel      ? "cpu-clock"
                                  : "cpu-clock:u",
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_freq = settings->frequency_hz,
                 .freq = 1,
                 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD,
                 .inherit = 1,
                 .exclude_kernel = !has_kernel,
                 .exclude_hv = 1,
                 .mmap = 1,
                 .mmap2 = 1,
                 .comm = 1,
                 .comm_exec = 1,
                 .task = 1,
                 .sample_id_all = 1,
                 .use_clockid = 1,
                 .clockid = CLOCK_MONOTONIC}};
    int error = perfdata_writer_open(recording->file.fd, &event, 1, &recording->writer);
    if (error == 0)
        perfdata_writer_pack(recording->writer, PACKED_FROM_BYTES);
    return error;
}

/* Where the kernel's code is: the name of the first part tells which symbol starts there, by which
 * readers notice that the kernel has moved. */
static void put_kernel(struct recording *recording)
{
    const struct kernel_code *code = &recording->kernel;
    if (!code->start_avma)
        return;
    put_kernel_mmap(recording, code->start_avma, code->end_avma, code->start_avma,
                    KERNEL_NAME "_text");
    for (size_t i = 0; i < code->modules.count; i++) {
        const struct kernel_module *module = &code->modules.items[i];
        put_kernel_mmap(recording, module->start_avma, module->end_avma, 0, module->name);
    }
}

/* The file comes last: who interrupts us before that finds the old one in its place. */
int recording_open(struct recording *recording, const struct recording_settings *settings)
{
    *recording = (struct recording){.settings = *settings, .save_interval_ns = FIRST_SAVE_NS};
    recording->has_kernel = !settings->is_wall && kernel_code_is_allowed();
    int error = python_functions_init(&recording->functions, settings->cache, settings->path);
    if (error < 0)
        return error;
    if (recording->has_kernel)
        error = kernel_code_init(&recording->kernel);
    if (error == 0)
        error = recording_file_open(&recording->file, settings->path);
    if (error == 0) {
        error = open_writer(recording);
        if (error < 0)
            recording_file_remove(&recording->file);
    }
    if (error < 0) {
        kernel_code_done(&recording->kernel);
        python_functions_done(&recording->functions);
        return error;
    }
    put_kernel(recording);
    return 0;
}

/* --- records ---------------------------------------------------------------------------------- */

void recording_fork(struct recording *recording, struct recording_task task, int32_t parent_pid)
{
    struct perfdata_record record = record_of(PERF_RECORD_FORK, task);
    record.task = (struct perfdata_task){
        .pid = task.pid, .tid = task.tid, .parent_pid = parent_pid, .parent_tid = parent_pid};
    put(recording, &record);
}

void recording_exit(struct recording *recording, struct recording_task task)
{
    struct perfdata_record record = record_of(PERF_RECORD_EXIT, task);
    record.task = (struct perfdata_task){
        .pid = task.pid, .tid = task.tid, .parent_pid = task.pid, .parent_tid = task.pid};
    put(recording, &record);
}

void recording_comm(struct recording *recording, struct recording_task task, const char *name,
                    bool is_exec)
{
    struct perfdata_record record = record_of(PERF_RECORD_COMM, task);
    record.comm = (struct perfdata_comm){.pid = task.pid,
                                         .tid = task.tid,
                                         .is_exec = is_exec,
                                         .name = name,
                                         .name_length = strlen(name)};
    put(recording, &record);
}

void recording_mmap(struct recording *recording, struct recording_task task,
                    const struct maps_mapping *mapping, const uint8_t *build_id, size_t length)
{
    struct perfdata_record record = record_of(PERF_RECORD_MMAP2, task);
    record.misc = PERF_RECORD_MISC_USER;
    record.mmap = (struct perfdata_mmap){
        .pid = task.pid,
        .tid = task.tid,
        .start_avma = mapping->start_avma,
        .length = mapping->end_avma - mapping->start_avma,
        .fileoff = mapping->fileoff,
        .device_major = mapping->device_major,
        .device_minor = mapping->device_minor,
        .inode = mapping->inode,
        .protection = PROT_READ | PROT_EXEC | (mapping->is_writable ? (uint32_t)PROT_WRITE : 0),
        .flags = MAP_PRIVATE,
        .path = mapping->path,
        .path_length = strlen(mapping->path)};
    if (length && length <= sizeof record.mmap.build_id) {
        record.mmap.build_id_size = (uint8_t)length;
        memcpy(record.mmap.build_id, build_id, length);
    }
    put(recording, &record);
}

void recording_mmap_python(struct recording *recording, struct recording_task task)
{
    struct maps_mapping mapping = {.start_avma = PYTHON_IMAGE_BASE_AVMA,
                                   .end_avma = PYTHON_IMAGE_BASE_AVMA + PYTHON_IMAGE_SPAN_BYTES};
    snprintf(mapping.path, sizeof mapping.path, "%s", recording->functions.path);
    recording_mmap(recording, task, &mapping, recording->functions.build_id,
                   sizeof recording->functions.build_id);
}

/* Puts the kernel's part in front of a chain. Where the chain begins now. */
static uint64_t *put_before(uint64_t *chain, const struct recording_sample *sample)
{
    const volatile uint64_t *kernel = sample->kernel;
    size_t count = sample->kernel_count;
    if (!count)
        return chain;
    if (count > RECORDING_KERNEL_MOST)
        count = RECORDING_KERNEL_MOST;
    chain -= count;
    for (size_t i = 0; i < count; i++)
        chain[i] = kernel[i];
    *--chain = (uint64_t)PERF_CONTEXT_KERNEL;
    return chain;
}

void recording_sample(struct recording *recording, struct recording_task task,
                      const struct recording_sample *sample)
{
    struct perfdata_record record = record_of(PERF_RECORD_SAMPLE, task);
    record.misc = sample->kernel_count ? PERF_RECORD_MISC_KERNEL : PERF_RECORD_MISC_USER;
    record.misc |= sample->is_waiting ? PERFDATA_MISC_WAITING : 0;
    record.misc |= perfdata_stack_end_misc(sample->end);
    uint64_t *chain = sample->user - 1, *end = sample->user + sample->user_count;
    *chain = (uint64_t)PERF_CONTEXT_USER;
    chain = put_before(chain, sample);
    size_t length = (size_t)(end - chain);
    record.sample = (struct perfdata_sample){.ip_avma = length > 1 ? chain[1] : 0,
                                             .period = sample->weight_ns,
                                             .callchain = chain,
                                             .callchain_length = length};
    put(recording, &record);
}

void recording_lost(struct recording *recording, struct recording_task task, uint64_t count)
{
    struct perfdata_record record = record_of(PERF_RECORD_LOST_SAMPLES, task);
    record.lost = (struct perfdata_lost){.count = count};
    put(recording, &record);
}

static void read_clock(struct perfdata_info *info)
{
    info->has_clock = true;
    info->clock_id = CLOCK_MONOTONIC;
    info->clock_wall_ns = clock_ns(CLOCK_REALTIME);
    info->clock_ns = clock_ns(CLOCK_MONOTONIC);
}

/* "pitviper 0.1.0, by perf events": the place where perf has its version. */
static void write_version(struct recording *recording)
{
    static const char *const words[] = {
        [SAMPLE_TRIGGER_PERF_KERNEL] = "perf events with the kernel's functions",
        [SAMPLE_TRIGGER_PERF] = "perf events",
        [SAMPLE_TRIGGER_PERF_USER] = "perf events outside the kernel",
        [SAMPLE_TRIGGER_CPU_TIMER] = "CPU-time timers",
        [SAMPLE_TRIGGER_WALL_TIMER] = "timers"};
    char *text = recording->version;
    size_t room = sizeof recording->version, length = 0;
    length += (size_t)snprintf(text, room, "pitviper " PITVIPER_VERSION);
    const char *before = ", by ";
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!words[i] || !(recording->triggers & 1u << i) || length >= room)
            continue;
        length += (size_t)snprintf(text + length, room - length, "%s%s", before, words[i]);
        before = ", ";
    }
}

/* What the header says of the machine; it borrows the texts of `system` and what `kernel` is. */
static void describe(struct recording *recording, struct utsname *system,
                     struct perfdata_build_id *kernel, struct perfdata_info *ret_info)
{
    uname(system);
    write_version(recording);
    *ret_info =
        (struct perfdata_info){.hostname = system->nodename,
                               .os_release = system->release,
                               .arch = system->machine,
                               .perf_version = recording->version,
                               .cpus_available = (uint32_t)sysconf(_SC_NPROCESSORS_CONF),
                               .cpus_online = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN),
                               .arguments = (const char *const *)recording->settings.arguments,
                               .argument_count = recording->settings.argument_count};
    read_clock(ret_info);
    if (!recording->kernel.build_id_size)
        return;
    *kernel = (struct perfdata_build_id){.pid = -1,
                                         .misc = PERF_RECORD_MISC_KERNEL,
                                         .id_length = recording->kernel.build_id_size,
                                         .path = KERNEL_NAME};
    memcpy(kernel->id, recording->kernel.build_id, kernel->id_length);
    ret_info->build_ids = kernel;
    ret_info->build_id_count = 1;
}

void recording_tick(struct recording *recording, uint64_t now_ns)
{
    if (now_ns - recording->round_ns < ROUND_NS)
        return;
    recording->round_ns = now_ns;
    int error = perfdata_writer_round(recording->writer);
    struct perfdata_info info;
    struct perfdata_build_id kernel;
    struct utsname system;
    describe(recording, &system, &kernel, &info);
    if (error == 0)
        error = perfdata_writer_checkpoint(recording->writer, &info);
    if (error < 0 && !recording->error)
        recording->error = error;
    recording->floor_ns = recording->round_newest_ns;
    recording->round_newest_ns = recording->newest_ns;
    if (now_ns - recording->save_ns < recording->save_interval_ns ||
        !python_functions_are_new(&recording->functions))
        return;
    recording->save_ns = now_ns;
    if (recording->save_interval_ns < LAST_SAVE_NS)
        recording->save_interval_ns *= 2;
    python_functions_save(&recording->functions); /* if it fails, the last one will tell */
}

/* --- finish ----------------------------------------------------------------------------------- */

/* The Python functions, as the recording carries them along. */
static int pack_functions(const struct recording *recording, struct perfdata_images_maker *maker)
{
    const struct python_functions *functions = &recording->functions;
    struct python_image_bytes bytes = {0};
    if (functions->items.count <= 1) /* there was no Python */
        return 0;
    int error = python_image_finish(&functions->image, functions->build_id, &bytes);
    if (error == 0)
        error = perfdata_images_add(maker, functions->path, functions->build_id,
                                    sizeof functions->build_id, bytes.data, bytes.length);
    free(bytes.data);
    return error;
}

static int write_end(struct recording *recording)
{
    struct utsname system;
    struct perfdata_build_id kernel;
    struct perfdata_info info;
    describe(recording, &system, &kernel, &info);
    struct perfdata_images_maker maker = {0};
    int packing = pack_functions(recording, &maker);
    info.private_data = maker.bytes.items;
    info.private_length = maker.bytes.count;
    int error = perfdata_writer_finish(recording->writer, &info);
    perfdata_images_maker_done(&maker);
    return error ? error : packing;
}

int recording_finish(struct recording *recording, uint64_t *ret_bytes, int *ret_image_error)
{
    int error = recording->error, written = write_end(recording);
    *ret_image_error = 0;
    if (recording->functions.items.count > 1) /* else there was no Python */
        *ret_image_error = python_functions_save(&recording->functions);
    struct stat status;
    *ret_bytes = fstat(recording->file.fd, &status) == 0 ? (uint64_t)status.st_size : 0;
    int closed = recording_file_close(&recording->file);
    perfdata_writer_close(recording->writer);
    python_functions_done(&recording->functions);
    kernel_code_done(&recording->kernel);
    return error ? error : written ? written : closed;
}
