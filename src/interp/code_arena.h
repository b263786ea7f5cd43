/* Executable memory, filled with trampolines, and who owns each of them.
 *
 * Nothing here locks: callers hold the lock of interp/registration.c. */
#ifndef PITVIPER_INTERP_CODE_ARENA_H
#define PITVIPER_INTERP_CODE_ARENA_H

#include "interp/pyapi.h"
#include "interp/trampoline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The owner of a trampoline: its code object, and in the low bits the symbol files that have its
 * name. 0 when it has never been handed out or its code object is gone. */
typedef uintptr_t code_arena_owner;

enum {
    CODE_ARENA_NAMED_IN_MAP = 1,
    CODE_ARENA_NAMED_IN_DUMP = 2,
    CODE_ARENA_NAMED = CODE_ARENA_NAMED_IN_MAP | CODE_ARENA_NAMED_IN_DUMP,
};

static inline struct py_object *code_arena_code(code_arena_owner owner)
{
    return (struct py_object *)(owner & ~(uintptr_t)CODE_ARENA_NAMED);
}

struct code_arena_chunk;

/* A zeroed one is empty. Trampolines are never taken back and never moved. */
struct code_arena {
    struct code_arena_chunk *chunks; /* the one in use first */
    bool refused; /* the system gave no executable memory: not asked again until code_arena_ready */
};

/* Makes sure that there is room for a trampoline. 0, or -ENOMEM where the system does not give
 * executable memory (or none at all). */
int code_arena_ready(struct code_arena *arena);

/* A trampoline for a code object. 0, or -ENOMEM. */
int code_arena_take(struct code_arena *arena, struct py_object *code,
                    trampoline_function **ret_trampoline);

/* Where the owner of a trampoline is noted, whichever arena it is from; NULL for another address.
 */
code_arena_owner *code_arena_find(const void *trampoline);

/* Calls `visit` for each trampoline whose code object lives. */
void code_arena_each(struct code_arena *arena,
                     void (*visit)(trampoline_function *, code_arena_owner *, void *context),
                     void *context);

/* Forgets all owners: their interpreter is gone. The memory stays as it is, since a thread that was
 * never ended may still have it on its stack. */
void code_arena_forget(struct code_arena *arena);

/* Bytes of memory in all arenas, for the status. */
size_t code_arena_total_bytes(void);

#endif
