/* The same stacks, unwound by elfutils' libdw: the oracle of the tests and the peer of the
 * benchmark. */
#ifndef PITVIPER_TARGETS_LIBDW_STACKS_H
#define PITVIPER_TARGETS_LIBDW_STACKS_H

#include "recorded_stacks.h"

struct libdw_stacks;

struct libdw_stacks *libdw_stacks_open(const struct recorded_stacks *stacks);
void libdw_stacks_close(struct libdw_stacks *libdw);

/* Like unwind(); how many PCs there are. *ret_is_blind: it asked for memory below the stack
 * pointer, which perf does not record, and could not go on properly. */
size_t libdw_stacks_unwind(struct libdw_stacks *libdw, const struct unwind_sample *sample,
                           uint64_t *pcs, size_t capacity, bool *ret_is_blind);

#endif
