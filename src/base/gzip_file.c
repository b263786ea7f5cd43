#include "base/gzip_file.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>
#include <zlib.h>

/* 16 above zlib's window asks for gzip's head and tail. The quickest levels pack these texts to a
 * tenth; 6 takes three times as long for a tenth less. */
enum { LEVEL = 3, GZIP_WINDOW = 15 + 16, MEMORY_LEVEL = 8, BUFFER_BYTES = 1 << 16 };

struct packer {
    z_stream stream;
    FILE *out;
    unsigned char buffer[BUFFER_BYTES];
};

/* Packs all input there is; with Z_FINISH also what zlib kept back. 0 or -1 with errno. */
static int pack(struct packer *packer, int flush)
{
    int result;
    do {
        packer->stream.next_out = packer->buffer;
        packer->stream.avail_out = BUFFER_BYTES;
        result = deflate(&packer->stream, flush);
        size_t length = BUFFER_BYTES - packer->stream.avail_out;
        if (length && fwrite(packer->buffer, 1, length, packer->out) != length)
            return -1;
    } while (packer->stream.avail_out == 0);
    if (result == Z_STREAM_ERROR) {
        errno = EIO;
        return -1;
    }
    return 0;
}

static ssize_t write_some(void *cookie, const char *bytes, size_t length)
{
    struct packer *packer = cookie;
    packer->stream.next_in = (unsigned char *)bytes;
    packer->stream.avail_in = (uInt)length;
    return pack(packer, Z_NO_FLUSH) < 0 ? 0 : (ssize_t)length; /* 0 is glibc's word for an error */
}

static int close_packer(void *cookie)
{
    struct packer *packer = cookie;
    packer->stream.avail_in = 0;
    int result = ferror(packer->out) ? -1 : pack(packer, Z_FINISH);
    deflateEnd(&packer->stream);
    free(packer);
    return result;
}

FILE *gzip_file_open(FILE *out)
{
    struct packer *packer = calloc(1, sizeof *packer);
    if (!packer)
        return NULL;
    packer->out = out;
    if (deflateInit2(&packer->stream, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(packer);
        return NULL;
    }
    FILE *file = fopencookie(packer, "w",
                             (cookie_io_functions_t){.write = write_some, .close = close_packer});
    if (!file) {
        deflateEnd(&packer->stream);
        free(packer);
    }
    return file;
}
