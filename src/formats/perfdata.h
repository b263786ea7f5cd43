/* Recordings of perf (perf.data): what ran, what was mapped where, and samples of where it was.
 * docs/formats/perfdata.md describes the format.
 *
 *     struct perfdata_reader *reader;
 *     const char *problem;
 *     if (perfdata_open(path, &problem, &reader) < 0) ...
 *     struct perfdata_record record;
 *     while ((result = perfdata_next(reader, &record)) == 1)
 *         if (record.type == PERF_RECORD_SAMPLE) use(&record.sample);
 *     perfdata_close(reader);
 *
 * Order. Records come in the order of their time stamps, so a mapping comes before the samples in
 * it. Equal times keep the order of the file. A record without a time (synthesized by perf for what
 * ran before it started: time 0) comes when it is met, before the others of its round: as with
 * perf. FINISHED_ROUND records are respected: a round is sorted and handed out when the next one is
 * complete. So memory stays at 24 bytes for each record of two rounds (and the decompressed bytes
 * of these rounds where the file is compressed), whatever the size of the file. A file without
 * rounds is one large round.
 *
 * Validity. What records point to is valid until the next call of perfdata_next, perfdata_rewind or
 * perfdata_close; where `record.lasting` is set, until perfdata_close. That is so for all records
 * of files that are neither compressed nor in pipe mode. struct perfdata_info and what it points to
 * is valid until perfdata_close, but see "Pipe mode".
 *
 * Second pass. perfdata_rewind starts again, as often as wanted, for pipes too.
 *
 * Files are mapped, never read whole, and bounded by their size at perfdata_open. If somebody
 * truncates the file while it is mapped, reading it ends in SIGBUS: a program that can't have that
 * copies the file first. (perf itself never does it: it moves an old recording away.) What grows
 * behind the size at perfdata_open is not seen.
 *
 * Pipe mode. `perf record -o -` writes another layout, in which attributes and features are records
 * among the others. It is told by its header, not by the kind of file, and read the same way: from
 * a FIFO or from standard input it first goes to an unlinked temporary file. What stands before the
 * first record of the kernel is in struct perfdata_info after perfdata_open, the rest (build-ids,
 * usually) after perfdata_next has returned 0; pointers in it may change meanwhile.
 *
 * Damage is skipped, noted in perfdata_damage() and never an error of perfdata_next: it goes on
 * with the next record that can be found. A file that ends early is `truncated`, not damaged. One
 * whose header was never finished (perf was killed) is whole as far as its records are; it has no
 * features.
 *
 * Not for use by several threads at once; borrowed bytes may be read by any thread. */
#ifndef PITVIPER_FORMATS_PERFDATA_H
#define PITVIPER_FORMATS_PERFDATA_H

#include "formats/damage.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Records of perf itself, not of the kernel; linux/perf_event.h has the others. */
enum perfdata_type {
    PERFDATA_HEADER_ATTR = 64,
    PERFDATA_EVENT_TYPE = 65,
    PERFDATA_TRACING_DATA = 66,
    PERFDATA_BUILD_ID = 67,
    PERFDATA_FINISHED_ROUND = 68,
    PERFDATA_ID_INDEX = 69,
    PERFDATA_AUXTRACE_INFO = 70,
    PERFDATA_AUXTRACE = 71,
    PERFDATA_AUXTRACE_ERROR = 72,
    PERFDATA_THREAD_MAP = 73,
    PERFDATA_CPU_MAP = 74,
    PERFDATA_STAT_CONFIG = 75,
    PERFDATA_STAT = 76,
    PERFDATA_STAT_ROUND = 77,
    PERFDATA_EVENT_UPDATE = 78,
    PERFDATA_TIME_CONV = 79,
    PERFDATA_HEADER_FEATURE = 80,
    PERFDATA_COMPRESSED = 81,
    PERFDATA_FINISHED_INIT = 82,
    PERFDATA_COMPRESSED2 = 83,
    PERFDATA_TYPES = 128 /* types from here on are counted together */
};

/* An event that was recorded. */
struct perfdata_event {
    struct perf_event_attr attr; /* what the file states; 0 in fields that it lacks */
    const char *name;            /* never NULL: made from the attr where the file has none */
    const uint64_t *ids;         /* by which samples name the event */
    size_t id_count;
};

struct perfdata_build_id {
    int32_t pid;       /* -1 in every file seen */
    uint16_t misc;     /* PERF_RECORD_MISC_KERNEL or _USER */
    uint8_t id_length; /* in bytes, at most 20 */
    uint8_t id[20];
    const char *path;
};

/* The file as a whole. Texts are NULL and numbers 0 where the file does not tell. */
struct perfdata_info {
    const char *source; /* the path given to perfdata_open */
    uint64_t bytes;     /* size of the file */
    bool is_pipe_mode;
    bool is_finished;   /* perf ended in an orderly way; always true in pipe mode */
    bool is_compressed; /* compressed records have been met, or the header promises them */

    const struct perfdata_event *events;
    size_t event_count;
    const struct perfdata_build_id *build_ids;
    size_t build_id_count;

    const char *hostname;
    const char *os_release;
    const char *perf_version;
    const char *arch; /* "x86_64", … */
    const char *cpu_description;
    const char *cpu_id;
    uint32_t cpus_available;
    uint32_t cpus_online;
    uint64_t memory_kilobytes;
    const char *const *arguments; /* of the perf command, its path first */
    size_t argument_count;
    uint64_t first_sample_ns; /* as the header says; 0, 0 when it does not */
    uint64_t last_sample_ns;

    bool has_clock; /* the next three are known (`perf record -k`) */
    uint32_t clock_id;
    uint64_t clock_wall_ns; /* CLOCK_REALTIME and … */
    uint64_t clock_ns;      /* … clock_id at the same moment */

    uint64_t features[4]; /* bit map of all feature sections, known or not */

    const uint8_t *private_data; /* bytes behind the last feature: see perfdata_writer.h */
    size_t private_length;
};

/* Counts over one pass, complete when perfdata_next has returned 0. */
struct perfdata_stats {
    uint64_t records[PERFDATA_TYPES]; /* by type, returned or skipped, those in compressed too */
    uint64_t other_records;           /* of types that are larger numbers */
    uint64_t unordered;               /* returned later than their time, for their round was over */
    uint64_t skipped;                 /* whole records that perfdata_next did not return */
    uint64_t unknown_events;          /* samples of no event that the file describes: skipped */
    uint64_t compressed_bytes;
    uint64_t decompressed_bytes;
};

/* PERF_RECORD_MMAP and MMAP2. */
struct perfdata_mmap {
    int32_t pid; /* -1: the kernel's own */
    int32_t tid;
    uint64_t start_avma;
    uint64_t length; /* start_avma + length does not wrap */
    uint64_t fileoff;
    bool is_data;          /* not executable: PERF_RECORD_MISC_MMAP_DATA, or prot says so */
    bool has_protection;   /* MMAP2 only: `protection` and `flags` are known */
    uint8_t build_id_size; /* > 0: `build_id` is known, and device and inode are not */
    uint8_t build_id[20];
    uint32_t protection; /* PROT_… */
    uint32_t flags;      /* MAP_… */
    uint32_t device_major;
    uint32_t device_minor;
    uint64_t inode;
    uint64_t inode_generation;
    const char *path; /* NUL-terminated; "//anon", "[vdso]", "[kernel.kallsyms]_text", … */
    size_t path_length;
};

struct perfdata_comm {
    int32_t pid;
    int32_t tid;
    bool is_exec; /* the name changed by exec, so the mappings from before are gone */
    const char *name;
    size_t name_length;
};

/* PERF_RECORD_FORK and EXIT: `pid`, `tid` appeared or went. A fork with pid == parent_pid is a
 * thread. */
struct perfdata_task {
    int32_t pid;
    int32_t parent_pid;
    int32_t tid;
    int32_t parent_tid;
};

/* PERF_RECORD_LOST and LOST_SAMPLES. */
struct perfdata_lost {
    uint64_t id;    /* of the event, see perfdata_event.ids; 0 when unknown */
    uint64_t count; /* of records (LOST) or samples (LOST_SAMPLES) */
};

/* PERF_RECORD_THROTTLE and UNTHROTTLE. */
struct perfdata_throttle {
    uint64_t id;
    uint64_t stream_id;
};

/* `type` says what was recorded, in bits PERF_SAMPLE_…; other fields are 0. */
struct perfdata_sample {
    uint64_t type;
    uint64_t ip_avma;
    uint64_t address; /* PERF_SAMPLE_ADDR */
    uint64_t period;
    uint64_t id;

    /* Innermost first, with the markers PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER, … in between: all
     * entries >= PERF_CONTEXT_MAX are markers. May be 0 entries. */
    const uint64_t *callchain;
    size_t callchain_length;

    /* User registers: as many values as there are bits in the mask, in the order of the bits. */
    uint64_t user_regs_abi; /* PERF_SAMPLE_REGS_ABI_…; NONE: there are no registers */
    uint64_t user_regs_mask;
    const uint64_t *user_regs;

    /* The copy of the user stack, from the stack pointer on. */
    const uint8_t *user_stack;
    size_t user_stack_length; /* bytes that are valid: what the kernel could copy */
    size_t user_stack_room;   /* bytes asked for: if equal, the stack may have been longer */
};

struct perfdata_record {
    uint32_t type;    /* PERF_RECORD_…: of the kinds below; others are not returned */
    uint16_t misc;    /* PERF_RECORD_MISC_… */
    bool lasting;     /* borrowed bytes are valid until perfdata_close */
    uint32_t event;   /* index of info.events; 0 where the record does not say */
    uint64_t offset;  /* in the file; of the enclosing record for those in compressed ones */
    uint32_t size;    /* in bytes, with its header */
    uint32_t cpu;     /* UINT32_MAX: unknown */
    uint64_t time_ns; /* 0: none. Of attr.clockid with attr.use_clockid, else perf's own clock */
    int32_t pid; /* who it happened to: of the sample, or of the record's trailer; -1: unknown */
    int32_t tid;
    union {
        struct perfdata_mmap mmap;
        struct perfdata_comm comm;
        struct perfdata_task task;
        struct perfdata_lost lost;
        struct perfdata_throttle throttle;
        struct perfdata_sample sample;
    };
};

/* What the ip of a record is in: PERF_RECORD_MISC_KERNEL, _USER, _HYPERVISOR, _GUEST_… */
static inline uint16_t perfdata_cpumode(const struct perfdata_record *record)
{
    return record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
}

/* In `misc` of a sample of `pitviper record -e wall`: the thread was waiting. The kernel has no use
 * for that bit in samples. */
enum { PERFDATA_MISC_WAITING = 1 << 13 };

/* In two more bits of `misc` of samples of `pitviper record`, which nobody else uses either: how
 * the stack ended, as the recorder knows. */
enum perfdata_stack_end {
    PERFDATA_STACK_UNTOLD, /* by others, and by our own recorders at first */
    PERFDATA_STACK_COMPLETE,
    PERFDATA_STACK_TRUNCATED,
    PERFDATA_STACK_BROKEN,
};
enum { PERFDATA_MISC_END_SHIFT = 11, PERFDATA_MISC_END_MASK = 3 };

static inline uint16_t perfdata_stack_end_misc(enum perfdata_stack_end end)
{
    return (uint16_t)(end << PERFDATA_MISC_END_SHIFT);
}

static inline enum perfdata_stack_end perfdata_stack_end(const struct perfdata_record *record)
{
    return record->misc >> PERFDATA_MISC_END_SHIFT & PERFDATA_MISC_END_MASK;
}

/* Whether an entry of a call chain is a marker, not an address. */
static inline bool perfdata_is_marker(uint64_t entry)
{
    return entry >= (uint64_t)PERF_CONTEXT_MAX;
}

/* Whether `pitviper record` has made the recording: it says so where perf has its version. */
static inline bool perfdata_is_own(const struct perfdata_info *info)
{
    static const char writer[] = "pitviper ";
    return info->perf_version && strncmp(info->perf_version, writer, sizeof writer - 1) == 0;
}

struct perfdata_reader;

/* Opens a recording; "-" is standard input, and it may be a folder of `perf record --threads`. 0,
 * or with a static text in *ret_problem: -EBADMSG   this is no perf.data, or its header is damaged
 *     -ENODATA   the file ends inside its header
 *     -ENOTSUP   a recording that is not supported: of the other byte order, of perf before 2.6.38
 *     -EISDIR    a folder of another kind
 *     -ENODEV    a device or a socket
 *     -ENOMEM    memory is short
 * and any errno of open, fstat, mmap, read. On failure there is nothing to close. */
int perfdata_open(const char *path, const char **ret_problem, struct perfdata_reader **ret_reader);

/* The same from memory, which must stay as it is until perfdata_close. `source` is its name. */
int perfdata_open_memory(const char *source, const void *data, size_t length,
                         const char **ret_problem, struct perfdata_reader **ret_reader);

void perfdata_close(struct perfdata_reader *reader); /* NULL is fine */

/* Whether the data starts with the magic number of a perf.data, of any version or byte order. */
bool perfdata_is(const void *data, size_t length);

/* 1 and a record; 0 at the end; -ENOMEM when memory is short, and again -ENOMEM after that. */
int perfdata_next(struct perfdata_reader *reader, struct perfdata_record *ret_record);

/* Back to the first record. Statistics and damage are counted anew. */
void perfdata_rewind(struct perfdata_reader *reader);

/* Owned by the reader, and up to date at any time. */
const struct perfdata_info *perfdata_info(const struct perfdata_reader *reader);
const struct perfdata_stats *perfdata_stats(const struct perfdata_reader *reader);
const struct damage *perfdata_damage(const struct perfdata_reader *reader);

#endif
