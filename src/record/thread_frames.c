/* A stack is kept with its outermost frame first: what a sample keeps of it is its beginning, and
 * what the sample has comes behind that. */
#include "record/thread_frames.h"

struct thread_frames_stack {
    VECTOR(uint64_t) frames;   /* as the ring has them */
    VECTOR(uint64_t) resolved; /* the same number */
    size_t unknown;            /* of them */
};

void thread_frames_done(struct thread_frames *threads)
{
    for (size_t i = 0; i < threads->stacks.count; i++) {
        vector_done(&threads->stacks.items[i].frames);
        vector_done(&threads->stacks.items[i].resolved);
    }
    vector_done(&threads->stacks);
    hashtable_done(&threads->by_tid);
}

static struct thread_frames_stack *stack_of(struct thread_frames *threads, uint32_t tid)
{
    uint64_t number;
    if (!hashtable_get(&threads->by_tid, hash_u64(tid), &number)) {
        struct thread_frames_stack empty = {0};
        number = threads->stacks.count;
        if (vector_push(&threads->stacks, empty) < 0 ||
            hashtable_set(&threads->by_tid, hash_u64(tid), number) < 0)
            return NULL;
    }
    return &threads->stacks.items[number];
}

static uint64_t resolve(const struct thread_frames *threads, uint64_t frame)
{
    return frame & SAMPLE_FRAME_BORDER ? frame : threads->resolve(threads->context, frame);
}

static void cut_to(struct thread_frames_stack *stack, size_t count)
{
    if (stack->frames.count > count)
        stack->frames.count = stack->resolved.count = count;
}

/* A function's number can come late: those that were not known may be so now. */
static void resolve_unknown(const struct thread_frames *threads, struct thread_frames_stack *stack)
{
    size_t unknown = 0;
    for (size_t i = 0; stack->unknown && i < stack->frames.count; i++) {
        if (!stack->resolved.items[i])
            stack->resolved.items[i] = resolve(threads, stack->frames.items[i]);
        unknown += !stack->resolved.items[i];
    }
    stack->unknown = unknown;
}

static int add(const struct thread_frames *threads, struct thread_frames_stack *stack,
               const struct ring_record_sample *sample)
{
    uint64_t last_frame = 0, last_resolved = 0; /* recursion has the same over and over */
    size_t count = stack->frames.count + sample->frame_count;
    if (vector_reserve(&stack->frames, count) < 0 || vector_reserve(&stack->resolved, count) < 0)
        return -ENOMEM;
    for (size_t i = sample->frame_count; i-- > 0;) {
        uint64_t frame = *(const volatile uint64_t *)&sample->frames[i];
        if (frame != last_frame || !last_resolved)
            last_resolved = resolve(threads, frame);
        last_frame = frame;
        stack->unknown += !last_resolved;
        stack->frames.items[stack->frames.count++] = frame;
        stack->resolved.items[stack->resolved.count++] = last_resolved;
    }
    return 0;
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

/* A few frames, which nobody refers to later. */
static size_t take_shallow(const struct thread_frames *threads,
                           const struct ring_record_sample *sample, uint64_t *ret_frames,
                           size_t capacity)
{
    size_t count = 0;
    for (size_t i = 0; i < sample->frame_count && count < capacity; i++) {
        uint64_t frame = *(const volatile uint64_t *)&sample->frames[i];
        ret_frames[count] = resolve(threads, frame);
        count += ret_frames[count] != 0;
    }
    return count;
}

size_t thread_frames_take(struct thread_frames *threads, uint32_t tid,
                          const struct ring_record_sample *sample, uint64_t *ret_frames,
                          size_t capacity)
{
    bool is_deep = sample->frame_count + sample->kept_frames >= SAMPLE_DEEP_FRAMES;
    struct thread_frames_stack *stack = is_deep ? stack_of(threads, tid) : NULL;
    if (!stack)
        return take_shallow(threads, sample, ret_frames, capacity);
    cut_to(stack, sample->kept_frames);
    resolve_unknown(threads, stack);
    if (add(threads, stack, sample) < 0)
        cut_to(stack, 0);
    return put(stack, ret_frames, capacity);
}
