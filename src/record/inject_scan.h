/* What a recording tells of generated code: who wrote a jitdump, and where memory for code was
 * mapped. One pass over all records. */
#ifndef PITVIPER_RECORD_INJECT_SCAN_H
#define PITVIPER_RECORD_INJECT_SCAN_H

#include "base/arena.h"
#include "base/vector.h"
#include "formats/perfdata.h"
#include "formats/perfdata_splice.h"

#include <stdbool.h>
#include <stdint.h>

/* A mapping of jit-PID.dump: how a program tells profilers that it writes one. */
struct inject_marker {
    int32_t pid;           /* as perf saw it */
    uint32_t named_pid;    /* as in the name: as the program saw itself */
    const char *path;      /* in the program's own file system */
    uint64_t time_ns;      /* 0: mapped before the recording started */
    uint64_t exec_time_ns; /* what was mapped before is gone */
};

/* Executable memory without a file. */
struct inject_anon {
    int32_t pid;
    uint64_t start_avma, end_avma;
    uint64_t time_ns;
    size_t round; /* of the recording, see perfdata_splice_round */
};

struct inject_range {
    uint64_t start_avma, end_avma;
};

struct inject_scan {
    struct arena arena;                   /* has the paths */
    VECTOR(struct inject_marker) markers; /* one per process and path: the last */
    VECTOR(struct inject_anon) anons;     /* in the order of time */
    VECTOR(struct inject_range) used;     /* whatever was mapped by anybody; sorted, disjoint */
    VECTOR(uint64_t) newest_ns; /* by round: the newest time in it or before; one per round */
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int inject_scan_init(struct inject_scan *scan, struct perfdata_reader *reader,
                     const struct perfdata_splice *splice);
void inject_scan_done(struct inject_scan *scan);

/* The round in which a record of that time belongs: the first that reaches it, else the last. */
size_t inject_scan_round(const struct inject_scan *scan, uint64_t time_ns);

/* An address at or behind `after_avma` where no process ever had anything for so many bytes and a
 * page on either side; 0 when there is none. */
uint64_t inject_scan_room(const struct inject_scan *scan, uint64_t after_avma, uint64_t bytes);

#endif
