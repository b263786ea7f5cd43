/* The kernel has our handler, the program knows of its own:
 *
 *     sigaction(SIGALRM, {on_alarm})    kernel: count_and_call    theirs[SIGALRM] = on_alarm
 *     sigaction(SIGALRM, NULL, &old)    old: on_alarm
 *     the signal comes                  count_and_call -> on_alarm
 *
 * Ours ends by jumping to theirs, so there is no frame more on the stack than without us. Handlers
 * that somebody has given the kernel past the C library are not counted. What is in the table is
 * good as long as the kernel has ours, so nothing is ever taken out of it. */
#include "interp/program_handlers.h"

#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <signal.h>
#include <stdatomic.h>

typedef void handler_with_info(int, siginfo_t *, void *);

static _Atomic(handler_with_info *) theirs[NSIG];

/* Handlers of both kinds are called with three arguments by the kernel, too. */
static void count_and_call(int signal, siginfo_t *info, void *context)
{
    struct sample_thread *thread = sample_thread_mine();
    if (thread)
        thread->handled++;
    theirs[signal](signal, info, context);
}

static program_handler ours(void)
{
    return (program_handler)(void *)count_and_call;
}

/* Not one of the small numbers, SIG_DFL and the like. */
static bool is_function(program_handler handler)
{
    enum { SMALL = 16 };
    return (uintptr_t)handler >= SMALL && handler != SIG_ERR;
}

static bool is_signal(int signal)
{
    return signal > 0 && signal < NSIG;
}

program_handler program_handlers_now(int signal)
{
    return is_signal(signal) ? (program_handler)(void *)theirs[signal] : SIG_DFL;
}

program_handler program_handlers_count(int signal, program_handler handler)
{
    if (!is_function(handler) || !is_signal(signal) || !sampler_counts_handlers())
        return handler;
    theirs[signal] = (handler_with_info *)(void *)handler;
    return ours();
}

program_handler program_handlers_name(program_handler had, program_handler before)
{
    return had == ours() ? before : had;
}
