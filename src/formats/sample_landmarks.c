/* A table changes under the thread's eyes at any time: the version is odd meanwhile, and another
 * one afterwards. Numbers of it are not believed before that is looked at, but for where to read:
 * every place is compared with the bounds of the stack. */
#include "formats/sample_landmarks.h"

#include <string.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

_Static_assert(sizeof(struct sample_landmarks) == SAMPLE_RING_TABLE_BYTES, "whole pages");

static struct sample_landmarks *table_at(const struct sample_ring *ring, size_t number)
{
    return (void *)(ring->tables + number * SAMPLE_RING_TABLE_BYTES);
}

static const struct sample_landmarks *table_of(const struct sample_ring *ring, uint32_t tid)
{
    for (size_t i = 0; i < SAMPLE_RING_TABLES; i++)
        if (atomic_load_explicit(&ring->header->table_tids[i], memory_order_acquire) == tid)
            return table_at(ring, i);
    return NULL;
}

/* How many landmarks hold. Each lies in another line of the cache. */
static size_t count_held(const struct sample_landmarks *table, uint64_t stack_avma,
                         uint64_t end_avma)
{
    enum { AHEAD = 24 };
    size_t count = table->count, held = 0;
    if (count > SAMPLE_LANDMARKS_MOST)
        count = SAMPLE_LANDMARKS_MOST;
    if (end_avma - stack_avma < sizeof(uint64_t))
        return 0;
    uint64_t most_depth = end_avma - stack_avma - sizeof(uint64_t); /* beyond the last word */
    for (; held < count; held++) {
        const volatile struct sample_landmark *mark = &table->marks[held]; /* read once */
        uint32_t depth = mark->depth, word;
        if (held + AHEAD < count)
            __builtin_prefetch((const void *)(uintptr_t)(end_avma - mark[AHEAD].depth));
        if (depth - sizeof(uint64_t) > most_depth)
            break;
        memcpy(&word, (const void *)(uintptr_t)(end_avma - depth), sizeof word);
        if (word != mark->word)
            break;
    }
    return held;
}

uint64_t sample_landmarks_check(const struct sample_ring *ring, uint32_t tid, uint64_t stack_avma,
                                uint64_t end_avma, struct sample_known_stack *ret_known)
{
    const struct sample_landmarks *table = table_of(ring, tid);
    if (!table)
        return end_avma;
    uint32_t version = atomic_load_explicit(&table->version, memory_order_acquire);
    if (version == 0 || version % 2 || table->end_avma != end_avma)
        return end_avma;
    size_t held = count_held(table, stack_avma, end_avma);
    uint64_t depth = held ? table->marks[held - 1].depth : 0;
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(&table->version, memory_order_relaxed) != version ||
        depth < 2 * SAMPLE_LANDMARKS_MARGIN_BYTES)
        return end_avma;
    *ret_known = (struct sample_known_stack){.version = version, .count = held};
    return end_avma - depth + SAMPLE_LANDMARKS_MARGIN_BYTES;
}

bool sample_landmarks_publish(struct sample_ring *ring, size_t number, uint32_t tid,
                              uint32_t version, uint64_t end_avma,
                              const struct sample_landmark *marks, size_t count)
{
    struct sample_landmarks *table = table_at(ring, number);
    _Atomic uint32_t *owner = &ring->header->table_tids[number];
    if (!atomic_load_explicit(owner, memory_order_relaxed) &&
        madvise(table, sizeof *table, MADV_POPULATE_WRITE) < 0)
        return false;
    if (count > SAMPLE_LANDMARKS_MOST)
        count = SAMPLE_LANDMARKS_MOST;
    atomic_store_explicit(&table->version, version - 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    table->end_avma = end_avma;
    table->count = (uint32_t)count;
    if (count)
        memcpy(table->marks, marks, count * sizeof *marks);
    atomic_store_explicit(&table->version, version, memory_order_release);
    atomic_store_explicit(owner, tid, memory_order_release);
    return true;
}
