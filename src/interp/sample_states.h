/* The calling thread's states: one in each interpreter whose code it runs.
 *
 * Nearly all programs have one interpreter. But a Python function can let another one run something
 * (concurrent.interpreters, an InterpreterPoolExecutor, an application that embeds Python). Then it
 * waits for it on the same C stack, and so does its state:
 *
 *     C stack            state
 *     evaluator          of the inner interpreter: the current one     work()
 *     exec()
 *     evaluator          of the outer interpreter: suspended           _worker(), Thread.run()
 *     start of thread
 *
 * CPython keeps no link from the one to the other but in a variable of that C function. */
#ifndef PITVIPER_INTERP_SAMPLE_STATES_H
#define PITVIPER_INTERP_SAMPLE_STATES_H

#include "interp/pyapi.h"
#include "interp/sample_layout.h"
#include "interp/sample_memory.h"

enum { SAMPLE_STATES_MOST = 8 };

/* One that has frames. */
struct sample_state {
    const struct py_thread *state;
    const char *frame;  /* the innermost one; or its cframe, where there are some */
    uintptr_t position; /* on the C stack, about; 0 on 3.9 */
};

/* What a thread remembers from one sample to the next. All of it is 0 at first. */
struct sample_states {
    bool has_been_seen;              /* the thread has had a state */
    const struct py_thread *current; /* then; on 3.9, the last one of another interpreter ... */
    const char *beneath;             /* ... and the frame at which the thread's first one was */
    unsigned uses;                   /* since they were looked for */
    size_t count;
    struct sample_state items[SAMPLE_STATES_MOST]; /* innermost first */
};

/* Bounds of the thread's C stack. */
struct sample_bounds {
    uintptr_t low, high;
};

struct sample_states_found {
    const struct py_thread *current;      /* the innermost one, wherever it is; or NULL */
    const struct sample_state *suspended; /* beneath it, innermost first */
    size_t count;
};

/* Outside the handler. False when CPython lacks what is needed. */
bool sample_states_init(const struct sample_layout *layout, int minor);

/* None when the thread is none of Python's. Good for as long as the handler runs. */
struct sample_states_found sample_states_find(struct sample_states *states,
                                              struct sample_memory *memory,
                                              struct sample_bounds stack);

#endif
