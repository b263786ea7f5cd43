/* The same stacks, unwound by elfutils' libdw: the oracle of the tests and the peer of the
 * benchmark. */
#ifndef PITVIPER_TARGETS_LIBDW_STACKS_H
#define PITVIPER_TARGETS_LIBDW_STACKS_H

#include "recorded_stacks.h"

struct libdw_stacks;

struct libdw_stacks *libdw_stacks_open(const struct recorded_stacks *stacks);
void libdw_stacks_close(struct libdw_stacks *libdw);

/* What libdw finds: like struct unwind_frames. */
struct libdw_frames {
    uint64_t *pcs;
    uint64_t *sps; /* the stack pointer in each frame: the CFA of the one that it called. 0: libdw
                      does not tell (before 0.188). NULL: not wanted */
    size_t capacity, count;
    bool is_blind; /* it asked for memory below the stack pointer, which perf does not record, and
                      could not go on properly */
};

void libdw_stacks_unwind(struct libdw_stacks *libdw, const struct unwind_sample *sample,
                         struct libdw_frames *frames);

#endif
