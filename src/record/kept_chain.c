/* merge() walks over both stacks from the innermost function on. When it comes to a group of Python
 * frames, what it will put out from there on depends on what lies behind in both stacks, and on
 * nothing that was before, if all is in order: each group has an evaluator, and behind that point
 * each evaluator a group. So the steps of a walk are kept, and of the next sample's stacks only
 * what lies before a step that both have is merged:
 *
 *     C functions   | others           | as before       |
 *     frames        | others       | as before           |
 *                                      ^ the innermost step behind which both are the same
 *     chain         | merged           | stays in place  |
 *
 * The walk must come to just that step. If it does not, or anything is not in order, the stacks are
 * merged as a whole.
 *
 * By their addresses borders are found between the CFA of a function and that of the one before: so
 * the function before a step must have its CFA as before, too. It has, being in the known stack or
 * the one that is joined with it. */
#include "record/kept_chain.h"

#include "base/vector.h"
#include "record/recording.h"

#include <string.h>

enum { ROOM = RECORDING_FRONT + RECORDING_CHAIN_MOST };

void kept_chain_done(struct kept_chain *kept)
{
    free(kept->room);
    vector_done(&kept->steps);
    vector_done(&kept->inner);
    *kept = (struct kept_chain){0};
}

/* The innermost step behind which both stacks are as before, NULL when there is none. Steps before
 * it are dropped. */
static const struct merge_step *find_step(struct kept_chain *kept,
                                          const struct kept_chain_stacks *stacks)
{
    struct known_joint joint = stacks->joint;
    size_t natives = joint.left < kept->stack_left ? joint.left : kept->stack_left;
    if (!joint.stack || !stacks->merge->is_complete || joint.version != kept->stack_version ||
        stacks->merge->evaluator_count != kept->evaluator_count ||
        stacks->merge->trampoline_count != kept->trampoline_count)
        kept->steps.count = 0;
    for (; kept->steps.count; kept->steps.count--) {
        const struct merge_step *step = &kept->steps.items[kept->steps.count - 1];
        /* There is a group before it, or the walk would not come to it. */
        if (step->natives <= natives && step->frames <= stacks->same_frames &&
            step->frames < stacks->merge->frame_count)
            return step;
    }
    return NULL;
}

/* Puts what was merged before the rest that is kept, which is all 0 if there is none. */
static void keep(struct kept_chain *kept, const struct merge_stacks *stacks, struct merge_step rest,
                 struct merge_result *result)
{
    uint64_t *start = kept->room + ROOM - rest.entries - result->count;
    memcpy(start, result->entries, result->count * sizeof *start);
    result->entries = start;
    result->count += rest.entries;
    for (size_t i = kept->inner.count; i-- > 0;) {
        struct merge_step step = kept->inner.items[i];
        if (step.skipped != result->skipped)
            break; /* an evaluator without a group lies behind */
        step.natives = (uint32_t)stacks->count - step.natives;
        step.frames = (uint32_t)stacks->frame_count - step.frames;
        step.entries = (uint32_t)result->count - step.entries;
        if (vector_push(&kept->steps, step) < 0)
            break;
    }
}

/* Merges what lies before a step. False when that does not lead to the step. */
static bool extend(struct kept_chain *kept, const struct merge_stacks *stacks,
                   struct merge_step rest, struct merge_result *result,
                   enum merge_verdict *ret_verdict)
{
    struct merge_stacks inner = *stacks;
    inner.count -= rest.natives;
    inner.frame_count -= rest.frames;
    inner.is_inner = true;
    struct merge_result part = *result;
    part.on_evaluator = NULL; /* it would learn nothing if all is in order, else too much */
    *ret_verdict = merge(&inner, &part);
    if (!part.is_regular || part.passed != inner.count || part.is_cut ||
        part.count + rest.entries > part.capacity)
        return false;
    keep(kept, stacks, rest, &part);
    result->entries = part.entries;
    result->count = part.count;
    result->is_cut = false;
    return true;
}

enum merge_verdict kept_chain_merge(struct kept_chain *kept, const struct kept_chain_stacks *stacks,
                                    struct merge_result *result)
{
    struct unwind_frames *native = stacks->native;
    struct merge_stacks *whole = stacks->merge;
    enum merge_verdict verdict;
    whole->pcs = native->pcs;
    whole->cfas = native->cfas;
    whole->count = native->count + stacks->joint.left;
    result->steps = &kept->inner;
    const struct merge_step *step = find_step(kept, stacks);
    kept->stack_version = stacks->joint.version;
    kept->stack_left = stacks->joint.left;
    kept->evaluator_count = whole->evaluator_count;
    kept->trampoline_count = whole->trampoline_count;
    if (step) {
        known_stacks_append(stacks->joint, native, whole->count - step->natives);
        if (extend(kept, whole, *step, result, &verdict))
            return verdict;
    }
    known_stacks_append(stacks->joint, native, whole->count);
    verdict = merge(whole, result);
    kept->steps.count = 0;
    if (!stacks->joint.stack || !whole->is_complete)
        return verdict;
    if (!kept->room)
        kept->room = malloc(ROOM * sizeof *kept->room);
    if (kept->room && result->is_regular && !result->is_cut)
        keep(kept, whole, (struct merge_step){0}, result);
    return verdict;
}
