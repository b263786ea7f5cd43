/* Which Python functions the ring has, and by what number. */
#ifndef PITVIPER_INTERP_SAMPLE_CODES_H
#define PITVIPER_INTERP_SAMPLE_CODES_H

#include "formats/sample_ring.h"
#include "interp/sample_layout.h"

/* Outside the handler. False when memory is short. */
bool sample_codes_init(const struct sample_layout *of_python);

enum {
    SAMPLE_CODES_NO_ROOM = 0,      /* in the ring */
    SAMPLE_CODES_BUSY = INT32_MAX, /* another thread is at it */
};

/* The number of a code object, which the ring gets when it is new, or why it has none. Fit for
 * signal handlers. */
uint32_t sample_codes_number(struct sample_ring *ring, const char *code);

/* After a fork, for the new ring. */
void sample_codes_forget(void);

#endif
