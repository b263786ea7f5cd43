/* The hook that CPython calls in the place of its evaluator (PEP 523). */
#ifndef PITVIPER_INTERP_HOOK_H
#define PITVIPER_INTERP_HOOK_H

#include "interp/interpreter.h"

/* The hook for an interpreter, written for the layouts of 3.minor. */
py_evaluator *hook_for(const struct interpreter *interpreter, int minor);

#endif
