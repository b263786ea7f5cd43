/* A thread's samples come in the order in which they were taken. So once there is one that is later
 * than the time when the thread was told, none that follows can speak of what was told before that:
 * two stacks are kept for each thread, and the next one is told when the older is of no more use. A
 * stack that a sample can't be joined with is taken back in the same way: an empty one is told.
 *
 * Frames have numbers from the innermost on, landmarks from the outermost:
 *
 *     frames        0  1  2 ... n-2 n-1        n: frames with a CFA, which are all or all but the
 *     landmarks   n-1 n-2   ...   1   0        outermost one */
#include "record/known_stacks.h"

#include "base/clock.h"
#include "base/vector.h"

#include <stdlib.h>
#include <string.h>

enum { NS_PER_SECOND = 1000000000, REGISTER_SP = 7 };

struct known_frame {
    uint64_t pc, cfa;
    uint64_t word; /* the return address: the landmark */
};

struct known_stack {
    uint32_t version; /* 0: none */
    uint64_t end_avma;
    size_t marked; /* frames with a CFA */
    VECTOR(struct known_frame) frames;
};

struct known_table {
    uint32_t tid; /* 0: free */
    uint64_t used_ns, told_ns;
    struct known_stack now, before;
};

struct known_tables {
    uint32_t version; /* the last one of all: they are told apart in all tables */
    struct known_table tables[SAMPLE_RING_TABLES];
    struct sample_landmark marks[SAMPLE_LANDMARKS_MOST]; /* to be told */
};

void known_stacks_done(struct known_stacks *stacks)
{
    for (size_t i = 0; stacks->all && i < SAMPLE_RING_TABLES; i++) {
        vector_done(&stacks->all->tables[i].now.frames);
        vector_done(&stacks->all->tables[i].before.frames);
    }
    free(stacks->all);
    *stacks = (struct known_stacks){0};
}

struct sample_known_stack known_stacks_take(struct ring_record_sample *sample)
{
    struct sample_known_stack known = {0};
    if (sample->stack_bytes < sizeof known)
        return known;
    sample->stack_bytes -= sizeof known;
    memcpy(&known, sample->stack + sample->stack_bytes, sizeof known);
    return known;
}

static struct known_table *find_table(const struct known_stacks *stacks, uint32_t tid)
{
    for (size_t i = 0; stacks->all && i < SAMPLE_RING_TABLES; i++)
        if (stacks->all->tables[i].tid == tid)
            return &stacks->all->tables[i];
    return NULL;
}

static const struct known_stack *find_stack(const struct known_table *table, uint64_t version)
{
    if (!table || !version)
        return NULL;
    return table->now.version == version      ? &table->now
           : table->before.version == version ? &table->before
                                              : NULL;
}

/* The frame with this CFA, from `first` on; `stack->marked` when there is none. */
static size_t find_frame(const struct known_stack *stack, size_t first, uint64_t cfa)
{
    size_t behind = stack->marked;
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (stack->frames.items[middle].cfa == cfa)
            return middle;
        if (stack->frames.items[middle].cfa < cfa)
            first = middle + 1;
        else
            behind = middle;
    }
    return stack->marked;
}

/* The outermost function that was unwound must be a known one: what held lies behind it. */
static struct known_joint find_joint(const struct known_stack *stack, size_t held,
                                     const struct unwind_frames *frames)
{
    size_t first = held < stack->marked ? stack->marked - held : 0, last = frames->count;
    while (last > 0 && !frames->cfas[last - 1])
        last--;
    size_t known = last ? find_frame(stack, first, frames->cfas[last - 1]) : stack->marked;
    if (known == stack->marked)
        return (struct known_joint){0};
    return (struct known_joint){.stack = stack,
                                .unwound = last - 1,
                                .known = known,
                                .left = stack->frames.count - known - 1,
                                .version = stack->version};
}

void known_stacks_append(struct known_joint joint, struct unwind_frames *frames, size_t count)
{
    for (; frames->count < count; frames->count++) {
        size_t number = joint.known + (frames->count - joint.unwound);
        frames->pcs[frames->count] = joint.stack->frames.items[number].pc;
        frames->cfas[frames->count] = joint.stack->frames.items[number].cfa;
    }
}

/* Tells a thread of a stack, which becomes the one it knows now. */
static void publish(struct known_tables *all, struct sample_ring *ring, struct known_table *table,
                    struct known_stack stack)
{
    size_t number = (size_t)(table - all->tables);
    size_t count = stack.marked < SAMPLE_LANDMARKS_MOST ? stack.marked : SAMPLE_LANDMARKS_MOST;
    for (size_t i = 0; i < count; i++) {
        const struct known_frame *frame = &stack.frames.items[stack.marked - 1 - i];
        all->marks[i] = (struct sample_landmark){
            .depth = (uint32_t)(stack.end_avma - frame->cfa + sizeof(uint64_t)),
            .word = (uint32_t)frame->word};
    }
    all->version += 2;
    bool is_told = sample_landmarks_publish(ring, number, table->tid, all->version, stack.end_avma,
                                            all->marks, count);
    stack.version = is_told ? all->version : 0;
    table->told_ns = clock_ns(CLOCK_MONOTONIC);
    table->before = table->now;
    table->now = stack;
}

struct known_joint known_stacks_join(struct known_stacks *stacks, struct sample_ring *ring,
                                     const struct ring_record *record,
                                     struct sample_known_stack known, struct unwind_frames *frames,
                                     enum unwind_end *end)
{
    struct known_joint joint = {0};
    struct known_table *table = find_table(stacks, record->tid);
    const struct known_stack *stack = find_stack(table, known.version);
    *end = UNWIND_BROKEN;
    if (!stack)
        return joint;
    table->used_ns = record->time_ns;
    joint = find_joint(stack, known.count, frames);
    if (joint.stack) {
        size_t room = frames->capacity - joint.unwound - 1;
        *end = joint.left > room ? UNWIND_TRUNCATED : UNWIND_COMPLETE;
        joint.left = joint.left > room ? room : joint.left;
        frames->count = joint.unwound + 1;
    } else if (record->time_ns > table->told_ns) {
        struct known_stack nothing = {.frames = table->before.frames};
        nothing.frames.count = 0;
        publish(stacks->all, ring, table, nothing);
    }
    return joint;
}

/* A table for a thread: its own, a free one, or one that was not used for long. NULL: none. */
static struct known_table *claim_table(struct known_stacks *stacks, uint32_t tid, uint64_t now_ns)
{
    if (!stacks->all)
        stacks->all = calloc(1, sizeof *stacks->all);
    if (!stacks->all || !tid)
        return NULL;
    struct known_table *table = find_table(stacks, tid);
    if (!table)
        table = find_table(stacks, 0);
    for (size_t i = 0; !table && i < SAMPLE_RING_TABLES; i++)
        if (now_ns > stacks->all->tables[i].used_ns + NS_PER_SECOND)
            table = &stacks->all->tables[i];
    if (table && table->tid != tid) {
        table->tid = tid;
        table->told_ns = 0;
        table->now.version = table->before.version = 0;
    }
    return table;
}

/* The word at `place`, of the copy of the stack. */
static bool read_copy(const struct ring_record_sample *sample, uint64_t place, uint64_t *ret_word)
{
    uint64_t offset = place - sample->registers[REGISTER_SP];
    if (offset > sample->stack_bytes || sample->stack_bytes - offset < sizeof *ret_word)
        return false;
    memcpy(ret_word, sample->stack + offset, sizeof *ret_word);
    return true;
}

/* The landmark of an unwound frame. False when its return address is somewhere else, as that of a
 * signal's handler is. */
static bool find_word(const struct ring_record_sample *sample, const struct unwind_frames *frames,
                      size_t number, uint64_t *ret_word)
{
    if (!read_copy(sample, frames->cfas[number] - sizeof(uint64_t), ret_word))
        return false;
    if (number + 1 == frames->count)
        return true;
    uint64_t caller = frames->pcs[number + 1]; /* exact in what the kernel calls, else one before */
    return *ret_word == caller || *ret_word - 1 == caller;
}

/* False when the frames are not as those of a stack should be. */
static bool collect(struct known_stack *stack, const struct ring_record_sample *sample,
                    const struct unwind_frames *frames, struct known_joint joint)
{
    stack->frames.count = stack->marked = 0;
    if (vector_reserve(&stack->frames, frames->count) < 0)
        return false;
    uint64_t last = 0;
    for (size_t i = 0; i < frames->count; i++) {
        struct known_frame frame = {.pc = frames->pcs[i], .cfa = frames->cfas[i]};
        if (joint.stack && i >= joint.unwound)
            frame.word = joint.stack->frames.items[joint.known + (i - joint.unwound)].word;
        else if (frame.cfa && !find_word(sample, frames, i, &frame.word))
            return false;
        if (!frame.cfa && i + 1 < frames->count)
            return false;
        if (frame.cfa && (frame.cfa <= last || frame.cfa > stack->end_avma || frame.cfa % 8))
            return false;
        last = frame.cfa;
        stack->marked += frame.cfa != 0;
        stack->frames.items[stack->frames.count++] = frame;
    }
    return stack->marked > 0 && stack->end_avma - stack->frames.items[0].cfa < UINT32_MAX - 8;
}

void known_stacks_tell(struct known_stacks *stacks, struct sample_ring *ring,
                       const struct ring_record *record, struct unwind_frames *frames,
                       struct known_joint joint)
{
    const struct ring_record_sample *sample = &record->sample;
    size_t least = joint.stack ? 2 * SAMPLE_LANDMARKS_MARGIN_BYTES : SAMPLE_LANDMARKS_LEAST_BYTES;
    if (sample->stack_bytes < least ||
        !(record->flags & (SAMPLE_STACK_WHOLE | SAMPLE_STACK_KNOWN)) ||
        record->flags & SAMPLE_TWO_STACKS)
        return;
    struct known_table *table = claim_table(stacks, record->tid, record->time_ns);
    if (!table || record->time_ns <= table->told_ns || joint.stack == &table->before)
        return;
    table->used_ns = record->time_ns;
    table->before.version = 0; /* nobody speaks of it any more: its room is used */
    struct known_stack next = table->before;
    next.end_avma =
        joint.stack ? joint.stack->end_avma : sample->registers[REGISTER_SP] + sample->stack_bytes;
    if (joint.stack)
        known_stacks_append(joint, frames, joint.unwound + 1 + joint.left);
    bool is_stack = collect(&next, sample, frames, joint);
    table->before.frames = next.frames;
    if (is_stack)
        publish(stacks->all, ring, table, next);
}
