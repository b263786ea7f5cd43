/* `perf record -z` compresses what it takes from the kernel's buffers, as one zstd stream that goes
 * on through all COMPRESSED records. The records inside are cut anywhere:
 *
 *     COMPRESSED [ MMAP2 | SAMPLE | SAM ]  COMPRESSED [ PLE | SAMPLE ]
 *
 * Blocks of limited size come out, so that a few bytes can't claim all memory; the incomplete end
 * of a block is put before the next one. A block lives as long as records in it wait to be sorted.
 *
 * What perf compresses shrinks to a tenth, to a hundredth at most. A stream that grows by more than
 * MOST_GROWTH was made to hurt. */
#include "formats/perfdata_compressed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { BLOCK_BYTES = 256 << 10, REMAINDER_BYTES = 64 << 10 };
enum { MOST_GROWTH = 2048, FREE_GROWTH_BYTES = 16 << 20 };

void perfdata_stream_done(struct perfdata_stream *stream)
{
    ZSTD_freeDStream(stream->zstd);
    free(stream->remainder);
    *stream = (struct perfdata_stream){0};
}

void perfdata_stream_reset(struct perfdata_stream *stream)
{
    if (stream->zstd)
        ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only);
    *stream = (struct perfdata_stream){.zstd = stream->zstd, .remainder = stream->remainder};
}

int perfdata_stream_feed(struct perfdata_stream *stream, const uint8_t *payload, size_t length,
                         uint64_t offset)
{
    if (!stream->zstd)
        stream->zstd = ZSTD_createDStream();
    if (!stream->remainder)
        stream->remainder = malloc(REMAINDER_BYTES);
    if (!stream->zstd || !stream->remainder)
        return -ENOMEM;
    stream->input = payload;
    stream->input_length = length;
    stream->input_used = 0;
    stream->is_drained = false;
    stream->offset = offset;
    stream->bytes_in += length;
    return 0;
}

static int decompress(struct perfdata_stream *stream, struct perfdata_block *block)
{
    ZSTD_inBuffer in = {stream->input, stream->input_length, stream->input_used};
    ZSTD_outBuffer out = {block->data, stream->remainder_length + BLOCK_BYTES, block->length};
    while (out.pos < out.size) {
        size_t out_before = out.pos, in_before = in.pos;
        size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
        if (ZSTD_isError(result))
            return -EBADMSG;
        stream->bytes_out += out.pos - out_before;
        bool is_stuck = out.pos == out_before && in.pos == in_before;
        stream->is_drained = is_stuck || (in.pos == in.size && out.pos < out.size);
        if (stream->is_drained)
            break;
    }
    if (stream->bytes_out / MOST_GROWTH > stream->bytes_in + FREE_GROWTH_BYTES / MOST_GROWTH)
        return -EBADMSG;
    stream->input_used = in.pos;
    block->length = out.pos;
    return 0;
}

int perfdata_stream_next(struct perfdata_stream *stream, struct perfdata_block **ret_block)
{
    if (!stream->input || stream->is_drained)
        return 0;
    size_t kept = stream->remainder_length;
    struct perfdata_block *block = malloc(sizeof *block + kept + BLOCK_BYTES);
    if (!block)
        return -ENOMEM;
    *block = (struct perfdata_block){.data = (uint8_t *)(block + 1),
                                     .length = kept,
                                     .offset = stream->offset,
                                     .users = 1,
                                     .starts_early = kept > 0};
    memcpy(block->data, stream->remainder, kept);
    int error = decompress(stream, block);
    stream->remainder_length = 0;
    if (error < 0) {
        free(block);
        ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only);
        stream->is_drained = true;
        return error;
    }
    struct perfdata_block *shrunk = realloc(block, sizeof *block + block->length);
    if (shrunk)
        block = shrunk;
    block->data = (uint8_t *)(block + 1);
    *ret_block = block;
    return 1;
}

void perfdata_stream_keep(struct perfdata_stream *stream, const uint8_t *bytes, size_t length)
{
    if (length > REMAINDER_BYTES)
        length = REMAINDER_BYTES;
    memcpy(stream->remainder, bytes, length);
    stream->remainder_length = length;
}

void perfdata_block_release(struct perfdata_block *block)
{
    if (block && --block->users == 0)
        free(block);
}
