/* Memory that lives as long as its arena and is released all at once.
 *
 * Everything returned is zeroed, aligned for any type and never moves. Functions return NULL when
 * memory is short; what was handed out before stays valid. Not for use by several threads. */
#ifndef PITVIPER_BASE_ARENA_H
#define PITVIPER_BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first; owned */
    size_t used_bytes;          /* of the newest chunk's room */
    size_t room_bytes;
};

/* A zeroed struct arena is a valid empty one; arena_init only says so by name. */
void arena_init(struct arena *arena);
void arena_done(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t bytes);

/* A copy of `length` bytes with a NUL behind them, so that text can be used as a C string. */
char *arena_copy(struct arena *arena, const void *bytes, size_t length);

#endif
