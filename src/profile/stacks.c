/* A program does the same over and over: of a million chains most have been seen before, address by
 * address. So a chain is first looked up as a whole, by a hash of 96 bits over its address space
 * and its addresses (two different chains of one hash are not to be expected in the lifetime of
 * this program, and would do no harm but a wrong line). Only a new chain is resolved, and entered
 * into the tree from its outermost frame on:
 *
 *     stacks     0 root
 *                1 _start         parent 0
 *                2 main           parent 1
 *                3 work           parent 2
 *                4 idle           parent 2
 *
 * Markers in a chain say which of kernel and user the addresses behind them are of. A marker that
 * is none of those makes the chain worthless, as in perf. */
#include "profile/stacks.h"

#include "base/hashtable.h"
#include "profile/classify.h"

int stacks_init(struct stacks *stacks, struct profile *profile, struct resolver *resolver,
                struct stacks_limit limit)
{
    *stacks = (struct stacks){.profile = profile, .resolver = resolver, .limit = limit};
    struct profile_stack root = {.parent = PROFILE_NONE, .frame = PROFILE_NONE};
    return vector_push(&profile->stacks, root);
}

void stacks_done(struct stacks *stacks)
{
    pairmap_done(&stacks->by_frame);
    pairmap_done(&stacks->by_chain);
    vector_done(&stacks->results);
    vector_done(&stacks->frames);
    vector_done(&stacks->path);
}

struct hash {
    uint64_t high;
    uint32_t low;
};

static inline uint64_t mix(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9fb21c651e98df25u;
    return hash ^ hash >> 29;
}

static struct hash hash_chain(const struct stacks_chain *chain)
{
    uint64_t modes = (uint64_t)chain->is_kernel | (uint64_t)chain->has_callers << 1 |
                     (uint64_t)chain->is_unwound << 2 | (uint64_t)chain->has_end << 3 |
                     (uint64_t)chain->end << 4;
    uint64_t a = mix(chain->task->space, chain->ip_avma), b = mix(modes, chain->count);
    for (size_t i = 0; i < chain->count; i++) {
        a = mix(a, chain->entries[i]);
        b = (b + chain->entries[i]) * 0xc2b2ae3d27d4eb4fu;
        b = b << 31 | b >> 33;
    }
    return (struct hash){.high = hash_u64(a), .low = (uint32_t)(b ^ b >> 32)};
}

static int resolve_entry(struct stacks *stacks, const struct stacks_chain *chain, uint64_t avma,
                         bool is_kernel)
{
    struct resolve_place place = {
        .task = chain->task, .avma = avma, .time_ns = chain->time_ns, .is_kernel = is_kernel};
    uint32_t frame;
    int error = resolve(stacks->resolver, &place, &frame);
    return error < 0 ? error : vector_push(&stacks->frames, frame);
}

size_t stacks_excess(struct stacks_limit limit, const uint64_t *entries, size_t count)
{
    size_t frames = 0;
    for (size_t i = 0; limit.outermost && i < count; i++)
        frames += !perfdata_is_marker(entries[i]);
    return frames > limit.most ? frames - limit.most : 0;
}

/* Resolves all entries into stacks->frames. 1: the chain was longer than allowed. */
static int resolve_entries(struct stacks *stacks, const struct stacks_chain *chain)
{
    bool is_kernel = false;
    size_t limit = SIZE_MAX, excess = 0;
    if (!chain->is_unwound) {
        limit = stacks->limit.most;
        excess = stacks_excess(stacks->limit, chain->entries, chain->count);
    }
    size_t skip = excess;
    stacks->frames.count = 0;
    for (size_t i = 0; i < chain->count; i++) {
        uint64_t entry = chain->entries[i];
        if (entry == (uint64_t)PERF_CONTEXT_KERNEL || entry == (uint64_t)PERF_CONTEXT_HV) {
            is_kernel = true;
        } else if (entry == (uint64_t)PERF_CONTEXT_USER) {
            is_kernel = false;
        } else if (perfdata_is_marker(entry)) {
            stacks->frames.count = 0;
            return 0;
        } else if (skip) {
            skip--;
        } else if (stacks->frames.count >= limit) {
            return 1;
        } else {
            int error = resolve_entry(stacks, chain, entry, is_kernel);
            if (error < 0)
                return error;
        }
    }
    return excess > 0;
}

static int add_node(struct stacks *stacks, uint32_t parent, uint32_t frame, uint32_t *ret_stack)
{
    struct profile *profile = stacks->profile;
    if (pairmap_get(&stacks->by_frame, parent, frame, ret_stack))
        return 0;
    struct profile_stack node = {
        .parent = parent, .frame = frame, .depth = profile->stacks.items[parent].depth + 1};
    if (profile->stacks.count >= UINT32_MAX - 1 || vector_push(&profile->stacks, node) < 0)
        return -ENOMEM;
    *ret_stack = (uint32_t)(profile->stacks.count - 1);
    return pairmap_set(&stacks->by_frame, parent, frame, *ret_stack);
}

/* Enters a frame and, on top of it, what is inlined there: in the table the innermost comes first,
 * the one that is not inlined last. */
static int add_frames(struct stacks *stacks, uint32_t parent, uint32_t innermost,
                      uint32_t *ret_stack)
{
    const struct profile_frame *frames = stacks->profile->frames.items;
    uint32_t frame = innermost;
    while (frames[frame].is_inlined)
        frame++;
    *ret_stack = parent;
    for (;; frame--) {
        int error = add_node(stacks, *ret_stack, frame, ret_stack);
        if (error < 0 || frame == innermost)
            return error;
    }
}

static int add_tree(struct stacks *stacks, uint32_t *ret_stack)
{
    size_t count = stacks->frames.count, known = 0;
    *ret_stack = PROFILE_ROOT;
    while (known < count && known < stacks->path.count &&
           stacks->path.items[known].frame == stacks->frames.items[count - 1 - known])
        *ret_stack = stacks->path.items[known++].stack;
    stacks->path.count = known;
    for (size_t i = count - known; i-- > 0;) {
        struct stacks_step step = {.frame = stacks->frames.items[i]};
        int error = add_frames(stacks, *ret_stack, step.frame, &step.stack);
        if (error < 0 || vector_push(&stacks->path, step) < 0)
            return -ENOMEM;
        *ret_stack = step.stack;
    }
    return 0;
}

/* The frame at a place, counted from the outermost: 0. */
static const struct profile_frame *frame_from_outside(const struct stacks *stacks, size_t place)
{
    return &stacks->profile->frames.items[stacks->frames.items[stacks->frames.count - 1 - place]];
}

static const char *name_of(const struct profile *profile, const struct profile_frame *frame)
{
    return profile_text(profile, profile->functions.items[frame->function].name);
}

/* Whether stacks start with the outermost function, by its name. A program may have none: then that
 * of what it called tells, libc's __libc_start_main. */
static bool is_at_start(const struct stacks *stacks)
{
    const char *name = name_of(stacks->profile, frame_from_outside(stacks, 0));
    if (!*name && stacks->frames.count > 1)
        name = name_of(stacks->profile, frame_from_outside(stacks, 1));
    return classify_is_outermost(name);
}

/* The unwinder and our recorder say how a chain ended. One of the kernel does not: it did well if
 * its outermost function is one in which stacks start, or if it never left the kernel. */
static enum profile_stack_end judge(const struct stacks *stacks, const struct stacks_chain *chain,
                                    bool was_cut)
{
    if (chain->is_unwound)
        return chain->end;
    if (was_cut || (!chain->has_end && stacks->frames.count >= stacks->limit.most))
        return PROFILE_STACK_TRUNCATED;
    if (!stacks->frames.count)
        return PROFILE_STACK_BROKEN;
    if (chain->has_end)
        return chain->end;
    bool is_well = frame_from_outside(stacks, 0)->is_kernel || is_at_start(stacks);
    return is_well ? PROFILE_STACK_COMPLETE : PROFILE_STACK_BROKEN;
}

static int make(struct stacks *stacks, const struct stacks_chain *chain,
                struct stacks_result *ret_result)
{
    stacks->frames.count = 0;
    int error = resolve_entry(stacks, chain, chain->ip_avma, chain->is_kernel);
    if (error < 0)
        return error;
    const struct profile_frame *frames = stacks->profile->frames.items;
    uint32_t leaf = stacks->frames.items[0];
    ret_result->end = PROFILE_STACK_NONE;
    if (chain->has_callers) {
        int result = resolve_entries(stacks, chain);
        if (result < 0)
            return result;
        ret_result->end = (uint8_t)judge(stacks, chain, result == 1);
        frames = stacks->profile->frames.items;
    }
    while (frames[leaf].is_inlined)
        leaf++;
    ret_result->leaf = leaf + frames[leaf].is_call;
    return add_tree(stacks, &ret_result->stack);
}

int stacks_add(struct stacks *stacks, const struct stacks_chain *chain,
               struct stacks_result *ret_result)
{
    struct hash hash = hash_chain(chain);
    uint32_t known;
    if (pairmap_get(&stacks->by_chain, hash.high, hash.low, &known)) {
        *ret_result = stacks->results.items[known];
        return 0;
    }
    stacks->resolver->is_momentary = false;
    int error = make(stacks, chain, ret_result);
    if (error < 0 || stacks->resolver->is_momentary)
        return error;
    if (stacks->results.count >= UINT32_MAX - 1 || vector_push(&stacks->results, *ret_result) < 0)
        return -ENOMEM;
    return pairmap_set(&stacks->by_chain, hash.high, hash.low,
                       (uint32_t)(stacks->results.count - 1));
}
