/* Calls of classes on 3.13, where __init__ would get past the hook. No-ops on other versions. */
#ifndef PITVIPER_INTERP_CLASS_CALLS_H
#define PITVIPER_INTERP_CLASS_CALLS_H

#include "interp/pyapi.h"

#include <stdbool.h>

/* Whether every call of this code object must be shown to class_calls_note. */
bool class_calls_concern(struct py_object *code);

/* __init__ is being called with this first argument, or NULL. */
void class_calls_note(struct py_object *self);

/* Trampolines are being switched on or off in the calling thread's interpreter. Need the GIL. */
void class_calls_start(void);
void class_calls_stop(void);

#endif
