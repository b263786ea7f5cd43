/* Functions of the C library that the sampler must know of when the program calls them. They have
 * the names of the real ones, so the preloaded object is asked first, does its part and calls the
 * next one of that name. While nothing is sampled all of them only pass on.
 *
 *     pthread_create                     a thread begins
 *     execve and its relatives           a signal that is still to come would end the new program,
 *     posix_spawn                        which is to be recorded, too (exec_environment.h)
 *     _exit                              the process ends, and its thread
 *     sigaction, sigaltstack and others  what a program does with signals: interpose_signals.c
 *     sleep, poll and the like           end with our signal: interpose_waits.c
 *     write, recv and the like           the same, perhaps half-way: interpose_transfers.c
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
