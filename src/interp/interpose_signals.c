/* The part of interpose.c that is about signals:
 *
 *     sigaction, signal, and older ones  our signal: hidden, or left to a program that wants it;
 *                                        others: one of ours is before handlers; and Python starts
 *     sigaltstack                        our handler needs a larger one than many have
 *     pthread_sigmask, sigprocmask       threads that block all signals are sampled as well
 *     sigwait and its relatives          a program that waits for all signals means its own */
#include "interp/interpose.h"
#include "interp/program_handlers.h"
#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <signal.h>

#define EXPORT INTERPOSE_EXPORT

enum { SIGNALS_IN_A_ROW = 16 };

typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef program_handler signal_function(int, program_handler);
typedef int sigignore_function(int);
typedef int sigaltstack_function(const stack_t *, stack_t *);
typedef int sigmask_function(int, const sigset_t *, sigset_t *);
typedef int sigwait_function(const sigset_t *, int *);
typedef int sigtimedwait_function(const sigset_t *, siginfo_t *, const struct timespec *);

/* The functions that the names stand for without us. */
static struct {
    sigaction_function *sigaction;
    signal_function *signal;
    signal_function *__sysv_signal;
    signal_function *sigset;
    sigignore_function *sigignore;
    sigaltstack_function *sigaltstack;
    sigmask_function *pthread_sigmask;
    sigmask_function *sigprocmask;
    sigwait_function *sigwait;
    sigtimedwait_function *sigtimedwait;
} found;

__attribute__((constructor)) static void find(void)
{
    static const struct interpose_name NAMES[] = {
        {"sigaction", &found.sigaction},
        {"signal", &found.signal},
        {"__sysv_signal", &found.__sysv_signal},
        {"sigset", &found.sigset},
        {"sigignore", &found.sigignore},
        {"sigaltstack", &found.sigaltstack},
        {"pthread_sigmask", &found.pthread_sigmask},
        {"sigprocmask", &found.sigprocmask},
        {"sigwait", &found.sigwait},
        {"sigtimedwait", &found.sigtimedwait},
    };
    interpose_find(NAMES, sizeof NAMES / sizeof *NAMES);
}

#define REAL(name) (find(), found.name)

/* --- actions --------------------------------------------------------------------------------- */

int interpose_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    return REAL(sigaction)(signal, action, old);
}

int interpose_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return REAL(pthread_sigmask)(how, set, old);
}

/* An interpreter that starts asks for the actions of all signals, one after the other. Others ask
 * for a few, perhaps in a handler, where looking for names might wait for ever. */
static bool is_like_interpreter(int signal)
{
    static __thread __attribute__((tls_model("initial-exec"))) int last, in_a_row;
    in_a_row = signal == last + 1 ? in_a_row + 1 : 1;
    last = signal;
    return in_a_row == SIGNALS_IN_A_ROW;
}

/* A signal that is not ours. */
static int set_theirs(int signal, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction ours;
    struct program_handlers before = program_handlers_now(signal);
    if (action) {
        ours = *action;
        program_handlers_put(signal, &ours);
    }
    int result = REAL(sigaction)(signal, action ? &ours : NULL, old);
    if (result == 0 && old)
        program_handlers_name(old, before);
    return result;
}

EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (!action && is_like_interpreter(signal))
        sampler_look_for_python();
    if (!sampler_handles_signal(signal))
        return set_theirs(signal, action, old);
    struct sigaction before;
    sampler_give_action(&before);
    if (action)
        sampler_set_action(action);
    if (old)
        *old = before;
    return 0;
}

/* One of the simple ways to set the action of our signal. */
static program_handler set_handler(int number, program_handler handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    if (!(flags & SA_NODEFER))
        sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

/* ... and of another one: what flags there are to it, the real function knows. */
static program_handler set_their_handler(signal_function *real, int number, program_handler handler)
{
    struct sigaction before, now;
    bool is_there = set_theirs(number, NULL, &before) == 0;
    program_handler had = real(number, handler);
    if (!is_there || had == SIG_ERR || REAL(sigaction)(number, NULL, &now) < 0)
        return had;
    set_theirs(number, &now, NULL);
    return had == SIG_HOLD ? had : before.sa_handler;
}

EXPORT program_handler signal(int number, program_handler handler)
{
    return sampler_handles_signal(number) ? set_handler(number, handler, SA_RESTART)
                                          : set_their_handler(REAL(signal), number, handler);
}

/* The same by other names. */
EXPORT program_handler ssignal(int number, program_handler handler)
{
    return signal(number, handler);
}

program_handler bsd_signal(int number, program_handler handler);
EXPORT program_handler bsd_signal(int number, program_handler handler)
{
    return signal(number, handler);
}

/* What signal is in programs that are compiled for nothing but standard C. */
program_handler __sysv_signal(int number, program_handler handler);
EXPORT program_handler __sysv_signal(int number, program_handler handler)
{
    return sampler_handles_signal(number) ? set_handler(number, handler, SA_RESETHAND | SA_NODEFER)
                                          : set_their_handler(REAL(__sysv_signal), number, handler);
}

EXPORT program_handler sysv_signal(int number, program_handler handler)
{
    return __sysv_signal(number, handler);
}

/* And in System V's family. Its SIG_HOLD, to block, is refused for ours. */
program_handler sigset(int number, program_handler handler);
EXPORT program_handler sigset(int number, program_handler handler)
{
    return sampler_handles_signal(number) ? set_handler(number, handler, 0)
                                          : set_their_handler(REAL(sigset), number, handler);
}

int sigignore(int number);
EXPORT int sigignore(int number)
{
    if (!sampler_handles_signal(number))
        return REAL(sigignore)(number);
    return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

/* --- stacks and masks ------------------------------------------------------------------------- */

int interpose_sigaltstack(const stack_t *stack, stack_t *old)
{
    return REAL(sigaltstack)(stack, old);
}

EXPORT int sigaltstack(const stack_t *stack, stack_t *old)
{
    struct sample_thread *thread = sampler_is_on() ? sample_thread_mine() : NULL;
    return thread ? sample_thread_signal_stack(thread, stack, old) : REAL(sigaltstack)(stack, old);
}

/* A set without our signal. */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *room)
{
    if (!set || !sampler_is_on())
        return set;
    *room = *set;
    for (int number = 1; number < NSIG; number++)
        if (sampler_uses_signal(number))
            sigdelset(room, number);
    return room;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t room;
    return REAL(pthread_sigmask)(how, how == SIG_UNBLOCK ? set : without_ours(set, &room), old);
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    sigset_t room;
    return REAL(sigprocmask)(how, how == SIG_UNBLOCK ? set : without_ours(set, &room), old);
}

EXPORT int sigwait(const sigset_t *set, int *ret_signal)
{
    sigset_t room;
    return REAL(sigwait)(without_ours(set, &room), ret_signal);
}

int interpose_sigtimedwait(const sigset_t *set, siginfo_t *ret_info, const struct timespec *timeout)
{
    sigset_t room;
    return REAL(sigtimedwait)(without_ours(set, &room), ret_info, timeout);
}
