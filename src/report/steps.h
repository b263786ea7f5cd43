/* Frames as a report tells them apart: each frame of the profile becomes a step.
 *
 * A step is a pair of small numbers. Its symbol says which frames are the same in call chains (the
 * same function, or the same address or line if so asked); its place, which are the same for the
 * key columns of the table. Usually both mean the function. */
#ifndef PITVIPER_REPORT_STEPS_H
#define PITVIPER_REPORT_STEPS_H

#include "base/hashtable.h"
#include "report/settings.h"

struct step {
    uint32_t symbol;
    uint32_t place;
    uint32_t frame; /* the first of the profile that is this step */
};

struct steps {
    const struct profile *profile; /* borrowed */
    enum chain_key key;            /* what makes frames of chains the same */
    uint32_t *of_frame;            /* owned */
    VECTOR(struct step) items;
    VECTOR(uint32_t) symbols; /* a frame of each */
    VECTOR(uint32_t) places;  /* likewise */
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int steps_init(struct steps *steps, const struct profile *profile,
               const struct report_settings *settings);
void steps_done(struct steps *steps);

/* The order of branches of equal size: < 0 when symbol a comes first. */
int steps_compare_symbols(const struct steps *steps, uint32_t a, uint32_t b);

#endif
