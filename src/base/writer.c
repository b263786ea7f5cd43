#include "base/writer.h"

#include <string.h>

void writer_bytes(struct writer *writer, const void *bytes, size_t length)
{
    if (writer_fits(writer) && length <= writer->capacity - writer->length && length)
        memcpy(writer->data + writer->length, bytes, length);
    if (__builtin_add_overflow(writer->length, length, &writer->length))
        writer->length = SIZE_MAX;
}

void writer_u8(struct writer *writer, uint8_t value)
{
    writer_bytes(writer, &value, sizeof value);
}

void writer_u16(struct writer *writer, uint16_t value)
{
    writer_bytes(writer, &value, sizeof value);
}

void writer_u32(struct writer *writer, uint32_t value)
{
    writer_bytes(writer, &value, sizeof value);
}

void writer_u64(struct writer *writer, uint64_t value)
{
    writer_bytes(writer, &value, sizeof value);
}

void writer_uleb(struct writer *writer, uint64_t value)
{
    for (; value > 0x7f; value >>= 7)
        writer_u8(writer, (uint8_t)(value | 0x80));
    writer_u8(writer, (uint8_t)value);
}

void writer_sleb(struct writer *writer, int64_t value)
{
    /* The last byte's bit 6 is the sign. */
    for (; value > 0x3f || value < -0x40; value >>= 7)
        writer_u8(writer, (uint8_t)(value | 0x80));
    writer_u8(writer, (uint8_t)(value & 0x7f));
}

void writer_zeros(struct writer *writer, size_t length)
{
    if (writer_fits(writer) && length <= writer->capacity - writer->length && length)
        memset(writer->data + writer->length, 0, length);
    if (__builtin_add_overflow(writer->length, length, &writer->length))
        writer->length = SIZE_MAX;
}

void writer_hex(struct writer *writer, uint64_t value)
{
    char digits[16];
    size_t first = sizeof digits;
    do {
        digits[--first] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value);
    writer_bytes(writer, digits + first, sizeof digits - first);
}

void writer_align(struct writer *writer, size_t start, size_t alignment)
{
    size_t behind = (writer->length - start) % alignment;
    writer_zeros(writer, behind ? alignment - behind : 0);
}

void writer_patch_u32(struct writer *writer, size_t offset, uint32_t value)
{
    if (writer_fits(writer) && offset <= writer->length && sizeof value <= writer->length - offset)
        memcpy(writer->data + offset, &value, sizeof value);
}
