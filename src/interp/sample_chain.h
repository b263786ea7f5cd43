/* The Python frames of one thread, as its walks find them and its samples tell them.
 *
 * Entries are as in the ring: frames and borders, innermost first. From one sample to the next most
 * of a deep stack stays as it was, so the chain of the last deep walk is kept, and a walk that
 * comes to one of its frames follows it from there on, comparing instead of writing:
 *
 *     this walk           | entries: what is new |
 *     the one before  | other inner ones |       | known: the same ...            outermost |
 *                                                ^ where the walk has joined it
 *
 * All of it is for the thread's own handler: no locks, no allocation. */
#ifndef PITVIPER_INTERP_SAMPLE_CHAIN_H
#define PITVIPER_INTERP_SAMPLE_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SAMPLE_CHAIN_MOST = 16384, /* entries */
    SAMPLE_CHAIN_AHEAD = 24,   /* steps behind the last one that may be read: they say nothing */
};

/* A frame that a walk has come by. */
struct sample_step {
    const char *frame;
    uint64_t key; /* what its entry was made of; 0: see the entry itself */
};

/* Frames, innermost first. */
struct sample_steps {
    struct sample_step *items;
    uint16_t *places; /* where entries of each begin: how many are before that, or for what is
                         known, from there on up to the outermost one */
    size_t count;
};

struct sample_chain {
    uint64_t *entries; /* what is new, innermost first; NULL: there is no chain */
    size_t count;
    struct sample_steps steps; /* the frames of `entries` */
    size_t kept;               /* after sample_chain_end: entries behind these, as they are known */
    size_t kept_steps;         /* and frames */

    uint64_t *known_end; /* the last deep walk's stand before this */
    size_t known_count;
    struct sample_steps known_steps; /* its arrays have the last one at their end */

    /* While the walk follows what is known: the entry that comes next there. Else NULL. */
    const uint64_t *next;
    size_t next_step, joined; /* of the known steps; `joined`: where it has begun to */
};

/* Bytes of memory for a chain, and its set-up in as many, which are 0. */
size_t sample_chain_bytes(void);
void sample_chain_init(struct sample_chain *chain, uint8_t *memory);

/* A walk begins, or begins again. */
void sample_chain_begin(struct sample_chain *chain);

/* The walk has come to a frame. */
void sample_chain_step(struct sample_chain *chain, struct sample_step step);

/* And found an entry. False when there is no room for it. */
bool sample_chain_add(struct sample_chain *chain, uint64_t entry);

/* While the walk follows: it has passed by the known steps before this one. */
void sample_chain_pass(struct sample_chain *chain, size_t next_step);

/* From this frame on, which has no entry yet, the walk follows what is known, if it is there. */
void sample_chain_join(struct sample_chain *chain, const char *frame);

/* The outermost entry so far; 0 when there is none. */
uint64_t sample_chain_last(const struct sample_chain *chain);

/* The outermost frame so far; NULL when there is none. */
const char *sample_chain_outermost(const struct sample_chain *chain);

/* The walk is over: what it has found are `count` entries and the outermost `kept` known ones. */
void sample_chain_end(struct sample_chain *chain);

/* The known steps, the innermost first, up to known_steps.count. */
static inline const struct sample_step *sample_chain_known(const struct sample_chain *chain)
{
    return chain->known_steps.items + SAMPLE_CHAIN_MOST - chain->known_steps.count;
}

/* For how many more frames there is room, each with an entry and a border. */
static inline size_t sample_chain_room(const struct sample_chain *chain)
{
    size_t steps = chain->steps.count;
    return (SAMPLE_CHAIN_MOST - (chain->count > steps ? chain->count : steps)) / 2;
}

static inline const uint64_t *sample_chain_kept(const struct sample_chain *chain)
{
    return chain->known_end - chain->kept;
}

/* What the walk has found is known from now on. */
void sample_chain_keep(struct sample_chain *chain);

#endif
