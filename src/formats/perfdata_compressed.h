/* The records inside compressed ones (`perf record -z`). Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_COMPRESSED_H
#define PITVIPER_FORMATS_PERFDATA_COMPRESSED_H

#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decompressed bytes. */
struct perfdata_block {
    uint8_t *data;     /* behind the structure, aligned to 8 */
    size_t length;     /* in bytes */
    uint64_t offset;   /* in the file, of the compressed record that they come from */
    size_t users;      /* records in it that are queued, and whoever reads it */
    bool starts_early; /* its first bytes come from the block before */
};

/* A zeroed one is valid and empty. */
struct perfdata_stream {
    void *zstd;           /* the decompressor; NULL before the first record */
    const uint8_t *input; /* of the record that is being decompressed; borrowed */
    size_t input_length;
    size_t input_used;
    bool is_drained;    /* the input has nothing more to give */
    uint64_t offset;    /* of that record in the file */
    uint8_t *remainder; /* what was incomplete at the end of the last block; owned */
    size_t remainder_length;
    uint64_t bytes_in;
    uint64_t bytes_out;
};

void perfdata_stream_done(struct perfdata_stream *stream);
void perfdata_stream_reset(struct perfdata_stream *stream);

/* Gives a compressed record's payload to the stream; only after the last one was drained. 0 or
 * -ENOMEM. */
int perfdata_stream_feed(struct perfdata_stream *stream, const uint8_t *payload, size_t length,
                         uint64_t offset);

/* 1 and a block with at least one user, the caller; 0 when there is no more input; -EBADMSG when
 * the input can't be decompressed; -ENOMEM. */
int perfdata_stream_next(struct perfdata_stream *stream, struct perfdata_block **ret_block);

/* Keeps the incomplete record at the end of a block for the next one; at most 64 KB. */
void perfdata_stream_keep(struct perfdata_stream *stream, const uint8_t *bytes, size_t length);

/* One user less; the block goes with the last one. NULL is fine. */
void perfdata_block_release(struct perfdata_block *block);

#endif
