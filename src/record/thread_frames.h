/* The Python frames of the threads of a process. A sample of a deep stack has only the frames that
 * its thread's deep sample before did not have (formats/sample_ring.h); here they come together
 * again, and each is resolved once as long as it stays. */
#ifndef PITVIPER_RECORD_THREAD_FRAMES_H
#define PITVIPER_RECORD_THREAD_FRAMES_H

#include "base/hashtable.h"
#include "base/vector.h"
#include "record/kept_chain.h"
#include "record/ring_record.h"

struct thread_frames {
    /* What stands for a frame; 0: it is not to be shown. */
    uint64_t (*resolve)(void *context, uint64_t frame);
    void *context;
    struct hashtable by_tid;
    VECTOR(struct thread_frames_stack) stacks;
    size_t most;           /* of them, before those that have ended are looked for */
    size_t words;          /* of the rooms of all */
    size_t chains;         /* how many may have one */
    bool is_full;          /* there was no room for one; those that have ended are looked for … */
    uint64_t next_look_ns; /* … from then on */
};

void thread_frames_done(struct thread_frames *threads);

/* All frames of a sample, valid until the next one. */
struct thread_frames_taken {
    /* Resolved, innermost first; borders as they are. The last is not 0. */
    const uint64_t *items;
    size_t count;
    size_t same; /* of them, the last ones: as they were in the thread's deep sample before */
    bool is_cut; /* some that the sample has kept of those before are not here */
    struct kept_chain *chain; /* of that sample, to become this one's; NULL: none is kept */
};

/* `room` is for `capacity` frames: those of a sample that is not deep. */
void thread_frames_take(struct thread_frames *threads, const struct ring_record *record,
                        uint64_t *room, size_t capacity, struct thread_frames_taken *ret_taken);

#endif
