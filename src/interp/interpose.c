/* Functions of the C library that the sampler must know of when the program calls them. They have
 * the names of the real ones, so the preloaded object is asked first, does its part and calls the
 * next one of that name. While nothing is sampled all of them only pass on.
 *
 *     pthread_create                     a thread begins
 *     execve and its relatives           a signal that is still to come would end the new program,
 *     posix_spawn                        which is to be recorded, too (exec_environment.h)
 *     _exit                              the process ends, and its thread
 *     sigaction, signal, and older ones  our signal: hidden, or left to a program that wants it;
 *                                        and Python starts
 *     sigaltstack                        our handler needs a larger one than many have
 *     pthread_sigmask, sigprocmask       threads that block all signals are sampled as well
 *     sigwait and its relatives          a program that waits for all signals means its own
 *     sleep, poll and the like           end with our signal: interpose_waits.c
 *     close, close_range, closefrom      ours stays when a program closes all that it may have */
#include "interp/interpose.h"

#include "base/clock.h"
#include "interp/exec_environment.h"
#include "interp/sample_thread.h"
#include "interp/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT INTERPOSE_EXPORT

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int execve_function(const char *, char *const[], char *const[]);
typedef int fexecve_function(int, char *const[], char *const[]);
typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const[], char *const[]);
typedef void exit_function(int);
typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef void (*handler_function)(int);
typedef handler_function signal_function(int, handler_function);
typedef int sigignore_function(int);
typedef int sigaltstack_function(const stack_t *, stack_t *);
typedef int sigmask_function(int, const sigset_t *, sigset_t *);
typedef int sigwait_function(const sigset_t *, int *);
typedef int sigtimedwait_function(const sigset_t *, siginfo_t *, const struct timespec *);

enum { SIGNALS_IN_A_ROW = 16 };

typedef int close_function(int);
typedef int close_range_function(unsigned, unsigned, int);
typedef void closefrom_function(int);

/* The functions that the names stand for without us. */
static struct {
    create_function *pthread_create;
    execve_function *execve;
    execve_function *execvpe;
    fexecve_function *fexecve;
    spawn_function *posix_spawn;
    spawn_function *posix_spawnp;
    exit_function *_exit;
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
    close_function *close;
    close_range_function *close_range;
    closefrom_function *closefrom;
} found;

void interpose_find(const struct interpose_name *names, size_t count)
{
    if (*(void **)names[count - 1].place)
        return; /* all are there */
    for (size_t i = 0; i < count; i++)
        *(void **)names[i].place = dlsym(RTLD_NEXT, names[i].name);
}

__attribute__((constructor)) static void find(void)
{
    static const struct interpose_name NAMES[] = {
        {"pthread_create", &found.pthread_create},
        {"execvpe", &found.execvpe},
        {"fexecve", &found.fexecve},
        {"posix_spawn", &found.posix_spawn},
        {"posix_spawnp", &found.posix_spawnp},
        {"_exit", &found._exit},
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
        {"close", &found.close},
        {"close_range", &found.close_range},
        {"closefrom", &found.closefrom},
        {"execve", &found.execve},
    };
    interpose_find(NAMES, sizeof NAMES / sizeof *NAMES);
}

#define REAL(name) (find(), found.name)

/* --- threads --------------------------------------------------------------------------------- */

struct start {
    void *(*function)(void *);
    void *argument;
};

static void *run_thread(void *data)
{
    struct start start = *(struct start *)data;
    free(data);
    sampler_thread_begins();
    return start.function(start.argument);
}

EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*function)(void *), void *argument)
{
    struct start *start = NULL;
    if (sampler_is_on())
        start = malloc(sizeof *start);
    if (!start)
        return REAL(pthread_create)(thread, attributes, function, argument);
    *start = (struct start){function, argument};
    int error = REAL(pthread_create)(thread, attributes, run_thread, start);
    if (error)
        free(start);
    return error;
}

/* --- exec ------------------------------------------------------------------------------------ */

/* The environment for a new program: memory is that of the calling function, which may be in the
 * child of a vfork. */
#define COMPLETE(envp)                                                                             \
    ({                                                                                             \
        size_t bytes_ = exec_environment_bytes(envp, sampler_is_on());                             \
        exec_environment_complete(envp, bytes_ ? __builtin_alloca(bytes_) : NULL);                 \
    })

static int after_exec(int result)
{
    int error = errno;
    sampler_exec_failed();
    errno = error;
    return result;
}

/* What we have added may be too much. */
static bool was_too_much(char *const *envp, char *const *whole)
{
    return errno == E2BIG && whole != envp;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    char *const *whole = COMPLETE(envp);
    sampler_before_exec(path);
    int result = REAL(execve)(path, argv, whole);
    if (was_too_much(envp, whole))
        result = REAL(execve)(path, argv, envp);
    return after_exec(result);
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    char *const *whole = COMPLETE(envp);
    sampler_before_exec(file);
    int result = REAL(execvpe)(file, argv, whole);
    if (was_too_much(envp, whole))
        result = REAL(execvpe)(file, argv, envp);
    return after_exec(result);
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

/* Not inlined: there the compiler would know that nobody passes NULL. Some do, and the kernel
 * refuses. */
__attribute__((noinline)) static const char *first_argument(char *const *arguments)
{
    return arguments ? arguments[0] : NULL;
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    char *const *whole = COMPLETE(envp);
    sampler_before_exec(first_argument(argv));
    int result = REAL(fexecve)(fd, argv, whole);
    if (was_too_much(envp, whole))
        result = REAL(fexecve)(fd, argv, envp);
    return after_exec(result);
}

/* posix_spawn or posix_spawnp. */
static int spawn(spawn_function *real, pid_t *ret_pid, const char *file,
                 const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
                 char *const argv[], char *const envp[])
{
    char *const *whole = COMPLETE(envp);
    uint64_t time_ns = clock_ns(CLOCK_MONOTONIC);
    pid_t pid = 0;
    int error = real(&pid, file, actions, attributes, argv, whole);
    if (error == E2BIG && whole != envp)
        error = real(&pid, file, actions, attributes, argv, envp);
    if (error == 0)
        sampler_note_program(file, pid, time_ns);
    if (error == 0 && ret_pid)
        *ret_pid = pid;
    return error;
}

EXPORT int posix_spawn(pid_t *ret_pid, const char *path, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return spawn(REAL(posix_spawn), ret_pid, path, actions, attributes, argv, envp);
}

EXPORT int posix_spawnp(pid_t *ret_pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    return spawn(REAL(posix_spawnp), ret_pid, file, actions, attributes, argv, envp);
}

/* Arguments one by one, up to a NULL: how many, the first one included. */
static size_t count_arguments(va_list list)
{
    size_t count = 1;
    while (va_arg(list, char *))
        count++;
    return count;
}

/* ... and into an array of the caller's, which may be the child of a vfork: no malloc. */
static void take_arguments(const char *first, va_list list, size_t count, char **argv)
{
    argv[0] = (char *)first;
    for (size_t i = 1; i <= count; i++)
        argv[i] = va_arg(list, char *);
}

EXPORT int execl(const char *path, const char *argument, ...)
{
    va_list list;
    va_start(list, argument);
    size_t count = count_arguments(list);
    va_end(list);
    char **argv = __builtin_alloca((count + 1) * sizeof *argv);
    va_start(list, argument);
    take_arguments(argument, list, count, argv);
    va_end(list);
    return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *argument, ...)
{
    va_list list;
    va_start(list, argument);
    size_t count = count_arguments(list);
    va_end(list);
    char **argv = __builtin_alloca((count + 1) * sizeof *argv);
    va_start(list, argument);
    take_arguments(argument, list, count, argv);
    va_end(list);
    return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *argument, ...)
{
    va_list list;
    va_start(list, argument);
    size_t count = count_arguments(list);
    va_end(list);
    char **argv = __builtin_alloca((count + 1) * sizeof *argv);
    va_start(list, argument);
    take_arguments(argument, list, count, argv);
    char *const *envp = va_arg(list, char *const *);
    va_end(list);
    return execve(path, argv, envp);
}

/* --- exit ------------------------------------------------------------------------------------ */

EXPORT void _exit(int status)
{
    sampler_before_exit();
    REAL(_exit)(status);
    __builtin_unreachable();
}

EXPORT void _Exit(int status)
{
    _exit(status);
}

/* --- descriptors ----------------------------------------------------------------------------- */

EXPORT int close(int fd)
{
    if (fd < SAMPLER_FIRST_DESCRIPTOR || fd != sampler_descriptor())
        return REAL(close)(fd);
    errno = EBADF; /* as without us */
    return -1;
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    int ours = sampler_descriptor();
    if (ours < 0 || (unsigned)ours < first || (unsigned)ours > last)
        return REAL(close_range)(first, last, flags);
    unsigned number = (unsigned)ours;
    if (number > first && REAL(close_range)(first, number - 1, flags) < 0)
        return -1;
    return number < last ? REAL(close_range)(number + 1, last, flags) : 0;
}

EXPORT void closefrom(int first)
{
    int ours = sampler_descriptor();
    if (ours >= 0 && ours >= first) {
        for (int fd = first > 0 ? first : 0; fd < ours; fd++)
            REAL(close)(fd);
        first = ours + 1;
    }
    REAL(closefrom)(first);
}

/* --- signals --------------------------------------------------------------------------------- */

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

EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (!action && is_like_interpreter(signal))
        sampler_look_for_python();
    if (!sampler_handles_signal(signal))
        return REAL(sigaction)(signal, action, old);
    struct sigaction before;
    sampler_give_action(&before);
    if (action)
        sampler_set_action(action);
    if (old)
        *old = before;
    return 0;
}

/* One of the simple ways to set the action of our signal. */
static handler_function set_handler(int number, handler_function handler, int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    if (!(flags & SA_NODEFER))
        sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
}

EXPORT handler_function signal(int number, handler_function handler)
{
    return sampler_handles_signal(number) ? set_handler(number, handler, SA_RESTART)
                                          : REAL(signal)(number, handler);
}

/* What signal is in programs that are compiled for nothing but standard C. */
handler_function __sysv_signal(int number, handler_function handler);
EXPORT handler_function __sysv_signal(int number, handler_function handler)
{
    return sampler_handles_signal(number) ? set_handler(number, handler, SA_RESETHAND | SA_NODEFER)
                                          : REAL(__sysv_signal)(number, handler);
}

EXPORT handler_function sysv_signal(int number, handler_function handler)
{
    return __sysv_signal(number, handler);
}

/* And in System V's family. Its SIG_HOLD, to block, is refused for ours. */
handler_function sigset(int number, handler_function handler);
EXPORT handler_function sigset(int number, handler_function handler)
{
    return sampler_handles_signal(number) ? set_handler(number, handler, 0)
                                          : REAL(sigset)(number, handler);
}

int sigignore(int number);
EXPORT int sigignore(int number)
{
    if (!sampler_handles_signal(number))
        return REAL(sigignore)(number);
    return set_handler(number, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

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
