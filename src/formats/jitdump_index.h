/* A jitdump in memory: which code stood at an address at a time, and what the file was like. */
#ifndef PITVIPER_FORMATS_JITDUMP_INDEX_H
#define PITVIPER_FORMATS_JITDUMP_INDEX_H

#include "base/hashtable.h"
#include "base/rangemap.h"
#include "base/vector.h"
#include "formats/damage.h"
#include "formats/jitdump.h"

/* A LOAD with what was said about it before. */
struct jitdump_code {
    struct jitdump_load load;
    uint64_t timestamp;
    size_t offset;                           /* of the LOAD in the file */
    struct jitdump_debug_info debug;         /* `count` is 0 when there is none */
    struct jitdump_unwinding_info unwinding; /* `size` is 0 when there is none */
};

/* Code at an address from a time on: by a LOAD, or by a MOVE later. */
struct jitdump_placement {
    uint64_t avma;
    uint64_t timestamp;
    uint32_t code; /* index into `codes` */
};

struct jitdump_index {
    struct jitdump_header header;
    bool swapped;                                /* written by a machine of the other byte order */
    VECTOR(struct jitdump_code) codes;           /* in the order of the file; borrow its data */
    VECTOR(struct jitdump_placement) placements; /* likewise */
    struct rangemap ranges;                      /* values are indices into `placements` */
    size_t records[JITDUMP_TYPES];               /* how many of each type */
    size_t unknown_records;
    size_t record_count;                      /* of all types */
    uint64_t first_timestamp, last_timestamp; /* of all records; 0 when there is none */

    size_t lost_moves; /* MOVE records whose code is not known */
    struct damage damage;
};

/* Reads the whole file; the data must outlive the index. 0 or -ENOMEM, or what jitdump_open
 * returned, with *ret_problem. Damaged records are no error. */
int jitdump_index_init(struct jitdump_index *index, const char *source, const void *data,
                       size_t length, const char **ret_problem);
void jitdump_index_done(struct jitdump_index *index);

/* What stood at an address at a time (in the clock of the file), or NULL. What was loaded or moved
 * there last at or before that time counts. */
const struct jitdump_placement *jitdump_index_find(const struct jitdump_index *index, uint64_t avma,
                                                   uint64_t timestamp);

static inline const struct jitdump_code *
jitdump_index_code(const struct jitdump_index *index, const struct jitdump_placement *placement)
{
    return &index->codes.items[placement->code];
}

#endif
