/* The text of /proc/PID/maps, which the kernel writes and a profiled process passes on: what code
 * is where. */
#ifndef PITVIPER_RECORD_MAPS_TEXT_H
#define PITVIPER_RECORD_MAPS_TEXT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A mapping that can be executed. */
struct maps_mapping {
    uint64_t start_avma, end_avma; /* never empty */
    uint64_t fileoff;
    uint64_t inode; /* 0: no file */
    uint32_t device_major, device_minor;
    bool is_writable;
    bool is_deleted;     /* the file had no name any more */
    char path[PATH_MAX]; /* as it was named; "[vdso]"; "//anon" when there is no file, as in perf */
};

/* Walks over a text; all of it is borrowed and may be anything. */
struct maps_text {
    const char *at, *end;
};

static inline struct maps_text maps_text_init(const char *text, size_t length)
{
    return (struct maps_text){.at = text, .end = text + length};
}

/* 1 and the next executable mapping, 0 at the end. Lines that are not understood are passed over:
 * the last one may be cut off. */
int maps_text_next(struct maps_text *text, struct maps_mapping *ret_mapping);

#endif
