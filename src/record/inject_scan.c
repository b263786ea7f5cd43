/* perf sees programs map memory. Two kinds of such records matter here: the marker, a page of the
 * jitdump itself that a program maps for the sole purpose of being seen; and anonymous memory that
 * is executable, where generated code stands. For the latter the kernel writes a record when memory
 * is mapped as executable and when it becomes so by mprotect. */
#include "record/inject_scan.h"

#include "base/hashtable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pass {
    struct inject_scan *scan;
    const struct perfdata_splice *splice;
    struct hashtable execs; /* by process: when it last called exec */
};

/* "…/jit-4711.dump", and nothing behind it. */
static bool parse_marker(const struct perfdata_mmap *mmap, uint32_t *ret_pid)
{
    const char *slash = strrchr(mmap->path, '/');
    const char *name = slash ? slash + 1 : mmap->path;
    if (strncmp(name, "jit-", 4) != 0 || name[4] < '0' || name[4] > '9')
        return false;
    char *end;
    unsigned long pid = strtoul(name + 4, &end, 10);
    *ret_pid = (uint32_t)pid;
    return pid <= INT32_MAX && strcmp(end, ".dump") == 0;
}

static bool is_anonymous(const struct perfdata_mmap *mmap)
{
    static const char *const starts[] = {"//anon", "[anon:", "/memfd:", "/dev/zero",
                                         "/anon_hugepage"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        if (strncmp(mmap->path, starts[i], strlen(starts[i])) == 0)
            return true;
    }
    return false;
}

static int add_marker(struct pass *pass, const struct perfdata_record *record, uint32_t named_pid)
{
    struct inject_scan *scan = pass->scan;
    struct inject_marker marker = {
        .pid = record->mmap.pid, .named_pid = named_pid, .time_ns = record->time_ns};
    if (!hashtable_get(&pass->execs, hash_u64((uint32_t)marker.pid), &marker.exec_time_ns))
        marker.exec_time_ns = 0;
    for (size_t i = scan->markers.count; i-- > 0;) {
        struct inject_marker *known = &scan->markers.items[i];
        if (known->pid == marker.pid && strcmp(known->path, record->mmap.path) == 0) {
            marker.path = known->path;
            *known = marker;
            return 0;
        }
    }
    marker.path = arena_copy(&scan->arena, record->mmap.path, record->mmap.path_length);
    return marker.path ? vector_push(&scan->markers, marker) : -ENOMEM;
}

static int add_mmap(struct pass *pass, const struct perfdata_record *record)
{
    const struct perfdata_mmap *mmap = &record->mmap;
    uint32_t named_pid;
    if (mmap->pid < 0)
        return 0;
    int error =
        vector_push(&pass->scan->used,
                    ((struct inject_range){mmap->start_avma, mmap->start_avma + mmap->length}));
    if (error || mmap->is_data)
        return error;
    if (parse_marker(mmap, &named_pid))
        return add_marker(pass, record, named_pid);
    if (!is_anonymous(mmap))
        return 0;
    struct inject_anon anon = {.pid = mmap->pid,
                               .start_avma = mmap->start_avma,
                               .end_avma = mmap->start_avma + mmap->length,
                               .time_ns = record->time_ns,
                               .round = perfdata_splice_round(pass->splice, record->offset)};
    return vector_push(&pass->scan->anons, anon);
}

static int add_record(struct pass *pass, const struct perfdata_record *record)
{
    uint64_t *newest =
        &pass->scan->newest_ns.items[perfdata_splice_round(pass->splice, record->offset)];
    if (record->time_ns > *newest)
        *newest = record->time_ns;
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return add_mmap(pass, record);
    case PERF_RECORD_COMM:
        if (!record->comm.is_exec)
            return 0;
        return hashtable_set(&pass->execs, hash_u64((uint32_t)record->comm.pid),
                             record->time_ns & INT64_MAX);
    default:
        return 0;
    }
}

static int read_records(struct pass *pass, struct perfdata_reader *reader)
{
    struct perfdata_record record;
    int result;
    while ((result = perfdata_next(reader, &record)) == 1) {
        int error = add_record(pass, &record);
        if (error < 0)
            return error;
    }
    return result;
}

static int by_start(const void *left, const void *right)
{
    const struct inject_range *a = left, *b = right;
    return (a->start_avma > b->start_avma) - (a->start_avma < b->start_avma);
}

static void join_used(struct inject_scan *scan)
{
    struct inject_range *ranges = scan->used.items;
    size_t kept = 0;
    if (scan->used.count)
        qsort(ranges, scan->used.count, sizeof *ranges, by_start);
    for (size_t i = 0; i < scan->used.count; i++) {
        if (kept && ranges[i].start_avma <= ranges[kept - 1].end_avma) {
            if (ranges[i].end_avma > ranges[kept - 1].end_avma)
                ranges[kept - 1].end_avma = ranges[i].end_avma;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    scan->used.count = kept;
}

int inject_scan_init(struct inject_scan *scan, struct perfdata_reader *reader,
                     const struct perfdata_splice *splice)
{
    *scan = (struct inject_scan){0};
    struct pass pass = {.scan = scan, .splice = splice};
    size_t rounds = splice->rounds.count + 1;
    int error = vector_reserve(&scan->newest_ns, rounds);
    if (!error) {
        memset(scan->newest_ns.items, 0, rounds * sizeof *scan->newest_ns.items);
        scan->newest_ns.count = rounds;
        error = read_records(&pass, reader);
    }
    hashtable_done(&pass.execs);
    for (size_t i = 1; i < scan->newest_ns.count; i++) {
        if (scan->newest_ns.items[i] < scan->newest_ns.items[i - 1])
            scan->newest_ns.items[i] = scan->newest_ns.items[i - 1];
    }
    join_used(scan);
    if (error < 0)
        inject_scan_done(scan);
    return error;
}

void inject_scan_done(struct inject_scan *scan)
{
    arena_done(&scan->arena);
    vector_done(&scan->markers);
    vector_done(&scan->anons);
    vector_done(&scan->used);
    vector_done(&scan->newest_ns);
}

size_t inject_scan_round(const struct inject_scan *scan, uint64_t time_ns)
{
    size_t low = 0, high = scan->newest_ns.count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (scan->newest_ns.items[middle] < time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t inject_scan_room(const struct inject_scan *scan, uint64_t after_avma, uint64_t bytes)
{
    enum { PAGE = 0x1000 };
    uint64_t start = after_avma + PAGE;
    for (size_t i = 0; i < scan->used.count; i++) {
        const struct inject_range *range = &scan->used.items[i];
        if (range->end_avma < start)
            continue;
        if (range->start_avma > start && range->start_avma - start >= bytes + PAGE)
            break;
        start = ((range->end_avma + PAGE - 1) & ~(uint64_t)(PAGE - 1)) + PAGE;
    }
    return start >= after_avma && start + bytes + PAGE > start ? start : 0;
}
