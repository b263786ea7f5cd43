/* A stack is kept with its outermost frame first: what a sample keeps of it is its beginning, and
 * what the sample has comes behind that.
 *
 * A sample says which one it follows. If that was not taken here, for whatever reason, the frames
 * that it kept are missing: nothing stands for them, until the thread tells all again.
 *
 * Threads don't tell when they end. Since all frames are told after a pause, a stack of which
 * nothing was heard for longer is of no more use. */
#include "record/thread_frames.h"

enum { NS_PER_SECOND = 1000000000, FIRST_MOST = 64 };

static const uint64_t PAUSE_NS = (uint64_t)2 * SAMPLE_DEEP_SECONDS * NS_PER_SECOND;

struct thread_frames_stack {
    uint32_t tid;
    uint32_t deep_number; /* of the sample that it is of */
    uint64_t time_ns;
    VECTOR(uint64_t) resolved;
    size_t missing; /* of them, the first ones: all 0 */
};

static void forget_all(struct thread_frames *threads)
{
    for (size_t i = 0; i < threads->stacks.count; i++)
        vector_done(&threads->stacks.items[i].resolved);
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
            vector_done(&stack->resolved);
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

/* Of the sample before what this one keeps. There is room. */
static void keep(struct thread_frames_stack *stack, const struct ring_record_sample *sample)
{
    size_t kept = sample->kept_frames;
    if (stack->deep_number + 1 != sample->deep_number || kept > stack->resolved.count) {
        stack->missing = kept;
        for (size_t i = 0; i < kept; i++)
            stack->resolved.items[i] = 0;
    }
    if (stack->missing > kept)
        stack->missing = kept;
    stack->resolved.count = kept;
}

static void add(const struct thread_frames *threads, struct thread_frames_stack *stack,
                const struct ring_record_sample *sample)
{
    uint64_t last_frame = 0, last_resolved = 0; /* recursion has the same over and over */
    for (size_t i = sample->frame_count; i-- > 0;) {
        uint64_t frame = *(const volatile uint64_t *)&sample->frames[i];
        if (frame != last_frame)
            last_resolved = resolve(threads, frame);
        last_frame = frame;
        stack->resolved.items[stack->resolved.count++] = last_resolved;
    }
}

static size_t put(const struct thread_frames_stack *stack, uint64_t *ret_frames, size_t capacity)
{
    size_t count = 0;
    for (size_t i = stack->resolved.count; i-- > 0 && count < capacity;) {
        ret_frames[count] = stack->resolved.items[i];
        count += ret_frames[count] != 0;
    }
    return count;
}

/* The frames of the sample itself. */
static size_t take_own(const struct thread_frames *threads, const struct ring_record_sample *sample,
                       uint64_t *ret_frames, size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < sample->frame_count && count < capacity; i++) {
        ret_frames[count] = resolve(threads, *(const volatile uint64_t *)&sample->frames[i]);
        count += ret_frames[count] != 0;
    }
    return count;
}

size_t thread_frames_take(struct thread_frames *threads, const struct ring_record *record,
                          uint64_t *ret_frames, size_t capacity, bool *ret_is_cut)
{
    const struct ring_record_sample *sample = &record->sample;
    struct thread_frames_stack *stack = sample->deep_number ? stack_of(threads, record) : NULL;
    if (!stack || vector_reserve(&stack->resolved, sample->kept_frames + sample->frame_count) < 0) {
        *ret_is_cut = sample->kept_frames > 0;
        return take_own(threads, sample, ret_frames, capacity);
    }
    keep(stack, sample);
    add(threads, stack, sample);
    stack->deep_number = sample->deep_number;
    stack->time_ns = record->time_ns;
    *ret_is_cut = stack->missing > 0;
    return put(stack, ret_frames, capacity);
}
