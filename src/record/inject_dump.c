/* Finding a dump. Its path is that of the program's own file system and its number that of the
 * program's own PID namespace; a program that still runs shows its files under /proc/PID/root, and
 * in a container another file may have the path here. Process numbers come again, and with them the
 * names of dumps in /tmp: a dump that has nothing from the time of the recording is somebody
 * else's.
 *
 * Matching clocks. Time stamps of a dump are CLOCK_MONOTONIC. With `perf record -k 1` (or -k mono)
 * so are the recording's. Otherwise the marker helps: a program writes the header of the dump with
 * the current time in it and maps the file right before or after, and perf notes when. The two
 * moments are some 0.1 ms apart, and clocks drift apart by 0.05 ms a second at most; both only
 * matter where memory is used again. Without a time in either there is no match: the program ran
 * before perf was started, the dump counts processor cycles, or the header's time is of another
 * clock than its records' (CPython's own). */
#include "record/inject_dump.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* A header is written within this time after its marker, even on a machine that is busy. */
static const uint64_t MOST_LATE_NS = 2000000000;

static int read_dump(struct inject_dump *dump, const char *path, const char **ret_problem)
{
    *ret_problem = "can't be read";
    int error = file_read_regular(path, &dump->file);
    if (error < 0)
        return error;
    error = jitdump_index_init(&dump->index, path, dump->file.data, dump->file.length, ret_problem);
    if (!error && dump->index.header.pid != dump->marker->named_pid) {
        *ret_problem = "was written by another process than its name says";
        error = -EBADMSG;
        jitdump_index_done(&dump->index);
    }
    if (error < 0)
        file_done(&dump->file);
    return error;
}

/* What is wrong with the file of the process matters only when there is none here. */
static int find_dump(struct inject_dump *dump, const char **ret_problem)
{
    const struct inject_marker *marker = dump->marker;
    const char *problem;
    char path[4096];
    int inside = -ENOENT;
    int length = snprintf(path, sizeof path, "/proc/%d/root%s", (int)marker->pid, marker->path);
    if (length > 0 && (size_t)length < sizeof path)
        inside = read_dump(dump, path, &problem);
    if (inside == 0 || inside == -ENOMEM)
        return inside;
    int error = read_dump(dump, marker->path, ret_problem);
    if (error == -ENOENT && (inside == -EBADMSG || inside == -ENODATA || inside == -ENOTSUP)) {
        *ret_problem = problem;
        return inside;
    }
    return error;
}

static bool is_monotonic(const struct perfdata_info *info)
{
    return info->event_count && info->events[0].attr.use_clockid &&
           info->events[0].attr.clockid == CLOCK_MONOTONIC;
}

static void match_clocks(struct inject_dump *dump, const struct perfdata_info *info)
{
    const struct jitdump_index *index = &dump->index;
    uint64_t header_ns = index->header.timestamp;
    if (index->header.flags & JITDUMP_ARCH_TIMESTAMP)
        return;
    if (is_monotonic(info)) {
        dump->has_clock = true;
        return;
    }
    if (!dump->marker->time_ns || !header_ns ||
        (index->record_count && index->first_timestamp + MOST_LATE_NS < header_ns))
        return;
    dump->has_clock = true;
    dump->shift_ns = dump->marker->time_ns - header_ns;
}

/* Of the recording, as far as it tells. */
static uint32_t recorded_machine(const struct perfdata_info *info)
{
    if (info->arch && strcmp(info->arch, "x86_64") == 0)
        return EM_X86_64;
    return info->arch && strcmp(info->arch, "aarch64") == 0 ? EM_AARCH64 : EM_NONE;
}

/* CPython 3.13.0 leaves the machine out. */
static uint32_t find_machine(const struct inject_dump *dump, const struct perfdata_info *info)
{
    if (dump->index.header.elf_machine != EM_NONE)
        return dump->index.header.elf_machine;
    return recorded_machine(info) != EM_NONE ? recorded_machine(info) : EM_X86_64;
}

/* Process numbers come again: with one clock for both, the dump and the recording must overlap. */
static bool is_of_another_time(const struct inject_dump *dump, const struct inject_scan *scan)
{
    const struct jitdump_index *index = &dump->index;
    uint64_t newest_ns = scan->newest_ns.items[scan->newest_ns.count - 1];
    return index->record_count && newest_ns &&
           (index->first_timestamp > newest_ns + MOST_LATE_NS ||
            index->last_timestamp + MOST_LATE_NS < dump->marker->time_ns);
}

static int check(const struct inject_dump *dump, const struct inject_scan *scan,
                 const struct perfdata_info *info, const char **ret_problem)
{
    *ret_problem = "is from a machine of the other byte order, which is not supported";
    if (dump->index.swapped)
        return -ENOTSUP;
    *ret_problem = "is from another kind of machine than the recording";
    if (recorded_machine(info) != EM_NONE && dump->elf_machine != recorded_machine(info))
        return -ENOTSUP;
    *ret_problem = "is of another time: a process of the same number has written over it";
    if (is_monotonic(info) && dump->has_clock && is_of_another_time(dump, scan))
        return -EBADMSG;
    return 0;
}

int inject_dump_open(struct inject_dump *dump, const struct inject_marker *marker,
                     const struct inject_scan *scan, const struct perfdata_info *info,
                     bool per_function, const char **ret_problem)
{
    *dump = (struct inject_dump){.marker = marker};
    int error = find_dump(dump, ret_problem);
    if (error < 0)
        return error;
    match_clocks(dump, info);
    dump->elf_machine = find_machine(dump, info);
    error = check(dump, scan, info, ret_problem);
    if (!error) {
        *ret_problem = "memory is short";
        error = jitdump_images_init(&dump->images, &dump->index, per_function);
    }
    if (error < 0) {
        jitdump_index_done(&dump->index);
        file_done(&dump->file);
    }
    return error;
}

void inject_dump_close(struct inject_dump *dump)
{
    jitdump_images_done(&dump->images);
    jitdump_index_done(&dump->index);
    file_done(&dump->file);
}
