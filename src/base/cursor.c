/* The bounded cursor. Invariant: offset <= length, always; so `length - offset` never wraps and is
 * the only comparison a read needs. */
#include "base/cursor.h"

#include <string.h>

void cursor_init(struct cursor *cursor, const char *source, const void *data, size_t length)
{
    *cursor = (struct cursor){.data = data, .length = length, .source = source};
}

void cursor_fail(struct cursor *cursor, const char *message)
{
    if (cursor->error)
        return;
    cursor->error = message;
    cursor->error_offset = cursor->base + cursor->offset;
}

struct cursor cursor_sub(struct cursor *cursor, size_t length)
{
    struct cursor sub = *cursor;
    sub.data = cursor_bytes(cursor, length);
    sub.base = cursor->base + sub.offset;
    sub.offset = 0;
    sub.length = sub.data ? length : 0;
    sub.error = cursor->error;
    sub.error_offset = cursor->error_offset;
    return sub;
}

void cursor_skip(struct cursor *cursor, size_t length)
{
    cursor_bytes(cursor, length);
}

void cursor_seek(struct cursor *cursor, size_t offset)
{
    if (cursor->error)
        return;
    if (offset > cursor->length)
        cursor_fail(cursor, "an offset points past the end");
    else
        cursor->offset = offset;
}

const char *cursor_string(struct cursor *cursor, size_t *ret_length)
{
    *ret_length = 0;
    if (cursor->error)
        return NULL;
    size_t left = cursor_left(cursor);
    const char *text = left ? (const char *)cursor->data + cursor->offset : NULL;
    const char *nul = left ? memchr(text, '\0', left) : NULL;
    if (!nul) {
        cursor_fail(cursor, "a string has no end");
        return NULL;
    }
    *ret_length = (size_t)(nul - text);
    cursor->offset += *ret_length + 1;
    return text;
}

uint8_t cursor_u8(struct cursor *cursor)
{
    const uint8_t *bytes = cursor_bytes(cursor, 1);
    return bytes ? *bytes : 0;
}

uint16_t cursor_u16(struct cursor *cursor)
{
    uint16_t value = 0;
    const uint8_t *bytes = cursor_bytes(cursor, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return cursor->swapped ? bswap_16(value) : value;
}

/* Seven bits a byte, the lowest first; the eighth says that more follow. */
static uint64_t read_leb128(struct cursor *cursor, bool is_signed)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte & 0x80)
            continue;
        if (is_signed && byte & 0x40 && shift + 7 < 64)
            value |= UINT64_MAX << (shift + 7);
        return value;
    }
    cursor_fail(cursor, "a number has more than 64 bits");
    return 0;
}

uint64_t cursor_uleb128(struct cursor *cursor)
{
    return read_leb128(cursor, false);
}

int64_t cursor_sleb128(struct cursor *cursor)
{
    return (int64_t)read_leb128(cursor, true);
}
