/* How much of its C stack a thread has left. */
#ifndef PITVIPER_INTERP_THREAD_STACK_H
#define PITVIPER_INTERP_THREAD_STACK_H

#include <stddef.h>
#include <stdint.h>

/* The part of the calling thread's stack that may be used: [low, low + bytes). Below `low` there is
 * a reserve for what a call needs on its way to the next check. */
struct thread_stack {
    uintptr_t low;
    size_t bytes; /* 0 when nothing is known of the stack */
};

/* Asks the system once per thread. */
struct thread_stack thread_stack_of_caller(void);

/* Asks again: the main thread's stack may grow further once the program has raised its limit. */
struct thread_stack thread_stack_ask(void);

#endif
