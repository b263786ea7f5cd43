/* Growing arrays of any type:
 *
 *     VECTOR(struct row) rows = {0};
 *     if (vector_push(&rows, row) < 0) ...     -ENOMEM; the vector is as it was
 *     for (size_t i = 0; i < rows.count; i++) use(rows.items[i]);
 *     vector_done(&rows);
 *
 * Items move when the vector grows: keep indices, not pointers. */
#ifndef PITVIPER_BASE_VECTOR_H
#define PITVIPER_BASE_VECTOR_H

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define VECTOR(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }

/* Room for `wanted` items in all. 0 or -ENOMEM. */
#define vector_reserve(vector, wanted)                                                             \
    vector_reserve_bytes(&(vector)->items, &(vector)->capacity, (wanted), sizeof *(vector)->items)

#define vector_push(vector, item)                                                                  \
    (((vector)->count < (vector)->capacity || vector_reserve((vector), (vector)->count + 1) == 0)  \
         ? ((vector)->items[(vector)->count++] = (item), 0)                                        \
         : -ENOMEM)

#define vector_done(vector)                                                                        \
    do {                                                                                           \
        free((vector)->items);                                                                     \
        (vector)->items = NULL;                                                                    \
        (vector)->count = (vector)->capacity = 0;                                                  \
    } while (0)

/* What vector_reserve stands for; grows by half at least, so that pushing is linear. `items` points
 * to the pointer to the items, of whatever type. */
int vector_reserve_bytes(void *items, size_t *capacity, size_t wanted, size_t item_bytes);

#endif
