/* What a program sees of its own signal handlers: those that it has installed, whichever way.
 * Prints what differs, or "ok". */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t plain_calls, info_calls, given;

static void plain(int signal)
{
    plain_calls += signal == SIGUSR1;
}

static void another(int signal)
{
    (void)signal;
}

static void with_info(int signal, siginfo_t *info, void *context)
{
    info_calls += signal == SIGUSR2 && context != NULL;
    given = info->si_value.sival_int;
}

static void (*now(int signal))(int)
{
    struct sigaction action;
    sigaction(signal, NULL, &action);
    return action.sa_handler;
}

static int check(int is_right, const char *what)
{
    if (!is_right)
        puts(what);
    return !is_right;
}

static int ways_to_install(void)
{
    struct sigaction action = {.sa_handler = another, .sa_flags = SA_RESTART | SA_NODEFER}, old;
    sigaddset(&action.sa_mask, SIGCHLD);
    int wrong = check(signal(SIGUSR1, plain) == SIG_DFL, "signal: before");
    wrong += check(now(SIGUSR1) == plain, "signal: after");
    wrong += check(sigaction(SIGUSR1, &action, &old) == 0 && old.sa_handler == plain, "sigaction");
    wrong += check(sigaction(SIGUSR1, &action, &old) == 0 && old.sa_handler == another &&
                       (old.sa_flags & (SA_RESTART | SA_NODEFER | SA_SIGINFO)) ==
                           (SA_RESTART | SA_NODEFER) &&
                       sigismember(&old.sa_mask, SIGCHLD),
                   "sigaction: the same again");
    wrong += check(sysv_signal(SIGUSR1, plain) == another, "sysv_signal");
    raise(SIGUSR1);
    wrong += check(plain_calls == 1 && now(SIGUSR1) == SIG_DFL, "sysv_signal: once");
    wrong += check(signal(SIGUSR1, SIG_IGN) == SIG_DFL, "signal: default");
    wrong += check(signal(SIGUSR1, plain) == SIG_IGN, "signal: ignored");
    raise(SIGUSR1);
    wrong += check(now(SIGUSR1) == plain && plain_calls == 2, "signal: called");
    wrong += check(signal(0, plain) == SIG_ERR && signal(65, plain) == SIG_ERR &&
                       signal(-1, plain) == SIG_ERR && signal(SIGKILL, plain) == SIG_ERR,
                   "no such signals");
    return wrong +
           check(signal(SIGUSR1, SIG_ERR) == SIG_ERR && now(SIGUSR1) == plain, "no such handler");
}

static int information(void)
{
    struct sigaction action = {.sa_sigaction = with_info, .sa_flags = SA_SIGINFO}, old;
    sigaction(SIGUSR2, &action, NULL);
    sigqueue(getpid(), SIGUSR2, (union sigval){.sival_int = 42});
    int wrong = check(info_calls == 1 && given == 42, "information");
    return wrong + check(sigaction(SIGUSR2, NULL, &old) == 0 && old.sa_sigaction == with_info &&
                             old.sa_flags & SA_SIGINFO,
                         "information: old");
}

/* Children of both kinds have handlers of their own. */
static int children(void)
{
    int status;
    plain_calls = 0;
    signal(SIGUSR1, plain);
    pid_t child = vfork();
    if (child == 0) {
        int is_right = now(SIGUSR1) == plain;
        signal(SIGUSR1, another);
        _exit(!is_right || now(SIGUSR1) != another);
    }
    int wrong = check(waitpid(child, &status, 0) == child && status == 0, "vfork: child");
    raise(SIGUSR1);
    wrong += check(now(SIGUSR1) == plain && plain_calls == 1, "vfork: parent");
    child = fork();
    if (child == 0) {
        raise(SIGUSR1);
        int is_right = now(SIGUSR1) == plain && plain_calls == 2;
        _exit(!is_right || signal(SIGUSR1, another) != plain || now(SIGUSR1) != another);
    }
    wrong += check(waitpid(child, &status, 0) == child && status == 0, "fork: child");
    return wrong + check(now(SIGUSR1) == plain, "fork: parent");
}

int main(void)
{
    if (ways_to_install() + information() + children() == 0)
        puts("ok");
    return 0;
}
