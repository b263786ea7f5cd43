/* The samples of one event, counted: a tree of call chains, and the rows of the table.
 *
 * Samples are first grouped: of a million, some hundred thousand are different. The chains of the
 * groups form a tree (one for each combination of the sample columns' values, such as the name of
 * the command), in the order in which they will be shown: from the outermost caller on, or from the
 * sampled function on.
 *
 *     samples --> groups --> nodes (chains)
 *                   `--------> rows <--'      a row: one combination of all key columns
 *
 * A group belongs to the row of its sampled function. With `children` also the rows of its callers
 * have it, each once. */
#ifndef PITVIPER_REPORT_COUNTS_H
#define PITVIPER_REPORT_COUNTS_H

#include "report/steps.h"

#define COUNTS_NONE UINT32_MAX

struct counts_node {
    uint64_t weight; /* periods of the chains that pass or end here */
    uint64_t count;  /* their samples */
    uint32_t parent; /* COUNTS_NONE at the top */
    uint32_t step;   /* COUNTS_NONE at the top */
    uint32_t first_child;
    uint32_t next_sibling;
    uint32_t row;          /* of the frame; COUNTS_NONE at the top */
    uint32_t next_of_row;  /* another node, where the row begins to count */
    uint32_t depth;        /* 0 at the top */
    uint32_t deepest;      /* depth of the longest chain through it */
    uint32_t first_sample; /* through it */
};

/* Samples that are the same for the report: they ended in the same node and row. */
struct counts_group {
    uint64_t weight;
    uint64_t count;
    uint32_t node;
    uint32_t row;
    uint32_t next_of_row;
    uint32_t first_sample;
    uint32_t context;
    uint32_t stack; /* of the profile */
    uint32_t leaf;  /* frame of the profile */
};

struct counts_row {
    uint64_t self_weight; /* of samples in it … */
    uint64_t self_count;
    uint64_t total_weight; /* … and in what it called; with `children`, else the same */
    uint64_t total_count;
    uint32_t context;
    uint32_t place;        /* see struct step */
    uint32_t first_group;  /* those that ended in it */
    uint32_t first_node;   /* where other chains pass it first */
    uint32_t first_sample; /* that made the row */
    uint32_t deepest;      /* frames in the longest chain of the row */
    uint32_t frame;        /* one of the row's; PROFILE_NONE for samples without frames */
    char level;            /* perf's [k], [.] */
};

struct counts {
    const struct profile *profile;
    const struct report_settings *settings;
    const struct steps *steps;
    uint16_t event;
    uint64_t weight; /* of all samples: what 100 % are; samples that filters leave out included */
    uint64_t samples;
    VECTOR(struct counts_node) nodes;
    VECTOR(struct counts_group) groups;
    VECTOR(struct counts_row) rows;
    VECTOR(uint32_t) tops; /* node of each context */
};

/* All arguments must outlive the counts. 0 or -ENOMEM; on failure there is nothing to release. */
int counts_init(struct counts *counts, const struct steps *steps,
                const struct report_settings *settings, uint16_t event);
void counts_done(struct counts *counts);

#endif
