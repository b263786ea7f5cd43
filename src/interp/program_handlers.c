/* The kernel has our handler, the program knows of its own:
 *
 *     sigaction(SIGALRM, {on_alarm})    kernel: count_and_call    plain[SIGALRM] = on_alarm
 *     sigaction(SIGALRM, NULL, &old)    old: on_alarm
 *     the signal comes                  count_and_call -> on_alarm
 *
 * It sets right what our signal does to others: a call that should end goes on
 * (interrupted_call.c), another thread is interrupted (main_thread.c), and a wait goes on that one
 * of theirs should end (wait.c).
 *
 * There are two of ours, for handlers with SA_SIGINFO and without. The program's handler is in the
 * table before the kernel is told, so it may be called once with the flags of the one before, but
 * never without the information that it needs. Ours end by jumping to theirs: there is no frame
 * more on the stack than without us. Handlers that somebody has given the kernel past the C library
 * are not counted. What is in the tables is good as long as the kernel has ours, so nothing is ever
 * taken out of them. */
#include "interp/program_handlers.h"

#include "interp/interrupted_call.h"
#include "interp/main_thread.h"
#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

typedef void handler_with_info(int, siginfo_t *, void *);

/* Handlers of both kinds are called with three arguments, by the kernel, too. But it fills in the
 * second one only for those with SA_SIGINFO: so ours have that. */
typedef _Atomic(handler_with_info *) handler_table[NSIG];

static handler_table plain, with_info;

/* What comes before each of their handlers. False: it is not for this thread. */
static bool begins(int signal, siginfo_t *info, void *context)
{
    struct sample_thread *thread = sample_thread_mine();
    int error = errno;
    bool is_elsewhere = sampler_interrupts_waits() && main_thread_takes(signal, info);
    if (thread && is_elsewhere)
        thread->has_ended_call = true; /* as by ours */
    else if (thread && !interrupted_call_goes_on(thread, signal, context))
        thread->handled++;
    errno = error;
    return !is_elsewhere;
}

static void count_and_call(int signal, siginfo_t *info, void *context)
{
    if (begins(signal, info, context))
        plain[signal](signal, info, context);
}

static void count_and_call_with_info(int signal, siginfo_t *info, void *context)
{
    if (begins(signal, info, context))
        with_info[signal](signal, info, context);
}

static program_handler handler_of(handler_with_info *function)
{
    return (program_handler)(void *)function;
}

/* Not one of ours, which a program may have heard of past us, nor one of the small numbers, SIG_DFL
 * and the like. */
static bool is_theirs(program_handler handler)
{
    enum { SMALL = 16 };
    return (uintptr_t)handler >= SMALL && handler != SIG_ERR &&
           handler != handler_of(count_and_call) && handler != handler_of(count_and_call_with_info);
}

static bool is_signal(int signal)
{
    return signal > 0 && signal < NSIG;
}

struct program_handlers program_handlers_now(int signal)
{
    if (!is_signal(signal))
        return (struct program_handlers){0};
    return (struct program_handlers){.plain = handler_of(plain[signal]),
                                     .with_info = handler_of(with_info[signal])};
}

void program_handlers_put(int signal, struct sigaction *action)
{
    bool has_info = action->sa_flags & SA_SIGINFO;
    if (!is_theirs(action->sa_handler) || !is_signal(signal) || !sampler_is_before_handlers())
        return;
    (has_info ? with_info : plain)[signal] = (handler_with_info *)(void *)action->sa_handler;
    action->sa_handler = handler_of(has_info ? count_and_call_with_info : count_and_call);
    action->sa_flags |= SA_SIGINFO;
}

void program_handlers_name(struct sigaction *had, struct program_handlers before)
{
    if (had->sa_handler == handler_of(count_and_call_with_info)) {
        had->sa_handler = before.with_info;
    } else if (had->sa_handler == handler_of(count_and_call)) {
        had->sa_handler = before.plain;
        had->sa_flags &= ~SA_SIGINFO;
    }
}
