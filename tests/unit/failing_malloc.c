#include "failing_malloc.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static long successes_left = FAILING_MALLOC_NEVER;
static bool has_failed;

void failing_malloc_after(long successes)
{
    successes_left = successes;
    has_failed = false;
}

bool failing_malloc_stop(void)
{
    successes_left = FAILING_MALLOC_NEVER;
    return has_failed;
}

static bool must_fail(size_t count, size_t bytes)
{
    size_t total;
    bool too_large = __builtin_mul_overflow(count, bytes, &total) || total > PTRDIFF_MAX;
    bool is_turn = successes_left == 0;
    if (successes_left >= 0)
        successes_left--;
    has_failed |= is_turn;
    if (too_large || is_turn)
        errno = ENOMEM;
    return too_large || is_turn;
}

void *__wrap_malloc(size_t bytes)
{
    return must_fail(1, bytes) ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return must_fail(count, bytes) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return must_fail(1, bytes) ? NULL : __real_realloc(memory, bytes);
}
