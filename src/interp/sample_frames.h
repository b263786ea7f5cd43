/* The Python frames of the calling thread, read in a signal handler. */
#ifndef PITVIPER_INTERP_SAMPLE_FRAMES_H
#define PITVIPER_INTERP_SAMPLE_FRAMES_H

#include "formats/sample_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds Python in this process; outside the handler. NULL, or why its frames cannot be read
 * (static; an empty string when there is no Python here at all). */
const char *sample_frames_load(void);

struct sample_frames_result {
    size_t count; /* entries written */
    bool is_cut;  /* there were more, or the rest could not be followed */
    bool is_late; /* a function is just being written down by another thread */
    bool is_lost; /* there was no room in the ring for the name of a function */
};

/* Writes the frames as the ring has them, innermost first, after the records of the functions that
 * are new. `stack_low` and `stack_high` are the bounds of the thread's C stack. */
struct sample_frames_result sample_frames_read(struct sample_ring *ring, uintptr_t stack_low,
                                               uintptr_t stack_high, uint64_t *entries,
                                               size_t capacity);

#endif
