/* The functions and frames of a profile while it is loaded: each different one once. */
#ifndef PITVIPER_PROFILE_FUNCTIONS_H
#define PITVIPER_PROFILE_FUNCTIONS_H

#include "profile/pairmap.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

struct functions {
    struct profile *profile; /* borrowed: has the tables */
    bool demangle;
    struct pairmap by_start;  /* (start, module) -> function: the newest one there */
    struct pairmap by_inline; /* (name, function that it is inlined into) -> function */
    struct pairmap by_ip;     /* (ip, function that is not inlined) -> innermost frame there */
};

void functions_init(struct functions *functions, struct profile *profile, bool demangle);
void functions_done(struct functions *functions);

/* The function of a symbol in a module. 0 or -ENOMEM. */
int functions_add(struct functions *functions, uint32_t module, const struct symbol *symbol,
                  uint32_t *ret_function);

/* The function that stands for an address without a name, counted as perf does. 0 or -ENOMEM. */
int functions_add_unresolved(struct functions *functions, uint32_t module, uint64_t address,
                             uint32_t *ret_function);

/* A function that is inlined into another one; the other one itself when that has the same name. As
 * perf does, it starts where the other one does. 0 or -ENOMEM. */
int functions_add_inlined(struct functions *functions, uint32_t into, const char *name,
                          uint32_t *ret_function);

/* The innermost of the frames at an address, which are `count`: inlined ones from the innermost on,
 * the one that is not inlined last. They are entered one behind the other, unless they are there
 * already. 0 or -ENOMEM. */
int functions_add_frames(struct functions *functions, const struct profile_frame *frames,
                         size_t count, uint32_t *ret_frame);

#endif
