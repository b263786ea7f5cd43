#include "base/vector.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

enum { FIRST_CAPACITY = 16 };

int vector_reserve_bytes(void *items, size_t *capacity, size_t wanted, size_t item_bytes)
{
    if (wanted <= *capacity)
        return 0;
    size_t grown = *capacity + *capacity / 2;
    if (grown < wanted)
        grown = wanted;
    if (grown < FIRST_CAPACITY)
        grown = FIRST_CAPACITY;
    size_t bytes;
    if (!checked_mul(grown, item_bytes, &bytes))
        return -ENOMEM;
    void *moved;
    memcpy(&moved, items, sizeof moved);
    moved = realloc(moved, bytes);
    if (!moved)
        return -ENOMEM;
    memcpy(items, &moved, sizeof moved);
    *capacity = grown;
    return 0;
}
