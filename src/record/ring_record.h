/* What stands in the records of a ring (formats/sample_ring.h), with every length checked: the
 * process on the other side may write anything, at any time. So lengths are read once, and what is
 * behind them is bytes that may change while they are looked at. */
#ifndef PITVIPER_RECORD_RING_RECORD_H
#define PITVIPER_RECORD_RING_RECORD_H

#include "formats/sample_ring.h"

/* Everything is borrowed from the record. */
struct ring_record_sample {
    uint64_t weight_ns;
    uint64_t registers[SAMPLE_REGISTERS]; /* a copy */
    uint64_t kernel_weight_ns;
    const uint64_t *kernel; /* chains: see ring_record_next_chain */
    size_t kernel_words;
    const uint64_t *frames; /* Python frames and borders, innermost first */
    size_t frame_count;
    size_t kept_frames;   /* behind them, as in the thread's deep sample before */
    uint32_t deep_number; /* 0: not deep */
    const uint8_t *stack; /* from the stack pointer on */
    size_t stack_bytes;
    size_t red_zone_bytes; /* that are there before `stack` */
};

/* What the thread did inside the kernel. */
struct ring_record_chain {
    uint64_t time_ns;
    const uint64_t *addresses; /* innermost first */
    size_t count;              /* at least 1 */
};

struct ring_record_code {
    uint32_t number; /* 1 to 2^31 - 1 */
    uint32_t first_line;
    const char *name, *file; /* without NUL */
    size_t name_length, file_length;
    const uint8_t *lines;
    size_t lines_length;
};

/* What all records have. */
struct ring_record {
    uint16_t type, flags;
    uint32_t tid;
    uint64_t time_ns;
    uint32_t extra;
    const uint8_t *body;
    size_t body_bytes;
    union {
        struct ring_record_sample sample;
        struct ring_record_code code;
        struct {
            const char *bytes; /* without NUL */
            size_t length;
        } text; /* of THREAD and MAPS */
    };
};

/* Takes a record apart that is `most_bytes` long at most. 0; -EBADMSG when its lengths don't fit
 * into each other; -ENOTSUP for a type that is not known. */
int ring_record_decode(const struct sample_record *record, size_t most_bytes,
                       struct ring_record *ret_record);

/* 1 and the next chain of a sample, 0 at the end. *position is 0 at first. A chain that does not
 * fit is the end. */
int ring_record_next_chain(const struct ring_record_sample *sample, size_t *position,
                           struct ring_record_chain *ret_chain);

#endif
