/* From the call chain of a sample to a stack of the profile. */
#ifndef PITVIPER_PROFILE_STACKS_H
#define PITVIPER_PROFILE_STACKS_H

#include "profile/resolve.h"

/* What a chain became. */
struct stacks_result {
    uint32_t stack;
    uint32_t leaf; /* frame of the sampled address */
    uint8_t end;   /* enum profile_stack_end */
};

struct stacks_step {
    uint32_t frame; /* as resolved: the innermost where functions are inlined */
    uint32_t stack;
};

/* How much of a recorded chain is taken. */
struct stacks_limit {
    uint32_t most;  /* frames */
    bool outermost; /* that many outermost ones, else innermost */
};

/* How many frames at the beginning of a chain are too many. */
size_t stacks_excess(struct stacks_limit limit, const uint64_t *entries, size_t count);

struct stacks {
    struct profile *profile;   /* borrowed: has the table */
    struct resolver *resolver; /* borrowed */
    struct stacks_limit limit;
    struct pairmap by_frame;              /* (parent, frame) -> stack */
    struct pairmap by_chain;              /* hash of a chain -> result */
    VECTOR(struct stacks_result) results; /* of all different chains */
    VECTOR(uint32_t) frames;              /* of the chain at hand, innermost first */

    /* The chain entered last, outermost first: the next one mostly starts with the same frames. */
    VECTOR(struct stacks_step) path;
};

/* A chain as recorded. */
struct stacks_chain {
    struct task *task;
    uint64_t time_ns;
    uint64_t ip_avma; /* the sampled address */
    bool is_kernel;   /* … is the kernel's */

    /* Innermost first, with markers PERF_CONTEXT_…. `has_callers` says whether any were asked for:
     * without, the stack is the sampled address alone. */
    const uint64_t *entries;
    size_t count;
    bool has_callers;

    bool is_unwound; /* not limited again */
    bool has_end;    /* it is known how the chain ended; else that is judged by names */
    uint8_t end;     /* ... enum profile_stack_end */
};

/* Adds the root. 0 or -ENOMEM. stacks_done is needed in any case. */
int stacks_init(struct stacks *stacks, struct profile *profile, struct resolver *resolver,
                struct stacks_limit limit);
void stacks_done(struct stacks *stacks);

/* 0 or -ENOMEM. */
int stacks_add(struct stacks *stacks, const struct stacks_chain *chain,
               struct stacks_result *ret_result);

#endif
