/* A chain of chunks, each twice as large as the one before up to a megabyte; an allocation larger
 * than a chunk gets a chunk of its own size. Chunks come from calloc, so handing out memory is an
 * addition: nothing is cleared twice. */
#include "base/arena.h"

#include "base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CHUNK_BYTES = 4096, LARGEST_CHUNK_BYTES = 1 << 20 };

struct arena_chunk {
    struct arena_chunk *older;
    max_align_t room[];
};

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

void arena_done(struct arena *arena)
{
    struct arena_chunk *chunk = arena->chunks;
    while (chunk) {
        struct arena_chunk *older = chunk->older;
        free(chunk);
        chunk = older;
    }
    arena_init(arena);
}

static int add_chunk(struct arena *arena, size_t bytes)
{
    size_t room = arena->room_bytes ? arena->room_bytes * 2 : FIRST_CHUNK_BYTES;
    if (room > LARGEST_CHUNK_BYTES)
        room = LARGEST_CHUNK_BYTES;
    if (room < bytes)
        room = bytes;
    size_t total;
    if (!checked_add(room, sizeof(struct arena_chunk), &total))
        return -1;
    struct arena_chunk *chunk = calloc(1, total);
    if (!chunk)
        return -1;
    chunk->older = arena->chunks;
    *arena = (struct arena){.chunks = chunk, .room_bytes = room};
    return 0;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
    size_t aligned;
    if (!checked_add(bytes, sizeof(max_align_t) - 1, &aligned))
        return NULL;
    aligned -= aligned % sizeof(max_align_t);
    if (aligned > arena->room_bytes - arena->used_bytes || !arena->chunks) {
        if (add_chunk(arena, aligned) < 0)
            return NULL;
    }
    void *memory = (char *)arena->chunks->room + arena->used_bytes;
    arena->used_bytes += aligned;
    return memory;
}

char *arena_copy(struct arena *arena, const void *bytes, size_t length)
{
    size_t with_nul;
    if (!checked_add(length, 1, &with_nul))
        return NULL;
    char *copy = arena_alloc(arena, with_nul);
    if (copy && length)
        memcpy(copy, bytes, length);
    return copy;
}
