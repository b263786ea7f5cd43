/* Puts the Python functions of a thread where they belong among its C functions.
 *
 * CPython runs Python functions in a C function, the evaluator; since 3.11 one call of it may run
 * several, one calling the other. As with the trampolines of perf, a Python function stands where
 * the caller of its evaluator stands, so it calls what the evaluator calls:
 *
 *     C stack            Python frames          merged, innermost first
 *     sorted()                                  sorted()
 *     evaluator  <----+  key_of                 evaluator
 *     PyObject_Call   |  helper                 key_of, helper
 *     evaluator  <-+  +- border                 PyObject_Call
 *     main         |     <module>               evaluator
 *                  +---- border                 <module>
 *                                               main
 *
 * A border is the address of a variable of the evaluator: it belongs to the C function whose part
 * of the stack it lies in. Where the address is not known the evaluators are counted. */
#ifndef PITVIPER_RECORD_MERGE_H
#define PITVIPER_RECORD_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct merge_range {
    uint64_t start_avma, end_avma;
};

struct merge_stacks {
    /* The C functions, innermost first, with their CFAs as unwind() gives them. */
    const uint64_t *pcs, *cfas;
    size_t count;
    uint64_t stack_avma; /* the stack pointer: where the innermost one's part begins */
    bool is_complete;    /* no C function is missing at the end */

    /* What stands for each Python frame, 0 when it is not to be shown, and borders:
     * SAMPLE_FRAME_BORDER and an address or 0. */
    const uint64_t *frames;
    size_t frame_count;

    /* These are the inner parts of larger stacks: outside, each evaluator has a group, and borders
     * may have no address. */
    bool is_inner;

    /* Code that is known to be of the evaluator. May be none. */
    const struct merge_range *evaluators;
    size_t evaluator_count;

    /* Where trampolines are: generated code that calls the evaluator and has the name of the Python
     * function (-X perf). The function is there already, so they are left out. May be none. */
    const struct merge_range *trampolines;
    size_t trampoline_count;

    /* Code that starts greenlets: several Python stacks take turns on one C stack. The Python
     * frames are those of the current one. What lies behind the function that has started it
     * belongs to others, or to nobody. May be none. */
    const struct merge_range *starters;
    size_t starter_count;
};

enum merge_verdict {
    MERGE_MATCHED,
    MERGE_STARTING, /* matched, but one evaluator more: it has no Python function yet, or no more */
    MERGE_UNMATCHED, /* evaluators and borders don't agree */
};

/* Where the walk over both stacks was when it came to a group of Python frames. */
struct merge_step {
    uint32_t natives, frames; /* that it had passed */
    uint32_t entries;         /* that it had put out */
    uint32_t skipped;         /* evaluators without a group among the C functions */
};

struct merge_steps {
    struct merge_step *items; /* a vector; owned by who has it */
    size_t count, capacity;
};

/* Room for the result. */
struct merge_result {
    uint64_t *entries;
    size_t capacity;
    uint32_t *evaluators; /* room for as many numbers as there are C functions */
    size_t count;
    bool is_cut;      /* there was more than `capacity` */
    bool has_starter; /* it ends with the start of a greenlet, and nothing is missing */

    /* Called, when not NULL, for each C function that a border's address was found in. */
    void (*on_evaluator)(void *context, uint64_t pc_avma);
    void *context;

    struct merge_steps *steps; /* when not NULL: one for each group, as memory allows */
    bool is_regular;           /* each group has a border, and an evaluator's code of its own */
    size_t passed;             /* C functions, up to the last group */
    size_t skipped;            /* evaluators without a group */
};

/* Every C function and every Python frame gets its place, also where they don't agree. Linear. */
enum merge_verdict merge(const struct merge_stacks *stacks, struct merge_result *result);

#endif
