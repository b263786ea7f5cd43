/* The merged chain of a thread's last deep sample. Of the next one only the inner part is merged:
 * where both its stacks are as they were before, the chain goes on as it did. */
#ifndef PITVIPER_RECORD_KEPT_CHAIN_H
#define PITVIPER_RECORD_KEPT_CHAIN_H

#include "record/known_stacks.h"
#include "record/merge.h"

/* A zeroed one is valid and empty. */
struct kept_chain {
    uint64_t *room;           /* with the chain at its end; NULL: none yet; owned */
    struct merge_steps steps; /* outermost first, each with what lies behind it */
    struct merge_steps inner; /* room: those of the part that is merged */
    /* Ranges that were known then; they only become more. */
    size_t evaluator_count, trampoline_count;
    uint32_t stack_version; /* of the known stack that the C functions end in */
    size_t stack_left;      /* C functions of it */
};

void kept_chain_done(struct kept_chain *kept);

/* What a deep sample's stacks are made of. */
struct kept_chain_stacks {
    struct merge_stacks *merge;   /* all but the C functions: these get there */
    struct unwind_frames *native; /* the C functions, those that are known not appended yet */
    struct known_joint joint;     /* where they are known; stack NULL: none are */
    size_t same_frames;           /* at the end, as in the thread's deep sample before */
};

/* The same as merge(), with what is kept of the thread's deep sample before; every one must come
 * here. result->entries may be another array afterwards, valid until the next call, with
 * RECORDING_FRONT entries before it that may be written to; the capacity is RECORDING_CHAIN_MOST at
 * most. Not all C functions need be in `native`. */
enum merge_verdict kept_chain_merge(struct kept_chain *kept, const struct kept_chain_stacks *stacks,
                                    struct merge_result *result);

#endif
