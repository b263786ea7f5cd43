/* The Python frames of the calling thread, read in a signal handler. */
#ifndef PITVIPER_INTERP_SAMPLE_FRAMES_H
#define PITVIPER_INTERP_SAMPLE_FRAMES_H

#include "formats/sample_ring.h"
#include "interp/sample_chain.h"
#include "interp/sample_states.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds Python in this process; outside the handler. NULL, or why its frames cannot be read
 * (static; an empty string when there is no Python here at all). */
const char *sample_frames_load(void);

struct sample_frames_result {
    bool is_cut;      /* there were more, or the rest could not be followed */
    bool is_full;     /* there were more */
    bool is_late;     /* a function is just being written down by another thread */
    bool is_headless; /* is_cut, as the outermost is a generator, whose caller is not known */
    bool is_lost;     /* there was no room in the ring for the name of a function */
};

/* Reads the frames into the thread's chain, after the records of the functions that are new have
 * been written to the ring. `stack` is the thread's C stack, `states` what it remembers of its
 * states. */
struct sample_frames_result sample_frames_read(struct sample_ring *ring, struct sample_bounds stack,
                                               struct sample_states *states,
                                               struct sample_chain *chain);

#endif
