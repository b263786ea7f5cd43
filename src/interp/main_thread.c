/* A signal that is sent to a process (Ctrl-C, kill, an alarm, the end of a child) goes to its main
 * thread, unless that one blocks it: then to any other. Python's own handlers count on that: they
 * only note that the signal has come, and it is the main thread whose wait must end. Our handler
 * blocks everything, for 20 us or so. A signal that comes meanwhile interrupts another thread, of
 * 300 alarms 10 to 25 at 999 Hz of wall-clock time, and the main thread sleeps on.
 *
 * So such a signal is sent on to the main thread, if that one has it open. The kernel lets nobody
 * send it as it came, so what came with it is kept here until the main thread has it. Of signals
 * that are meant for one thread (pthread_kill, faults, SIGPIPE), or for the one that runs
 * (SIGPROF), none is taken away from it. */
#include "interp/main_thread.h"

#include "base/number.h"
#include "interp/interpose.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static sigset_t blocked_before; /* our handler began */
static siginfo_t kept[NSIG];    /* of signals that were sent on; one of a kind is pending at most */

void main_thread_is_sampled(const sigset_t *blocked)
{
    blocked_before = *blocked;
}

static bool is_for_process(int signal, const siginfo_t *info)
{
    bool is_sent =
        info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_KERNEL;
    switch (signal) {
    case SIGHUP:
    case SIGINT:
    case SIGQUIT:
    case SIGUSR1:
    case SIGUSR2:
    case SIGALRM:
    case SIGTERM:
    case SIGCONT:
    case SIGTSTP:
    case SIGWINCH:
        return is_sent;
    case SIGCHLD:
        return is_sent || info->si_code > 0;
    default:
        return false;
    }
}

static const char *find_behind(const char *text, const char *name)
{
    const char *place = strstr(text, name);
    return place ? place + strlen(name) : NULL;
}

/* Which signals the main thread blocks, as the kernel has it. False when it has ended. */
static bool read_blocked(uint64_t *ret_bits)
{
    char text[2048];
    /* The main thread's. Not by functions in which a thread may be cancelled. */
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
    long length = fd >= 0 ? syscall(SYS_read, fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        syscall(SYS_close, fd);
    text[length > 0 ? length : 0] = '\0';
    const char *state = find_behind(text, "\nState:\t"), *bits = find_behind(text, "\nSigBlk:\t");
    return state && *state != 'Z' && *state != 'X' && bits && number_take(&bits, 16, ret_bits);
}

/* The C library lets no program block its own two signals: where they are, it is our handler. */
static bool is_open(int signal)
{
    const uint64_t ONLY_OURS = UINT64_C(3) << (32 - 1);
    uint64_t bits;
    if (!read_blocked(&bits))
        return false;
    return (bits & ONLY_OURS) == ONLY_OURS ? !sigismember(&blocked_before, signal)
                                           : !(bits >> (signal - 1) & 1);
}

/* After SA_RESETHAND the signal would end the process. */
static bool is_handled_again(int signal)
{
    struct sigaction now;
    return interpose_sigaction(signal, NULL, &now) == 0 && !(now.sa_flags & SA_RESETHAND);
}

static bool send_on(int signal, pid_t pid, const siginfo_t *info)
{
    siginfo_t sent = {.si_signo = signal, .si_code = SI_QUEUE};
    sent.si_value.sival_ptr = &kept[signal];
    kept[signal] = *info;
    return syscall(SYS_rt_tgsigqueueinfo, pid, pid, signal, &sent) == 0;
}

bool main_thread_takes(int signal, siginfo_t *info)
{
    pid_t pid = getpid();
    if (gettid() != pid)
        return is_for_process(signal, info) && is_handled_again(signal) && is_open(signal) &&
               send_on(signal, pid, info);
    if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &kept[signal])
        *info = kept[signal];
    return false;
}
