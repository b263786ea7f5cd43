/* Samples added up: what each node weighs for each command name ("comm"). For formats without
 * time. */
#ifndef PITVIPER_EXPORT_WEIGHTS_H
#define PITVIPER_EXPORT_WEIGHTS_H

#include "export/view.h"

struct export_weight_row {
    uint32_t comm; /* string of the profile: the thread's name when it was sampled */
    uint32_t node;
    uint64_t weight;
    uint64_t samples;
};

struct export_weights {
    VECTOR(struct export_weight_row) rows; /* by comm in the order of appearance, then node */
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int export_weights_init(struct export_weights *weights, const struct export_view *view);
void export_weights_done(struct export_weights *weights);

#endif
