/* The C library's functions have names that tell it, in every build. Those of the interpreter tell
 * more, but not all builds have their names, so they are used where they are there:
 *
 *     time.sleep()     time_sleep -> select (3.10 and before), clock_nanosleep
 *     lock.acquire()   PyThread_acquire_lock_timed -> sem_clockwait -> futex_abstimed_wait_common
 *     waiting to run   take_gil -> pthread_cond_timedwait -> futex_abstimed_wait_common
 *
 * CPython has no other use for condition variables and their mutexes than the GIL; its locks are
 * semaphores. A thread that is in no system call, but in code of Python or of a library, would run
 * if there were a CPU for it.
 *
 * The signal that takes a sample ends some waits (EINTR), and Python repeats these itself: sleep,
 * select and its like, locks with a timeout; recv with a timeout waits by poll. Others the kernel
 * repeats before anybody notices (SA_RESTART): reading and writing, recv without a timeout, waiting
 * for a process. Locks without a timeout belong to these, but in the C library both are in the same
 * functions. */
#include "report/waits.h"

#include <string.h>

static const struct {
    const char *label;
    const char *word;
} kinds[WAIT_KINDS] = {
    [WAIT_OTHER] = {"something else", "other"},
    [WAIT_CPU] = {"a free CPU", "cpu"},
    [WAIT_SLEEP] = {"sleep", "sleep"},
    [WAIT_LOCK] = {"lock", "lock"},
    [WAIT_GIL] = {"GIL", "gil"},
    [WAIT_READY] = {"select or poll", "select"},
    [WAIT_NETWORK] = {"network", "network"},
    [WAIT_FILE] = {"file or pipe", "file"},
    [WAIT_PROCESS] = {"process", "process"},
};

/* Separated by spaces; without what is before and behind a name, see bare(). */
static const char *const names[WAIT_KINDS] = {
    [WAIT_SLEEP] = " clock_nanosleep nanosleep usleep sleep pause time_sleep pysleep ",
    [WAIT_LOCK] =
        " PyThread_acquire_lock_timed PySemaphore_Wait sem_wait sem_timedwait sem_clockwait"
        " new_sem_wait new_sem_wait_slow"
        " futex_abstimed_wait_common lll_lock_wait"
        " pthread_mutex_lock pthread_mutex_timedlock pthread_rwlock_rdlock"
        " pthread_rwlock_wrlock pthread_cond_wait pthread_cond_timedwait"
        " pthread_cond_clockwait pthread_barrier_wait pthread_join pthread_clockjoin_np"
        " pthread_timedjoin_np ",
    [WAIT_GIL] = " take_gil ",
    [WAIT_READY] = " select pselect poll ppoll epoll_wait epoll_pwait epoll_pwait2 ",
    [WAIT_NETWORK] = " recv recvfrom recvmsg recvmmsg send sendto sendmsg sendmmsg accept accept4"
                     " connect ",
    [WAIT_FILE] = " read write pread pwrite readv writev preadv pwritev"
                  " open openat fsync fdatasync flock fcntl"
                  " sendfile copy_file_range splice ioctl ",
    [WAIT_PROCESS] = " wait wait3 wait4 waitid waitpid ",
};

static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; at && (at = strchr(at, ' ')) != NULL; at++)
        if (strncmp(at + 1, word, length) == 0 && at[1 + length] == ' ')
            return true;
    return false;
}

/* One function has many names: __wait4, __GI___wait4, __libc_recv; pread64@@GLIBC_2.2.5. */
static const char *bare(const char *name)
{
    static const char *const prefixes[] = {"_", "GI_", "libc_"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t length = strlen(prefixes[i]);
        if (strncmp(name, prefixes[i], length) == 0)
            return bare(name + length);
    }
    return name;
}

static enum wait_kind kind_of_name(const char *name)
{
    name = bare(name);
    size_t length = strcspn(name, "@");
    if (length > 2 && strncmp(name + length - 2, "64", 2) == 0)
        length -= 2;
    for (enum wait_kind kind = 0; length && kind < WAIT_KINDS; kind++)
        if (has_word(names[kind], name, length))
            return kind;
    return WAIT_OTHER;
}

static bool is_what_the_gil_is_made_of(const char *name)
{
    name = bare(name);
    return strncmp(name, "pthread_cond_", strlen("pthread_cond_")) == 0 ||
           strncmp(name, "pthread_mutex_", strlen("pthread_mutex_")) == 0;
}

/* Code that makes no system calls by itself. */
static bool only_runs(const struct profile *profile, const struct profile_function *function)
{
    switch (profile->modules.items[function->module].kind) {
    case PROFILE_MODULE_PYTHON:
    case PROFILE_MODULE_INTERPRETER:
    case PROFILE_MODULE_EXTENSION:
        return true;
    default:
        return false;
    }
}

enum wait_kind waits_in(const struct profile *profile, const struct profile_function *function,
                        const struct profile_function *caller, enum wait_kind outer)
{
    const char *name = profile_text(profile, function->name);
    if (function->kind == PROFILE_FUNCTION_PYTHON)
        return WAIT_CPU;
    if (outer == WAIT_GIL || outer == WAIT_SLEEP)
        return outer; /* what these are made of says less */
    enum wait_kind kind = kind_of_name(name);
    if (kind == WAIT_LOCK && caller && is_what_the_gil_is_made_of(name) &&
        profile->modules.items[caller->module].kind == PROFILE_MODULE_INTERPRETER)
        return WAIT_GIL;
    if (kind != WAIT_OTHER)
        return kind;
    if (outer != WAIT_OTHER && outer != WAIT_CPU)
        return outer;
    return only_runs(profile, function) ? WAIT_CPU : WAIT_OTHER;
}

bool waits_end_by_signal(enum wait_kind kind)
{
    return kind == WAIT_SLEEP || kind == WAIT_LOCK || kind == WAIT_READY;
}

const char *waits_label(enum wait_kind kind)
{
    return kinds[kind].label;
}

const char *waits_word(enum wait_kind kind)
{
    return kinds[kind].word;
}
