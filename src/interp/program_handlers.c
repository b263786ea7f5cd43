/* The kernel has our handler, the program knows of its own:
 *
 *     sigaction(SIGALRM, {on_alarm})    kernel: count_and_call    theirs[SIGALRM] = on_alarm
 *     sigaction(SIGALRM, NULL, &old)    old: on_alarm
 *     the signal comes                  count_and_call -> on_alarm
 *
 * There are two of ours, for handlers with SA_SIGINFO and without. The program's handler is in the
 * table before the kernel is told, so it may be called once with the flags of the one before, but
 * never without the information that it needs. Ours end by jumping to theirs: there is no frame
 * more on the stack than without us. Handlers that somebody has given the kernel past the C library
 * are not counted. What is in the tables is good as long as the kernel has ours, so nothing is ever
 * taken out of them. */
#include "interp/program_handlers.h"

#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <signal.h>
#include <stdatomic.h>
#include <ucontext.h>

typedef void handler_with_info(int, siginfo_t *, void *);

/* Handlers of both kinds are called with three arguments, by the kernel, too. */
typedef _Atomic(handler_with_info *) handler_table[NSIG];

static handler_table plain, with_info;

/* Whether the kernel will make the system call again that the signal has ended: then it does not
 * count. The processor has left in RCX where that call returns to. */
static bool goes_on(const void *context)
{
    enum { SYSCALL_BYTES = 2 };
    const greg_t *registers = ((const ucontext_t *)context)->uc_mcontext.gregs;
    return registers[REG_RCX] == registers[REG_RIP] + SYSCALL_BYTES;
}

static void count(const void *context)
{
    struct sample_thread *thread = sample_thread_mine();
    if (thread && !goes_on(context))
        thread->handled++;
}

static void count_and_call(int signal, siginfo_t *info, void *context)
{
    count(context);
    plain[signal](signal, info, context);
}

static void count_and_call_with_info(int signal, siginfo_t *info, void *context)
{
    count(context);
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

program_handler program_handlers_count(int signal, program_handler handler, bool has_info)
{
    if (!is_theirs(handler) || !is_signal(signal) || !sampler_counts_handlers())
        return handler;
    (has_info ? with_info : plain)[signal] = (handler_with_info *)(void *)handler;
    return handler_of(has_info ? count_and_call_with_info : count_and_call);
}

program_handler program_handlers_name(program_handler had, struct program_handlers before)
{
    return had == handler_of(count_and_call)             ? before.plain
           : had == handler_of(count_and_call_with_info) ? before.with_info
                                                         : had;
}
