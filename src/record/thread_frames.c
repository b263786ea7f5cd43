/* A stack stands at the end of its room, as stacks do: what a sample keeps of it stays where it is,
 * and what the sample has comes before that.
 *
 *     | free                 | of this sample    | kept of those before   |   missing
 *                            ^ innermost                      outermost ^
 *
 * A sample says which one it follows. If that was not taken here, for whatever reason, the frames
 * that it kept are missing, until the thread tells all again: they are counted, and have no room.
 *
 * Threads don't tell when they end. Since all frames are told after a pause, a stack of which
 * nothing was heard for longer is of no more use.
 *
 * Rings are hostile: a thread costs them nothing. So all room together has a limit, far above what
 * programs need. At the limit stacks stay as they are until some are old enough to be forgotten,
 * and threads for which there is no room have the frames that their samples bring. */
#include "record/thread_frames.h"

#include <string.h>

enum {
    NS_PER_SECOND = 1000000000,
    FIRST_MOST = 64,
    MOST_STACKS = 1 << 15,
    MOST_WORDS = 1 << 23,  /* of all rooms: 64 MB */
    MOST_CHAINS = 1 << 10, /* 64 kB each; without one, merging takes longer */
};

static const uint64_t PAUSE_NS = (uint64_t)2 * SAMPLE_DEEP_SECONDS * NS_PER_SECOND,
                      LOOK_NS = PAUSE_NS / 2; /* between two looks for old ones, at the limit */

struct thread_frames_stack {
    uint32_t tid;
    uint32_t deep_number; /* of the sample that it is of */
    uint64_t time_ns;
    uint64_t *room;  /* owned */
    size_t capacity; /* of `room` */
    size_t count;    /* of frames, at its end */
    size_t missing;  /* frames behind them */
    bool may_keep_chain;
    struct kept_chain chain; /* else nothing is in it */
};

static void free_stack(struct thread_frames *threads, struct thread_frames_stack *stack)
{
    threads->words -= stack->capacity;
    threads->chains -= stack->may_keep_chain;
    free(stack->room);
    kept_chain_done(&stack->chain);
}

static void forget_all(struct thread_frames *threads)
{
    for (size_t i = 0; i < threads->stacks.count; i++)
        free_stack(threads, &threads->stacks.items[i]);
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
            free_stack(threads, stack);
            continue;
        }
        if (result == 0)
            result = hashtable_add(&threads->by_tid, hash_u64(stack->tid), count);
        threads->stacks.items[count++] = *stack;
    }
    threads->stacks.count = count;
    threads->most = count < FIRST_MOST / 2 ? FIRST_MOST : 2 * count;
    threads->is_full = false;
    threads->next_look_ns = now_ns + LOOK_NS;
    if (result < 0)
        forget_all(threads);
    return result;
}

/* Each look is paid for by as many new stacks as there were, or by time. */
static bool has_to_look(const struct thread_frames *threads, uint64_t now_ns)
{
    return threads->is_full ? now_ns >= threads->next_look_ns
                            : threads->stacks.count >= threads->most;
}

/* NULL when there is no room for another one. */
static struct thread_frames_stack *stack_of(struct thread_frames *threads,
                                            const struct ring_record *record)
{
    uint64_t number, hash = hash_u64(record->tid);
    if (has_to_look(threads, record->time_ns) && forget_old(threads, record->time_ns) < 0)
        return NULL;
    if (hashtable_get(&threads->by_tid, hash, &number) && number < threads->stacks.count)
        return &threads->stacks.items[number];
    number = threads->stacks.count;
    threads->is_full |= number >= MOST_STACKS;
    if (number >= MOST_STACKS || vector_reserve(&threads->stacks, number + 1) < 0 ||
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

/* Room for so many more frames, and some in any case. 0 or -ENOMEM. */
static int reserve(struct thread_frames *threads, struct thread_frames_stack *stack, size_t more)
{
    size_t wanted = stack->count + more, capacity = wanted + wanted / 2 + 1;
    if (stack->room && wanted <= stack->capacity)
        return 0;
    if (threads->words - stack->capacity + capacity > MOST_WORDS) {
        threads->is_full = true;
        return -ENOMEM;
    }
    uint64_t *room = malloc(capacity * sizeof *room);
    if (!room)
        return -ENOMEM;
    if (stack->count)
        memcpy(room + (capacity - stack->count), innermost(stack), stack->count * sizeof *room);
    free(stack->room);
    threads->words += capacity - stack->capacity;
    stack->room = room;
    stack->capacity = capacity;
    return 0;
}

/* Of the sample before what this one keeps. */
static void keep(struct thread_frames_stack *stack, const struct ring_record_sample *sample)
{
    size_t kept = sample->kept_frames;
    if (stack->deep_number + 1 != sample->deep_number || kept > stack->count + stack->missing ||
        kept < stack->missing)
        stack->missing = kept;
    stack->count = kept - stack->missing;
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

/* NULL when others have all there are. */
static struct kept_chain *chain_of(struct thread_frames *threads, struct thread_frames_stack *stack)
{
    if (!stack->may_keep_chain && threads->chains < MOST_CHAINS) {
        stack->may_keep_chain = true;
        threads->chains++;
    }
    return stack->may_keep_chain ? &stack->chain : NULL;
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
    if (stack)
        keep(stack, sample);
    if (!stack || reserve(threads, stack, sample->frame_count) < 0) {
        *ret_taken =
            (struct thread_frames_taken){.items = room,
                                         .count = take_own(threads, sample, room, capacity),
                                         .is_cut = sample->kept_frames > 0};
        return;
    }
    add(threads, stack, sample);
    stack->deep_number = sample->deep_number;
    stack->time_ns = record->time_ns;
    const uint64_t *items = innermost(stack);
    size_t count = stack->count;
    while (count > 0 && !items[count - 1])
        count--;
    bool is_whole = count == stack->count && !stack->missing;
    *ret_taken = (struct thread_frames_taken){.items = items,
                                              .count = count,
                                              .same = is_whole ? sample->kept_frames : 0,
                                              .is_cut = stack->missing > 0,
                                              .chain = chain_of(threads, stack)};
}
