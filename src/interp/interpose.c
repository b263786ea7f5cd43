/* Functions of the C library that the sampler must know of when the program calls them. They have
 * the names of the real ones, so the preloaded object is asked first, does its part and calls the
 * next one of that name. While nothing is sampled all of them only pass on.
 *
 *     pthread_create                     a thread begins
 *     execve and its relatives           a signal that is still to come would end the new program
 *     sigaction, signal                  our signal: hidden, or left to a program that wants it;
 *                                        and Python starts
 *     pthread_sigmask, sigprocmask       threads that block all signals are sampled as well
 *     sigwait and its relatives          a program that waits for all signals means its own
 *     close, close_range, closefrom      ours stays when a program closes all that it may have */
#include "interp/interpose.h"

#include "interp/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
typedef int execve_function(const char *, char *const[], char *const[]);
typedef int fexecve_function(int, char *const[], char *const[]);
typedef int sigaction_function(int, const struct sigaction *, struct sigaction *);
typedef void (*handler_function)(int);
typedef handler_function signal_function(int, handler_function);
typedef int sigmask_function(int, const sigset_t *, sigset_t *);
typedef int sigwait_function(const sigset_t *, int *);
typedef int sigtimedwait_function(const sigset_t *, siginfo_t *, const struct timespec *);

typedef int close_function(int);
typedef int close_range_function(unsigned, unsigned, int);
typedef void closefrom_function(int);

/* The functions that the names stand for without us. */
static struct {
    create_function *pthread_create;
    execve_function *execve;
    execve_function *execvpe;
    fexecve_function *fexecve;
    sigaction_function *sigaction;
    signal_function *signal;
    sigmask_function *pthread_sigmask;
    sigmask_function *sigprocmask;
    sigwait_function *sigwait;
    sigtimedwait_function *sigtimedwait;
    close_function *close;
    close_range_function *close_range;
    closefrom_function *closefrom;
} found;

/* When we are loaded, since some of them may be called in signal handlers and after fork, where
 * looking for a function may wait for ever; or at the first call, if another object's start is
 * earlier. */
__attribute__((constructor)) static void find(void)
{
    static const struct {
        const char *name;
        void *place;
    } NAMES[] = {
        {"pthread_create", &found.pthread_create},
        {"execvpe", &found.execvpe},
        {"fexecve", &found.fexecve},
        {"sigaction", &found.sigaction},
        {"signal", &found.signal},
        {"pthread_sigmask", &found.pthread_sigmask},
        {"sigprocmask", &found.sigprocmask},
        {"sigwait", &found.sigwait},
        {"sigtimedwait", &found.sigtimedwait},
        {"close", &found.close},
        {"close_range", &found.close_range},
        {"closefrom", &found.closefrom},
        {"execve", &found.execve}, /* the last: with it, all are there */
    };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES && !found.execve; i++)
        *(void **)NAMES[i].place = dlsym(RTLD_NEXT, NAMES[i].name);
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

static int after_exec(int result)
{
    int error = errno;
    sampler_exec_failed();
    errno = error;
    return result;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    sampler_before_exec();
    return after_exec(REAL(execve)(path, argv, envp));
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
    sampler_before_exec();
    return after_exec(REAL(execvpe)(file, argv, envp));
}

EXPORT int execvp(const char *file, char *const argv[])
{
    return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const envp[])
{
    sampler_before_exec();
    return after_exec(REAL(fexecve)(fd, argv, envp));
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

EXPORT int sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
    if (!action)
        sampler_look_for_python();
    if (!sampler_handles_signal(signal))
        return REAL(sigaction)(signal, action, old);
    struct sigaction before;
    sampler_give_action(&before);
    if (action && sampler_set_action(signal, action) < 0)
        return -1;
    if (old)
        *old = before;
    return 0;
}

EXPORT handler_function signal(int number, handler_function handler)
{
    if (!sampler_handles_signal(number))
        return REAL(signal)(number, handler);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART}, old;
    sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &old) < 0 ? SIG_ERR : old.sa_handler;
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

EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *ret_info, const struct timespec *timeout)
{
    sigset_t room;
    return REAL(sigtimedwait)(without_ours(set, &room), ret_info, timeout);
}

EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *ret_info)
{
    return sigtimedwait(set, ret_info, NULL);
}
