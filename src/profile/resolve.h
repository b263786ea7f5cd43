/* From an address in a process to a frame of the profile: each (address space, address) once. */
#ifndef PITVIPER_PROFILE_RESOLVE_H
#define PITVIPER_PROFILE_RESOLVE_H

#include "profile/functions.h"
#include "profile/kernel.h"
#include "profile/modules.h"
#include "profile/tasks.h"

struct resolver {
    struct profile *profile; /* all borrowed */
    const struct profile_options *options;
    struct modules *modules;
    struct functions *functions;
    struct kernel *kernel;
    struct pairmap known; /* (avma, address space) -> frame */

    bool inlines; /* inlined functions are wanted */

    /* Set when an answer holds for its time only, so that what was made from it must not be
     * remembered. Whoever remembers clears it before. */
    bool is_momentary;
};

/* The address space of the kernel; those of tasks are other numbers. */
#define RESOLVE_KERNEL UINT32_MAX

/* What is to be resolved. */
struct resolve_place {
    struct task *task;
    uint64_t avma;
    uint64_t time_ns;
    bool is_kernel;
};

void resolver_done(struct resolver *resolver);

/* The innermost frame at a place; if it is inlined its callers follow in the table. 0 or -ENOMEM.
 */
int resolve(struct resolver *resolver, const struct resolve_place *place, uint32_t *ret_frame);

/* The newest jitdump of the task that knows code at an address at a time; NULL when none does. */
const struct jitdump_placement *resolve_generated(const struct task *task,
                                                  const struct region *region,
                                                  const struct resolve_place *place,
                                                  struct jit_dump **ret_dump);

#endif
