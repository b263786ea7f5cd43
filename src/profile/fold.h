/* A view of a profile for people who think in Python: the interpreter's own frames are folded away,
 * so that Python functions stand next to each other, with the C functions that they call on top:
 *
 *     recorded                          folded
 *     py::main:app.py                   py::main:app.py
 *     _PyEval_EvalFrameDefault
 *     PyObject_Vectorcall
 *     py::work:app.py                   py::work:app.py
 *     _PyEval_EvalFrameDefault
 *     cfunction_vectorcall_O
 *     math_factorial                    math_factorial
 *
 * Only stacks with Python functions are changed: in others (an interpreter without support for
 * profilers) the evaluator is all there is to see. Time in the evaluator itself counts for the
 * Python function that it runs; garbage collection stays visible as its outermost function. */
#ifndef PITVIPER_PROFILE_FOLD_H
#define PITVIPER_PROFILE_FOLD_H

#include "profile/profile.h"

struct fold {
    VECTOR(struct profile_stack) stacks; /* frames are the profile's; 0 is PROFILE_ROOT */
    uint32_t *stack_of;                  /* per stack of the profile: the folded one; owned */
};

/* 0 or -ENOMEM; on failure there is nothing to release. The profile must outlive the fold. */
int fold_init(struct fold *fold, const struct profile *profile);
void fold_done(struct fold *fold);

#endif
