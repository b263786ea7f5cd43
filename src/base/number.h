/* Numbers in texts, for what is loaded into other programs. The C library's functions for that have
 * other names from one release to the next, which not every program's library has. */
#ifndef PITVIPER_BASE_NUMBER_H
#define PITVIPER_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

static inline unsigned number_digit(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
           : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                  : UINT32_MAX;
}

/* The digits at *text, which is moved behind them. False when there are none, or too many. */
static inline bool number_take(const char **text, unsigned base, uint64_t *ret_number)
{
    const char *at = *text;
    uint64_t number = 0;
    bool fits = true;
    for (unsigned digit; (digit = number_digit(*at)) < base; at++)
        fits &= !__builtin_mul_overflow(number, base, &number) &&
                !__builtin_add_overflow(number, digit, &number);
    bool is_number = at > *text && fits;
    *text = at;
    *ret_number = number;
    return is_number;
}

#endif
