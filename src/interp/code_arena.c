/* Memory is taken in chunks:
 *
 *     code     | unused | trampoline | pad | trampoline | pad | ...      mapped, read and execute
 *     owners   | unused | code object + bits | code object + bits | ...  mapped, read and write
 *
 * A chunk's code is written once, as a whole, before it becomes executable: it is never writable
 * and executable at the same time, and never changes afterwards. Handing a trampoline out only
 * notes its owner.
 *
 * A trampoline is never used for a second function, even when the first one is gone. A perf map has
 * no times, so an address must mean one name for as long as the process lives; and a thread may be
 * inside a function whose code object nobody else holds.
 *
 * The first bytes are not used: whoever makes an ELF file of the code (pitviper inject) puts that
 * file's headers there, and not on top of what the process has before the chunk.
 *
 * Chunks grow from 48 KB to 192 KB: a small program pays little, and a large one wastes little.
 * Finding an owner by address looks at each chunk, which is only done when functions appear and
 * die. */
#include "interp/code_arena.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    FIRST_CHUNK_BYTES = 48 << 10,
    LARGEST_CHUNK_BYTES = 192 << 10,
    UNUSED_SLOTS = 3, /* 288 bytes */
};

_Static_assert(FIRST_CHUNK_BYTES % 4096 == 0, "whole pages");

struct code_arena_chunk {
    uint8_t *code;
    size_t code_bytes;
    code_arena_owner *owners; /* one per trampoline */
    size_t used;              /* handed out so far */
    size_t count;             /* of trampolines in all */
    struct code_arena_chunk *next_in_arena;
    struct code_arena_chunk *next; /* in all_chunks */
};

/* Of every arena, even forgotten ones. */
static struct code_arena_chunk *all_chunks;

static void *map_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static int fill_chunk(struct code_arena_chunk *chunk, size_t code_bytes)
{
    size_t owner_bytes = code_bytes / TRAMPOLINE_STRIDE * sizeof *chunk->owners;
    *chunk = (struct code_arena_chunk){
        .code_bytes = code_bytes, .used = UNUSED_SLOTS, .count = code_bytes / TRAMPOLINE_STRIDE};
    chunk->code = map_memory(code_bytes);
    if (!chunk->code)
        return -ENOMEM;
    memset(chunk->code, TRAMPOLINE_CODE[TRAMPOLINE_BYTES - 1], code_bytes);
    for (size_t i = 0; i < chunk->count; i++)
        memcpy(chunk->code + i * TRAMPOLINE_STRIDE, TRAMPOLINE_CODE, TRAMPOLINE_BYTES);
    chunk->owners = map_memory(owner_bytes);
    if (!chunk->owners || mprotect(chunk->code, code_bytes, PROT_READ | PROT_EXEC) < 0) {
        if (chunk->owners)
            munmap(chunk->owners, owner_bytes);
        munmap(chunk->code, code_bytes);
        return -ENOMEM;
    }
    return 0;
}

static int add_chunk(struct code_arena *arena)
{
    struct code_arena_chunk *newest = arena->chunks;
    size_t code_bytes = newest ? newest->code_bytes * 2 : FIRST_CHUNK_BYTES;
    if (code_bytes > LARGEST_CHUNK_BYTES)
        code_bytes = LARGEST_CHUNK_BYTES;
    struct code_arena_chunk *chunk = malloc(sizeof *chunk);
    if (!chunk)
        return -ENOMEM;
    if (fill_chunk(chunk, code_bytes) < 0) {
        free(chunk);
        return -ENOMEM;
    }
    chunk->next_in_arena = newest;
    chunk->next = all_chunks;
    arena->chunks = all_chunks = chunk;
    return 0;
}

static bool has_room(const struct code_arena *arena)
{
    return arena->chunks && arena->chunks->used < arena->chunks->count;
}

int code_arena_ready(struct code_arena *arena)
{
    arena->refused = !has_room(arena) && add_chunk(arena) < 0;
    return arena->refused ? -ENOMEM : 0;
}

int code_arena_take(struct code_arena *arena, struct py_object *code,
                    trampoline_function **ret_trampoline)
{
    if (!has_room(arena) && (arena->refused || code_arena_ready(arena) < 0))
        return -ENOMEM;
    struct code_arena_chunk *chunk = arena->chunks;
    size_t slot = chunk->used++;
    chunk->owners[slot] = (code_arena_owner)code;
    *ret_trampoline = (trampoline_function *)(void *)(chunk->code + slot * TRAMPOLINE_STRIDE);
    return 0;
}

code_arena_owner *code_arena_find(const void *trampoline)
{
    for (struct code_arena_chunk *chunk = all_chunks; chunk; chunk = chunk->next) {
        size_t offset = (uintptr_t)trampoline - (uintptr_t)chunk->code;
        if (offset < chunk->count * TRAMPOLINE_STRIDE)
            return &chunk->owners[offset / TRAMPOLINE_STRIDE];
    }
    return NULL;
}

void code_arena_each(struct code_arena *arena,
                     void (*visit)(trampoline_function *, code_arena_owner *, void *context),
                     void *context)
{
    for (struct code_arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next_in_arena) {
        for (size_t i = 0; i < chunk->used; i++) {
            if (chunk->owners[i])
                visit((trampoline_function *)(void *)(chunk->code + i * TRAMPOLINE_STRIDE),
                      &chunk->owners[i], context);
        }
    }
}

void code_arena_forget(struct code_arena *arena)
{
    for (struct code_arena_chunk *chunk = arena->chunks; chunk; chunk = chunk->next_in_arena)
        memset(chunk->owners, 0, chunk->used * sizeof *chunk->owners);
    arena->chunks = NULL;
}

size_t code_arena_total_bytes(void)
{
    size_t bytes = 0;
    for (struct code_arena_chunk *chunk = all_chunks; chunk; chunk = chunk->next)
        bytes += chunk->code_bytes + chunk->count * sizeof *chunk->owners;
    return bytes;
}
