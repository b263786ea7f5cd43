/* One walk over both lists, since both go from the innermost to the outermost. For each group of
 * Python frames that ends in a border the C function is found at or behind the last one found. What
 * finds none stays in the order it has: if its border lies behind the last C function that is known
 * (the stack was cut off) behind all of them, otherwise where the walk is. */
#include "record/merge.h"

#include "base/vector.h"
#include "formats/sample_ring.h"

struct walk {
    const struct merge_stacks *stacks;
    struct merge_result *result;
    size_t next;            /* C function that has not been put out yet */
    size_t evaluator_count; /* in result->evaluators */
    size_t next_evaluator;  /* the first of them from `next` on */
    size_t skipped;         /* evaluators among those put out that had no group */
    size_t unplaced;        /* groups that found no C function */
    bool is_behind_group;   /* the last C function that was put out is the evaluator of one */
};

static const size_t NOWHERE = SIZE_MAX;

/* A search that finds nothing looks at the whole stack: not for ever. */
enum { MOST_UNPLACED = 100 };

static bool is_in(uint64_t pc, const struct merge_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (pc >= ranges[i].start_avma && pc < ranges[i].end_avma)
            return true;
    return false;
}

static bool is_evaluator(const struct merge_stacks *stacks, size_t number)
{
    return is_in(stacks->pcs[number], stacks->evaluators, stacks->evaluator_count);
}

static void list_evaluators(struct walk *walk)
{
    for (size_t i = 0; i < walk->stacks->count; i++)
        if (is_evaluator(walk->stacks, i))
            walk->result->evaluators[walk->evaluator_count++] = (uint32_t)i;
}

static void put(struct merge_result *result, const uint64_t *entries, size_t count)
{
    size_t room = result->capacity - result->count;
    if (count > room) {
        result->is_cut = true;
        count = room;
    }
    for (size_t i = 0; i < count; i++) /* one or two, mostly */
        result->entries[result->count++] = entries[i];
}

/* Whether the next C function called the evaluator whose group was the last, as trampolines do. */
static bool is_at_trampoline(const struct walk *walk)
{
    const struct merge_stacks *stacks = walk->stacks;
    return walk->is_behind_group &&
           is_in(stacks->pcs[walk->next], stacks->trampolines, stacks->trampoline_count);
}

static void put_frames(struct merge_result *result, const uint64_t *frames, size_t count)
{
    uint64_t *entries = result->entries;
    size_t length = result->count, capacity = result->capacity;
    for (size_t i = 0; i < count; i++) {
        if (!frames[i])
            continue;
        if (length == capacity) {
            result->is_cut = true;
            break;
        }
        entries[length++] = frames[i];
    }
    result->count = length;
}

/* Puts out the C functions up to `end`; the last one is the evaluator of a group or not. */
static void put_native(struct walk *walk, size_t end, bool has_group)
{
    if (end <= walk->next)
        return;
    walk->next += is_at_trampoline(walk);
    walk->is_behind_group = has_group;
    put(walk->result, walk->stacks->pcs + walk->next, end - walk->next);
    walk->next = end;
    for (; walk->next_evaluator < walk->evaluator_count; walk->next_evaluator++) {
        size_t evaluator = walk->result->evaluators[walk->next_evaluator];
        if (evaluator >= end)
            break;
        walk->skipped += !(has_group && evaluator + 1 == end);
    }
}

/* The C function whose part of the stack has the address, from walk->next on. */
static size_t find_by_address(const struct walk *walk, uint64_t avma)
{
    const struct merge_stacks *stacks = walk->stacks;
    for (size_t i = walk->next; i < stacks->count; i++) {
        uint64_t start = i ? stacks->cfas[i - 1] : stacks->stack_avma;
        if (avma >= start && avma < stacks->cfas[i])
            return i;
    }
    return NOWHERE;
}

static size_t find_by_code(const struct walk *walk)
{
    return walk->next_evaluator < walk->evaluator_count
               ? walk->result->evaluators[walk->next_evaluator]
               : NOWHERE;
}

static bool is_behind_all(const struct walk *walk, uint64_t avma)
{
    const struct merge_stacks *stacks = walk->stacks;
    uint64_t last = stacks->stack_avma;
    for (size_t i = stacks->count; i > 0; i--) {
        if (stacks->cfas[i - 1]) {
            last = stacks->cfas[i - 1];
            break;
        }
    }
    bool is_elsewhere = stacks->starter_count && avma < stacks->stack_avma; /* another greenlet */
    return avma == 0 || is_elsewhere || avma >= last;
}

static void find_place(struct walk *walk, uint64_t border)
{
    uint64_t avma = border & ~SAMPLE_FRAME_BORDER;
    size_t place = NOWHERE;
    if (walk->unplaced < MOST_UNPLACED)
        place = avma ? find_by_address(walk, avma) : find_by_code(walk);
    if (place != NOWHERE) {
        if (avma && !is_evaluator(walk->stacks, place))
            walk->result->is_regular = false;
        if (avma && walk->result->on_evaluator)
            walk->result->on_evaluator(walk->result->context, walk->stacks->pcs[place]);
        put_native(walk, place + 1, true);
        return;
    }
    walk->result->is_regular = false;
    walk->unplaced++;
    if (walk->unplaced < MOST_UNPLACED && is_behind_all(walk, avma))
        put_native(walk, walk->stacks->count, false);
}

/* Without addresses: when there is one evaluator more than groups, the innermost is the one that
 * has no Python frame yet. With addresses that makes no difference, if it is so. */
static void skip_starting(struct walk *walk)
{
    const struct merge_stacks *stacks = walk->stacks;
    size_t groups = 0, unknown = 0;
    for (size_t i = 0; i < stacks->frame_count; i++) {
        groups += (stacks->frames[i] & SAMPLE_FRAME_BORDER) != 0;
        unknown += stacks->frames[i] == SAMPLE_FRAME_BORDER;
    }
    if ((unknown || stacks->is_inner) && walk->evaluator_count == groups + 1)
        put_native(walk, find_by_code(walk) + 1, false);
}

/* Where the C functions of a greenlet end: with its starter, the first one behind all Python
 * frames. 0 when it has none, as the thread's own stack. */
static size_t end_of_greenlet(const struct merge_stacks *stacks)
{
    size_t groups = 0, passed = 0;
    uint64_t last_avma = 0;
    for (size_t i = 0; i < stacks->frame_count; i++) {
        if (stacks->frames[i] & SAMPLE_FRAME_BORDER) {
            groups++;
            last_avma = stacks->frames[i] & ~SAMPLE_FRAME_BORDER;
        }
    }
    bool is_elsewhere = last_avma && last_avma < stacks->stack_avma;
    for (size_t i = 0; i < stacks->count && !is_elsewhere; i++) {
        bool is_behind = last_avma ? stacks->cfas[i] > last_avma : passed >= groups;
        if (is_behind && is_in(stacks->pcs[i], stacks->starters, stacks->starter_count))
            return i + 1;
        passed += is_evaluator(stacks, i);
    }
    return 0;
}

/* Behind the functions that are switching to another greenlet: the stack is being exchanged, and
 * the Python frames may be the other's already. 0 when there are none. */
static size_t end_of_switch(const struct merge_stacks *stacks)
{
    const struct merge_range *starters = stacks->starters;
    size_t end = 0;
    for (size_t i = 0; i < stacks->count && !is_evaluator(stacks, i); i++) {
        if (is_in(stacks->pcs[i], starters, stacks->starter_count))
            end = i + 1;
        else if (end)
            break;
    }
    return end;
}

static struct merge_step step_of(const struct walk *walk, size_t frames)
{
    return (struct merge_step){.natives = (uint32_t)walk->next,
                               .frames = (uint32_t)frames,
                               .entries = (uint32_t)walk->result->count,
                               .skipped = (uint32_t)walk->skipped};
}

static enum merge_verdict merge_all(const struct merge_stacks *stacks, struct merge_result *result)
{
    struct walk walk = {.stacks = stacks, .result = result};
    result->count = 0;
    result->is_cut = false;
    result->is_regular = true;
    if (result->steps)
        result->steps->count = 0;
    list_evaluators(&walk);
    skip_starting(&walk);
    for (size_t i = 0; i < stacks->frame_count;) {
        if (result->steps)
            (void)vector_push(result->steps, step_of(&walk, i));
        size_t start = i;
        while (i < stacks->frame_count && !(stacks->frames[i] & SAMPLE_FRAME_BORDER))
            i++;
        bool is_cut_off = i == stacks->frame_count; /* a group without its border */
        result->is_regular &= !is_cut_off;
        find_place(&walk, is_cut_off ? 0 : stacks->frames[i]);
        put_frames(result, stacks->frames + start, i - start);
        i += !is_cut_off;
    }
    result->passed = walk.next;
    put_native(&walk, stacks->count, false);
    result->skipped = walk.skipped;
    if ((walk.unplaced && stacks->is_complete) || walk.skipped > 1)
        return MERGE_UNMATCHED;
    return walk.skipped ? MERGE_STARTING : MERGE_MATCHED;
}

/* Merges the C functions up to `end` only, which belong to the current greenlet. */
static enum merge_verdict merge_up_to(const struct merge_stacks *stacks, size_t end,
                                      bool is_complete, struct merge_result *result)
{
    struct merge_stacks own = *stacks;
    own.count = end;
    own.is_complete = is_complete;
    enum merge_verdict verdict = merge_all(&own, result);
    result->has_starter = true;
    result->is_regular = false; /* for who keeps it: C functions were left out */
    return verdict;
}

enum merge_verdict merge(const struct merge_stacks *stacks, struct merge_result *result)
{
    bool has_greenlets = stacks->starter_count && !stacks->is_inner;
    size_t end = has_greenlets ? end_of_greenlet(stacks) : 0;
    result->has_starter = false;
    enum merge_verdict verdict =
        end ? merge_up_to(stacks, end, true, result) : merge_all(stacks, result);
    bool is_sound = verdict != MERGE_UNMATCHED && (end || stacks->is_complete);
    end = has_greenlets && !is_sound ? end_of_switch(stacks) : 0;
    return end ? merge_up_to(stacks, end, false, result) : verdict;
}
