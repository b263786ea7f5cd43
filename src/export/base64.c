#include "export/base64.h"

#include <errno.h>

enum { GROUP_BYTES = 3, GROUP_CHARS = 4, ROUND_GROUPS = 1024 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_init(struct base64 *base64, FILE *out)
{
    *base64 = (struct base64){.out = out};
}

static void encode_group(const uint8_t from[GROUP_BYTES], char to[GROUP_CHARS])
{
    uint32_t bits = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
    to[0] = digits[bits >> 18];
    to[1] = digits[bits >> 12 & 63];
    to[2] = digits[bits >> 6 & 63];
    to[3] = digits[bits & 63];
}

static int put(struct base64 *base64, const char *text, size_t length)
{
    errno = 0;
    if (fwrite(text, 1, length, base64->out) == length)
        return 0;
    return errno ? -errno : -EIO;
}

int base64_write(struct base64 *base64, const void *bytes, size_t length)
{
    const uint8_t *next = bytes, *end = next + length;
    char text[ROUND_GROUPS * GROUP_CHARS];
    while (next < end) {
        size_t used = 0;
        while (next < end && used < sizeof text) {
            if (!base64->count && end - next >= GROUP_BYTES) {
                encode_group(next, text + used);
                next += GROUP_BYTES;
                used += GROUP_CHARS;
                continue;
            }
            base64->waiting[base64->count++] = *next++;
            if (base64->count == GROUP_BYTES) {
                encode_group(base64->waiting, text + used);
                base64->count = 0;
                used += GROUP_CHARS;
            }
        }
        int error = put(base64, text, used);
        if (error < 0)
            return error;
    }
    return 0;
}

int base64_end(struct base64 *base64)
{
    if (!base64->count)
        return 0;
    uint8_t group[GROUP_BYTES] = {0};
    char text[GROUP_CHARS];
    for (size_t i = 0; i < base64->count; i++)
        group[i] = base64->waiting[i];
    encode_group(group, text);
    for (size_t i = base64->count + 1; i < GROUP_CHARS; i++)
        text[i] = '=';
    base64->count = 0;
    return put(base64, text, sizeof text);
}
