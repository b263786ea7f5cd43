#include "base/base64_file.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/types.h>

enum { GROUP_BYTES = 3, GROUP_CHARS = 4, ROUND_GROUPS = 1024 };

struct encoder {
    FILE *out;
    uint8_t waiting[GROUP_BYTES]; /* bytes that are no whole group yet … */
    size_t count;                 /* … and how many */
};

static void encode_group(const uint8_t from[GROUP_BYTES], char to[GROUP_CHARS])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
    to[0] = digits[bits >> 18];
    to[1] = digits[bits >> 12 & 63];
    to[2] = digits[bits >> 6 & 63];
    to[3] = digits[bits & 63];
}

/* Whole groups of the input, as many as fit into `text`; the rest of less than a group is kept. */
static size_t encode_some(struct encoder *encoder, const uint8_t **next, const uint8_t *end,
                          char text[ROUND_GROUPS * GROUP_CHARS])
{
    size_t used = 0;
    while (*next < end && used < ROUND_GROUPS * GROUP_CHARS) {
        if (!encoder->count && end - *next >= GROUP_BYTES) {
            encode_group(*next, text + used);
            *next += GROUP_BYTES;
            used += GROUP_CHARS;
            continue;
        }
        encoder->waiting[encoder->count++] = *(*next)++;
        if (encoder->count == GROUP_BYTES) {
            encode_group(encoder->waiting, text + used);
            encoder->count = 0;
            used += GROUP_CHARS;
        }
    }
    return used;
}

static ssize_t write_some(void *cookie, const char *bytes, size_t length)
{
    struct encoder *encoder = cookie;
    const uint8_t *next = (const uint8_t *)bytes, *end = next + length;
    char text[ROUND_GROUPS * GROUP_CHARS];
    while (next < end) {
        size_t used = encode_some(encoder, &next, end, text);
        if (fwrite(text, 1, used, encoder->out) != used)
            return 0; /* glibc's word for an error */
    }
    return (ssize_t)length;
}

/* The last group, filled up with '='. */
static int close_encoder(void *cookie)
{
    struct encoder *encoder = cookie;
    char text[GROUP_CHARS];
    size_t count = encoder->count;
    int result = ferror(encoder->out) ? -1 : 0;
    if (count && result == 0) {
        for (size_t i = count; i < GROUP_BYTES; i++)
            encoder->waiting[i] = 0;
        encode_group(encoder->waiting, text);
        for (size_t i = count + 1; i < GROUP_CHARS; i++)
            text[i] = '=';
        result = fwrite(text, 1, sizeof text, encoder->out) == sizeof text ? 0 : -1;
    }
    free(encoder);
    return result;
}

FILE *base64_file_open(FILE *out)
{
    struct encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder)
        return NULL;
    encoder->out = out;
    FILE *file = fopencookie(encoder, "w",
                             (cookie_io_functions_t){.write = write_some, .close = close_encoder});
    if (!file)
        free(encoder);
    return file;
}
