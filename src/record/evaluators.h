/* Which code of a process is the evaluator's: the C function that runs Python functions. Its symbol
 * is not enough, since compilers take it apart: on some builds all but its first kilobyte has no
 * name. But the borders of Python frames point into its part of the stack, so what they point to
 * again and again is it. */
#ifndef PITVIPER_RECORD_EVALUATORS_H
#define PITVIPER_RECORD_EVALUATORS_H

#include "record/merge.h"
#include "record/process_maps.h"

enum { EVALUATORS_MOST = 8 };

struct evaluators {
    struct merge_range ranges[EVALUATORS_MOST]; /* those that are sure */
    size_t count;
    struct merge_range candidates[EVALUATORS_MOST];
    uint32_t hits[EVALUATORS_MOST]; /* of the candidates */
    size_t candidate_count;
    uint32_t failures; /* searches that found nothing */
    bool is_named;     /* what the process said of it has been used */
};

/* The process says where the evaluator begins. */
void evaluators_name(struct evaluators *evaluators, const struct process_maps *maps,
                     uint64_t start_avma);

/* A border pointed to the part of the stack of a function that is at `pc_avma`. */
void evaluators_learn(struct evaluators *evaluators, const struct process_maps *maps,
                      uint64_t pc_avma);

#endif
