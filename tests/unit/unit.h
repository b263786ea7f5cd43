/* cmocka, what it wants to be included before it, and what most tests need besides. */
#ifndef PITVIPER_UNIT_UNIT_H
#define PITVIPER_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Compares bytes with a literal, which may hold NULs. */
#define assert_bytes(bytes, length, literal)                                                       \
    do {                                                                                           \
        assert_int_equal((length), sizeof(literal) - 1);                                           \
        assert_memory_equal((bytes), (literal), sizeof(literal) - 1);                              \
    } while (0)

/* Whether `work` ends, and returns true, within this time. For work that takes an instant unless it
 * grows with the square of its input, or never ends. It runs in a process of its own and must not
 * use assertions. */
static inline bool ends_within(unsigned seconds, bool (*work)(void))
{
    pid_t child = fork();
    if (child == 0) {
        alarm(seconds);
        _exit(work() ? 0 : 1);
    }
    int status;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* A copy of exactly this size: the sanitizer sees a read one byte past its end. */
static inline uint8_t *exact_copy(const void *bytes, size_t length)
{
    uint8_t *copy = malloc(length);
    assert_true(copy || !length);
    if (length)
        memcpy(copy, bytes, length);
    return copy;
}

/* Numbers that look random and are the same in every run (xorshift64). `state` starts as any
 * number but 0. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
