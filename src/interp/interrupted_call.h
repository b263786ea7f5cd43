/* The system call that a signal of ours has come in, which others have to know of. */
#ifndef PITVIPER_INTERP_INTERRUPTED_CALL_H
#define PITVIPER_INTERP_INTERRUPTED_CALL_H

#include "interp/sample_thread.h"

#include <ucontext.h>

/* In our handler. has_waits: also whether it has ended one, for wait.c. */
void interrupted_call_note(struct sample_thread *thread, const ucontext_t *at, bool has_waits);

/* In a handler of the program's: whether the call that it has come in goes on behind it. If only
 * our signal would have it so, it is ended instead, with EINTR. */
bool interrupted_call_goes_on(const struct sample_thread *thread, int signal, ucontext_t *at);

#endif
