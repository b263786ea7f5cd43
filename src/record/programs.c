/* A process tells that it is about to become another program, and that program makes a ring of its
 * own, at a later time. Which of the two is heard of first is a matter of chance, so both are
 * noted, and compared at the end. Of a process only the last program counts: before that one, the
 * process told of the next, so it was recorded. Without memory something is not named. */
#include "record/programs.h"

#include <string.h>

enum { MOST_NAMES = 1000 }; /* different ones */

void programs_done(struct programs *programs)
{
    arena_done(&programs->arena);
    hashtable_done(&programs->index);
    vector_done(&programs->last);
    vector_done(&programs->missing);
    *programs = (struct programs){0};
}

static struct programs_last *last_of(struct programs *programs, struct programs_process process)
{
    uint64_t hash = hash_u64((uint64_t)process.pid_namespace << 32 | (uint32_t)process.pid);
    uint64_t number;
    if (hashtable_get(&programs->index, hash, &number))
        return &programs->last.items[number];
    if (vector_reserve(&programs->last, programs->last.count + 1) < 0 ||
        hashtable_add(&programs->index, hash, programs->last.count) < 0)
        return NULL;
    programs->last.items[programs->last.count] = (struct programs_last){0};
    return &programs->last.items[programs->last.count++];
}

void programs_start(struct programs *programs, struct programs_process process, uint64_t time_ns,
                    const char *name, size_t length)
{
    struct programs_last *last = last_of(programs, process);
    if (!last)
        return;
    last->name = length ? arena_copy(&programs->arena, name, length) : NULL;
    last->started_ns = time_ns;
}

void programs_record(struct programs *programs, struct programs_process process, uint64_t time_ns)
{
    struct programs_last *last = last_of(programs, process);
    if (last && time_ns > last->recorded_ns)
        last->recorded_ns = time_ns;
}

static void add_missing(struct programs *programs, const char *name)
{
    for (size_t i = 0; i < programs->missing.count; i++) {
        struct programs_missing *known = &programs->missing.items[i];
        if (strcmp(known->name, name) == 0) {
            known->count++;
            return;
        }
    }
    if (programs->missing.count < MOST_NAMES)
        (void)vector_push(&programs->missing,
                          ((struct programs_missing){.name = name, .count = 1}));
}

void programs_finish(struct programs *programs)
{
    for (size_t i = 0; i < programs->last.count; i++) {
        const struct programs_last *last = &programs->last.items[i];
        if (last->name && last->recorded_ns < last->started_ns)
            add_missing(programs, last->name);
    }
}
