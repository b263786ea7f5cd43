/* Bounded writing into memory that the caller owns: the counterpart of the cursor.
 *
 * What does not fit is not written but still counted, so `length` is what the whole would have
 * taken: encode once with capacity 0 to measure, or check writer_fits() at the end. Allocates
 * nothing and calls nothing but memcpy, so it is fit for a signal handler. Numbers are written in
 * this machine's byte order. */
#ifndef PITVIPER_BASE_WRITER_H
#define PITVIPER_BASE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer {
    uint8_t *data;
    size_t capacity;
    size_t length; /* bytes asked for so far; more than `capacity` when they did not fit */
};

static inline void writer_init(struct writer *writer, void *data, size_t capacity)
{
    *writer = (struct writer){.data = data, .capacity = capacity};
}

static inline bool writer_fits(const struct writer *writer)
{
    return writer->length <= writer->capacity;
}

void writer_bytes(struct writer *writer, const void *bytes, size_t length);
void writer_u8(struct writer *writer, uint8_t value);
void writer_u16(struct writer *writer, uint16_t value);
void writer_u32(struct writer *writer, uint32_t value);
void writer_u64(struct writer *writer, uint64_t value);

/* Numbers of DWARF: seven bits a byte, the lowest first (LEB128). */
void writer_uleb(struct writer *writer, uint64_t value);
void writer_sleb(struct writer *writer, int64_t value);

/* As many zero bytes. */
void writer_zeros(struct writer *writer, size_t length);

/* Lower-case hexadecimal without prefix or leading zeros. */
void writer_hex(struct writer *writer, uint64_t value);

/* Zero bytes up to the next multiple of `alignment`, counted from `start`. */
void writer_align(struct writer *writer, size_t start, size_t alignment);

/* Overwrites a number written before, such as a size known only at the end. */
void writer_patch_u32(struct writer *writer, size_t offset, uint32_t value);

#endif
