/* What is known stands at the end of its room, as stacks do, so what stays the same stays where it
 * is. Memory:
 *
 *     | entries | steps | known entries | known steps | a few that are 0 | places | known places |
 *
 * A walk that follows may come to something else half-way: a frame that is at another instruction,
 * or another frame. Then what it has passed so far counts as new, and it goes on by itself. So it
 * does not matter where a walk joins, nor whether it was right to. */
#include "interp/sample_chain.h"

#include <string.h>

enum {
    MOST = SAMPLE_CHAIN_MOST,
    ENTRIES_BYTES = MOST * sizeof(uint64_t),
    STEPS_BYTES = MOST * sizeof(struct sample_step),
    AHEAD_BYTES = SAMPLE_CHAIN_AHEAD * sizeof(struct sample_step),
    PLACES_BYTES = MOST * sizeof(uint16_t),
    BLOCK = 32, /* entries */
};

_Static_assert(MOST <= UINT16_MAX, "a place");

size_t sample_chain_bytes(void)
{
    return 2 * (ENTRIES_BYTES + STEPS_BYTES + PLACES_BYTES) + AHEAD_BYTES;
}

void sample_chain_init(struct sample_chain *chain, uint8_t *memory)
{
    uint8_t *known = memory + ENTRIES_BYTES + STEPS_BYTES;
    uint8_t *places = known + ENTRIES_BYTES + STEPS_BYTES + AHEAD_BYTES;
    *chain = (struct sample_chain){
        .entries = (void *)memory,
        .steps = {.items = (void *)(memory + ENTRIES_BYTES), .places = (void *)places},
        .known_end = (void *)(known + ENTRIES_BYTES),
        .known_steps = {.items = (void *)(known + ENTRIES_BYTES),
                        .places = (void *)(places + PLACES_BYTES)},
    };
}

void sample_chain_begin(struct sample_chain *chain)
{
    chain->count = chain->steps.count = 0;
    chain->kept = chain->kept_steps = 0;
    chain->next = NULL;
}

/* Of a known step; 0 behind the last. */
static size_t known_place(const struct sample_chain *chain, size_t step)
{
    const struct sample_steps *known = &chain->known_steps;
    return step < known->count ? known->places[MOST - known->count + step] : 0;
}

/* What the walk has passed of what is known becomes its own. There is room: see join. */
static void leave(struct sample_chain *chain)
{
    struct sample_steps *steps = &chain->steps;
    size_t place = known_place(chain, chain->joined);
    const uint64_t *first = chain->known_end - place;
    size_t count = (size_t)(chain->next - first);
    for (size_t i = chain->joined; i < chain->next_step; i++) {
        steps->items[steps->count] = sample_chain_known(chain)[i];
        steps->places[steps->count++] = (uint16_t)(chain->count + place - known_place(chain, i));
    }
    memcpy(chain->entries + chain->count, first, count * sizeof *first);
    chain->count += count;
    chain->next = NULL;
}

static bool is_next(const struct sample_chain *chain, struct sample_step step)
{
    const struct sample_step *known = sample_chain_known(chain) + chain->next_step;
    return chain->next_step < chain->known_steps.count && known->frame == step.frame &&
           known->key == step.key;
}

void sample_chain_step(struct sample_chain *chain, struct sample_step step)
{
    struct sample_steps *steps = &chain->steps;
    if (chain->next && is_next(chain, step)) {
        chain->next_step++;
        return;
    }
    if (chain->next)
        leave(chain);
    if (steps->count == MOST)
        return;
    steps->items[steps->count] = step;
    steps->places[steps->count++] = (uint16_t)chain->count;
}

void sample_chain_pass(struct sample_chain *chain, size_t next_step)
{
    chain->next_step = next_step;
    chain->next = chain->known_end - known_place(chain, next_step);
}

bool sample_chain_add(struct sample_chain *chain, uint64_t entry)
{
    if (chain->next && chain->next < chain->known_end && *chain->next == entry) {
        chain->next++;
        return true;
    }
    if (chain->next)
        leave(chain);
    if (chain->count == MOST)
        return false;
    chain->entries[chain->count++] = entry;
    return true;
}

/* The longer the walk, the farther away it is looked for: stacks grow and shrink. */
void sample_chain_join(struct sample_chain *chain, const char *frame)
{
    const struct sample_step *known = sample_chain_known(chain);
    size_t count = chain->known_steps.count, far = 2 * chain->steps.count;
    size_t most = far < count ? far : count, i = 0;
    if (chain->next)
        return;
    while (i < most && known[i].frame != frame)
        i++;
    if (i == most || chain->count + known_place(chain, i) > MOST ||
        chain->steps.count + count - i > MOST)
        return;
    chain->joined = i;
    sample_chain_pass(chain, i);
}

uint64_t sample_chain_last(const struct sample_chain *chain)
{
    if (chain->next && chain->next > chain->known_end - known_place(chain, chain->joined))
        return chain->next[-1];
    return chain->count ? chain->entries[chain->count - 1] : 0;
}

const char *sample_chain_outermost(const struct sample_chain *chain)
{
    if (chain->next && chain->next_step > chain->joined)
        return sample_chain_known(chain)[chain->next_step - 1].frame;
    return chain->steps.count ? chain->steps.items[chain->steps.count - 1].frame : NULL;
}

/* Other frames can say the same as those of the walk before. Many are compared at a time. */
static void keep_same(struct sample_chain *chain)
{
    size_t left = chain->known_count - chain->kept;
    size_t most = chain->count < left ? chain->count : left, same = 0;
    const uint64_t *end = chain->entries + chain->count, *known_end = sample_chain_kept(chain);
    while (most - same >= BLOCK &&
           memcmp(end - same - BLOCK, known_end - same - BLOCK, BLOCK * sizeof *end) == 0)
        same += BLOCK;
    while (same < most && end[-1 - (ptrdiff_t)same] == known_end[-1 - (ptrdiff_t)same])
        same++;
    chain->count -= same;
    chain->kept += same;
}

void sample_chain_end(struct sample_chain *chain)
{
    if (chain->next && chain->next == chain->known_end) {
        chain->kept = known_place(chain, chain->joined);
        chain->kept_steps = chain->known_steps.count - chain->joined;
    } else if (chain->next) {
        leave(chain);
    }
    chain->next = NULL;
    keep_same(chain);
}

void sample_chain_keep(struct sample_chain *chain)
{
    const struct sample_steps *steps = &chain->steps;
    size_t total = chain->count + chain->kept;
    size_t first = MOST - chain->kept_steps - steps->count;
    for (size_t i = 0; i < steps->count; i++) {
        chain->known_steps.items[first + i] = steps->items[i];
        chain->known_steps.places[first + i] = (uint16_t)(total - steps->places[i]);
    }
    memcpy(chain->known_end - total, chain->entries, chain->count * sizeof *chain->entries);
    chain->known_count = total;
    chain->known_steps.count = MOST - first;
}
