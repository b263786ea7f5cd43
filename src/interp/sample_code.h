/* The record of a Python function, written in a signal handler. */
#ifndef PITVIPER_INTERP_SAMPLE_CODE_H
#define PITVIPER_INTERP_SAMPLE_CODE_H

#include "formats/sample_ring.h"
#include "interp/sample_layout.h"

/* False when there was no room in the ring. `code` must be a code object. */
bool sample_code_write(struct sample_ring *ring, const struct sample_layout *layout,
                       const char *code, uint32_t number);

/* A number that is another one, with all likelihood, when what that record would say is. */
uint64_t sample_code_print(const struct sample_layout *layout, const char *code);

#endif
