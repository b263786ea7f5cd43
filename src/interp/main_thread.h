/* The main thread, which the kernel gives signals that are sent to the process: but not while our
 * handler runs in it, which blocks them. */
#ifndef PITVIPER_INTERP_MAIN_THREAD_H
#define PITVIPER_INTERP_MAIN_THREAD_H

#include <signal.h>
#include <stdbool.h>

/* Our handler begins in the main thread, which had these signals blocked. */
void main_thread_is_sampled(const sigset_t *blocked);

/* A handler of the program's is about to run, in any thread. True if it is not to: only our handler
 * has kept the signal from the main thread, and it has been sent there now. For what was sent so,
 * *info becomes what it was. */
bool main_thread_takes(int signal, siginfo_t *info);

#endif
