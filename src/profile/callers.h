/* The callers of a sample whose stack was copied (--call-graph dwarf). */
#ifndef PITVIPER_PROFILE_CALLERS_H
#define PITVIPER_PROFILE_CALLERS_H

#include "profile/resolve.h"
#include "profile/stacks.h"

struct callers {
    struct resolver *resolver; /* borrowed */
    uint16_t elf_machine;      /* of the recording */
    struct stacks_limit limit; /* of the kernel's part; of the unwound one the innermost count */
    VECTOR(uint64_t) entries;  /* room for the chain at hand */
};

/* What a task's unwinder is given to find code by; owned by the task. */
struct callers_context {
    struct resolver *resolver;
    struct task *task;
    uint16_t elf_machine;
    uint64_t time_ns; /* of the sample at hand */
};

void callers_done(struct callers *callers);

/* Completes a chain: the kernel's part of it as recorded, then the frames found in the copy of the
 * stack. The entries are valid until the next call. 0 or -ENOMEM. */
int callers_unwind(struct callers *callers, const struct perfdata_sample *sample,
                   struct stacks_chain *chain);

#endif
