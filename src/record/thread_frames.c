/* A stack stands at the end of its room, as stacks do: what a sample keeps of it stays where it is,
 * and what the sample has comes before that.
 *
 *     | free                 | of this sample    | kept of those before   | missing |
 *                            ^ innermost                      outermost ^
 *
 * A sample says which one it follows. If that was not taken here, for whatever reason, the frames
 * that it kept are missing: nothing stands for them, until the thread tells all again.
 *
 * Threads don't tell when they end. Since all frames are told after a pause, a stack of which
 * nothing was heard for longer is of no more use. */
#include "record/thread_frames.h"

#include <string.h>

enum { NS_PER_SECOND = 1000000000, FIRST_MOST = 64 };

static const uint64_t PAUSE_NS = (uint64_t)2 * SAMPLE_DEEP_SECONDS * NS_PER_SECOND;

struct thread_frames_stack {
    uint32_t tid;
    uint32_t deep_number; /* of the sample that it is of */
    uint64_t time_ns;
    uint64_t *room;  /* owned */
    size_t capacity; /* of `room` */
    size_t count;    /* of frames, at its end */
    size_t missing;  /* of them, the last ones: all 0 */
    struct kept_chain chain;
};

static void free_stack(struct thread_frames_stack *stack)
{
    free(stack->room);
    kept_chain_done(&stack->chain);
}

static void forget_all(struct thread_frames *threads)
{
    for (size_t i = 0; i < threads->stacks.count; i++)
        free_stack(&threads->stacks.items[i]);
    threads->stacks.count = 0;
}

void thread_frames_done(struct thread_frames *threads)
{
    forget_all(threads);
    vector_done(&threads->stacks);
    hashtable_done(&threads->by_tid);
}

/* Without memory for that all are forgotten. */
static int forget_old(struct thread_frames *threads, uint64_t now_ns)
{
    size_t count = 0;
    int result = 0;
    hashtable_done(&threads->by_tid);
    for (size_t i = 0; i < threads->stacks.count; i++) {
        struct thread_frames_stack *stack = &threads->stacks.items[i];
        if (now_ns > stack->time_ns + PAUSE_NS) {
            free_stack(stack);
            continue;
        }
        if (result == 0)
            result = hashtable_add(&threads->by_tid, hash_u64(stack->tid), count);
        threads->stacks.items[count++] = *stack;
    }
    threads->stacks.count = count;
    threads->most = count < FIRST_MOST / 2 ? FIRST_MOST : 2 * count;
    if (result < 0)
        forget_all(threads);
    return result;
}

static struct thread_frames_stack *stack_of(struct thread_frames *threads,
                                            const struct ring_record *record)
{
    uint64_t number, hash = hash_u64(record->tid);
    if (hashtable_get(&threads->by_tid, hash, &number) && number < threads->stacks.count)
        return &threads->stacks.items[number];
    if (threads->stacks.count >= threads->most && forget_old(threads, record->time_ns) < 0)
        return NULL;
    number = threads->stacks.count;
    if (vector_reserve(&threads->stacks, number + 1) < 0 ||
        hashtable_set(&threads->by_tid, hash, number) < 0)
        return NULL;
    threads->stacks.items[number] = (struct thread_frames_stack){.tid = record->tid};
    threads->stacks.count++;
    return &threads->stacks.items[number];
}

static uint64_t resolve(const struct thread_frames *threads, uint64_t frame)
{
    return frame & SAMPLE_FRAME_BORDER ? frame : threads->resolve(threads->context, frame);
}

static uint64_t *innermost(const struct thread_frames_stack *stack)
{
    return stack->room + (stack->capacity - stack->count);
}

/* Room for `wanted` frames in all, and some in any case. 0 or -ENOMEM. */
static int reserve(struct thread_frames_stack *stack, size_t wanted)
{
    if (stack->room && wanted <= stack->capacity)
        return 0;
    size_t capacity = wanted + wanted / 2 + 1;
    uint64_t *room = malloc(capacity * sizeof *room);
    if (!room)
        return -ENOMEM;
    if (stack->count)
        memcpy(room + (capacity - stack->count), innermost(stack), stack->count * sizeof *room);
    free(stack->room);
    stack->room = room;
    stack->capacity = capacity;
    return 0;
}

/* Of the sample before what this one keeps. There is room. */
static void keep(struct thread_frames_stack *stack, const struct ring_record_sample *sample)
{
    size_t kept = sample->kept_frames;
    bool is_missing = stack->deep_number + 1 != sample->deep_number || kept > stack->count;
    stack->count = kept;
    if (is_missing) {
        stack->missing = kept;
        for (size_t i = 0; i < kept; i++)
            innermost(stack)[i] = 0;
    }
    if (stack->missing > kept)
        stack->missing = kept;
}

static void add(const struct thread_frames *threads, struct thread_frames_stack *stack,
                const struct ring_record_sample *sample)
{
    uint64_t last_frame = 0, last_resolved = 0; /* recursion has the same over and over */
    stack->count += sample->frame_count;
    uint64_t *resolved = innermost(stack);
    for (size_t i = 0; i < sample->frame_count; i++) {
        uint64_t frame = *(const volatile uint64_t *)&sample->frames[i];
        if (frame != last_frame)
            last_resolved = resolve(threads, frame);
        last_frame = frame;
        resolved[i] = last_resolved;
    }
}

/* The frames of the sample itself. */
static size_t take_own(const struct thread_frames *threads, const struct ring_record_sample *sample,
                       uint64_t *room, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < sample->frame_count && count < capacity; i++) {
        room[count] = resolve(threads, *(const volatile uint64_t *)&sample->frames[i]);
        count += room[count] != 0;
    }
    return count;
}

void thread_frames_take(struct thread_frames *threads, const struct ring_record *record,
                        uint64_t *room, size_t capacity, struct thread_frames_taken *ret_taken)
{
    const struct ring_record_sample *sample = &record->sample;
    struct thread_frames_stack *stack = sample->deep_number ? stack_of(threads, record) : NULL;
    if (!stack || reserve(stack, sample->kept_frames + sample->frame_count) < 0) {
        *ret_taken =
            (struct thread_frames_taken){.items = room,
                                         .count = take_own(threads, sample, room, capacity),
                                         .is_cut = sample->kept_frames > 0};
        return;
    }
    keep(stack, sample);
    add(threads, stack, sample);
    stack->deep_number = sample->deep_number;
    stack->time_ns = record->time_ns;
    const uint64_t *items = innermost(stack);
    size_t count = stack->count;
    while (count > 0 && !items[count - 1])
        count--;
    *ret_taken =
        (struct thread_frames_taken){.items = items,
                                     .count = count,
                                     .same = count == stack->count ? sample->kept_frames : 0,
                                     .is_cut = stack->missing > 0,
                                     .chain = &stack->chain};
}
