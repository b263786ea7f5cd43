/* Bounded reading of bytes that somebody else wrote.
 *
 * A read past the end returns 0 (or NULL), sets a sticky failure and moves nothing; every later
 * read fails too. So a decoder reads a whole structure without a check in between and asks
 * cursor_ok() once. The failure keeps the offset and a static message; together with `source`
 * that is the line a person gets to see.
 *
 * The data is borrowed: it must outlive the cursor and everything cursor_bytes() and
 * cursor_string() returned. */
#ifndef PITVIPER_BASE_CURSOR_H
#define PITVIPER_BASE_CURSOR_H

#include <byteswap.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
    const uint8_t *data;
    size_t length;
    size_t offset;       /* of the next byte, from `data` */
    size_t base;         /* where `data` starts in the source; for messages only */
    const char *source;  /* what messages call the data; borrowed */
    bool swapped;        /* numbers are in the byte order that is not this machine's */
    const char *error;   /* NULL, or the static message of the first failure */
    size_t error_offset; /* from the start of the source; valid with `error` */
};

void cursor_init(struct cursor *cursor, const char *source, const void *data, size_t length);

/* The next `length` bytes as a cursor of their own, with the same source and byte order. When
 * they are not there, both cursors fail. */
struct cursor cursor_sub(struct cursor *cursor, size_t length);

uint8_t cursor_u8(struct cursor *cursor);
uint16_t cursor_u16(struct cursor *cursor);
static inline uint32_t cursor_u32(struct cursor *cursor);
static inline uint64_t cursor_u64(struct cursor *cursor);

/* Numbers of variable length as DWARF has them (LEB128); more than 64 bits are a failure. */
uint64_t cursor_uleb128(struct cursor *cursor);
int64_t cursor_sleb128(struct cursor *cursor);

/* The next `length` bytes, or NULL. */
static inline const uint8_t *cursor_bytes(struct cursor *cursor, size_t length);

/* The next NUL-terminated string and its length without the NUL, or NULL and 0 when the data ends
 * before a NUL does. */
const char *cursor_string(struct cursor *cursor, size_t *ret_length);

void cursor_skip(struct cursor *cursor, size_t length);
void cursor_seek(struct cursor *cursor, size_t offset);

/* Sets the failure by hand, at the current offset. `message` must be static; the first one wins. */
void cursor_fail(struct cursor *cursor, const char *message);

static inline bool cursor_ok(const struct cursor *cursor)
{
    return !cursor->error;
}

/* How many bytes are left to read. */
static inline size_t cursor_left(const struct cursor *cursor)
{
    return cursor->length - cursor->offset;
}

/* --- what is read millions of times ---------------------------------------------------------- */

static inline const uint8_t *cursor_bytes(struct cursor *cursor, size_t length)
{
    if (cursor->error)
        return NULL;
    if (length > cursor_left(cursor)) {
        cursor_fail(cursor, "the data ends too early");
        return NULL;
    }
    if (!length && !cursor->data)
        return (const uint8_t *)""; /* no bytes, of no data: still not a failure */
    const uint8_t *bytes = cursor->data + cursor->offset;
    cursor->offset += length;
    return bytes;
}

static inline uint32_t cursor_u32(struct cursor *cursor)
{
    uint32_t value = 0;
    const uint8_t *bytes = cursor_bytes(cursor, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return cursor->swapped ? bswap_32(value) : value;
}

static inline uint64_t cursor_u64(struct cursor *cursor)
{
    uint64_t value = 0;
    const uint8_t *bytes = cursor_bytes(cursor, sizeof value);
    if (bytes)
        memcpy(&value, bytes, sizeof value);
    return cursor->swapped ? bswap_64(value) : value;
}

#endif
