#include "export/packed.h"

#include <errno.h>

enum {
    LEVEL = 6, /* 9 takes three times as long for 1 % */
    GZIP_WINDOW_BITS = 15 + 16,
    MEMORY_LEVEL = 9,
    BUFFER_BYTES = 1 << 16,
    ROUND_BYTES = 1 << 30, /* zlib counts in 32 bits */
};

int packed_open(struct packed *packed, FILE *out)
{
    packed->stream = (z_stream){0};
    base64_init(&packed->text, out);
    int result = deflateInit2(&packed->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, MEMORY_LEVEL,
                              Z_DEFAULT_STRATEGY);
    return result == Z_OK ? 0 : -ENOMEM;
}

/* Compresses what the stream has as input, to the end of it. */
static int deflate_all(struct packed *packed, int flush)
{
    z_stream *stream = &packed->stream;
    uint8_t buffer[BUFFER_BYTES];
    do {
        stream->next_out = buffer;
        stream->avail_out = sizeof buffer;
        deflate(stream, flush); /* can't fail: there is always room */
        int error = base64_write(&packed->text, buffer, sizeof buffer - stream->avail_out);
        if (error < 0)
            return error;
    } while (!stream->avail_out);
    return 0;
}

int packed_write(void *packed, const void *bytes, size_t length)
{
    struct packed *self = packed;
    const uint8_t *next = bytes;
    while (length) {
        size_t round = length < ROUND_BYTES ? length : ROUND_BYTES;
        self->stream.next_in = (Bytef *)next; /* zlib does not write there */
        self->stream.avail_in = (uInt)round;
        int error = deflate_all(self, Z_NO_FLUSH);
        if (error < 0)
            return error;
        next += round;
        length -= round;
    }
    return 0;
}

int packed_finish(struct packed *packed)
{
    packed->stream.avail_in = 0;
    int error = deflate_all(packed, Z_FINISH);
    return error < 0 ? error : base64_end(&packed->text);
}

void packed_close(struct packed *packed)
{
    deflateEnd(&packed->stream);
}
