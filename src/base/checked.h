/* Arithmetic on sizes that come from outside: true when the result fits, false when it wrapped.
 * On false *ret is unspecified. */
#ifndef PITVIPER_BASE_CHECKED_H
#define PITVIPER_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool checked_add(size_t a, size_t b, size_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

static inline bool checked_mul(size_t a, size_t b, size_t *ret)
{
    return !__builtin_mul_overflow(a, b, ret);
}

static inline bool checked_add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    return !__builtin_add_overflow(a, b, ret);
}

#endif
