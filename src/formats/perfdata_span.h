/* Records one after the other in a piece of memory, and behind damage. Internal to the perf.data
 * reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_SPAN_H
#define PITVIPER_FORMATS_PERFDATA_SPAN_H

#include "formats/perfdata_events.h"

/* A piece of memory with records, in the file or decompressed. */
struct perfdata_span {
    const uint8_t *data;
    size_t length;
    size_t position; /* of the next record */
    bool goes_on;    /* what is incomplete at the end goes on elsewhere */
    bool may_be_cut; /* what is incomplete at the end was cut off, not damaged */
};

/* What is needed to judge records, and shared by all spans of a pass. */
struct perfdata_judge {
    const struct perfdata_events *events;
    uint64_t *aligned;        /* PERFDATA_RECORD_MOST bytes, for records that are not aligned */
    size_t search_bytes_left; /* how much may still be looked at to find records behind damage */
    bool is_unaligned;        /* records may start anywhere: some of perf's own have odd sizes */
};

/* A record's size has 16 bits. */
enum { PERFDATA_RECORD_MOST = 1 << 16 };

struct perfdata_raw {
    const uint8_t *record;
    struct perf_event_header header;
    size_t position; /* in the span */
    size_t extent;   /* of the record and of data behind it, which its size does not include */

    /* Valid after -EBADMSG. */
    const char *problem; /* static */
};

/* 1 and a record, which may still turn out to be damaged inside; 0 at the end; -ENODATA when what
 * is left, from `position` on, is an incomplete record; -EBADMSG when `extent` bytes at `position`
 * were skipped that can't be a record. */
int perfdata_span_next(struct perfdata_span *span, struct perfdata_judge *judge,
                       struct perfdata_raw *ret_raw);

/* The record where it is, or a copy that is aligned as the decoder wants it. */
const uint8_t *perfdata_judge_align(const struct perfdata_judge *judge, const uint8_t *record,
                                    size_t length);

#endif
