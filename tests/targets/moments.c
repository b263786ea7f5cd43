/* Moments in which a program is easily disturbed: moments NAME, prints "ok". Also a shared library,
 * whose constructor starts a thread and waits for it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char **arguments;

static void spend(unsigned long rounds)
{
    for (volatile unsigned long i = 0; i < rounds; i++)
        ;
}

#ifdef LIBRARY

static void *do_nothing(void *data)
{
    return data;
}

/* The loader holds its lock meanwhile. */
__attribute__((constructor)) static void start_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        pthread_join(thread, NULL);
}

#else

static int constructor(void)
{
    return dlopen(arguments[2], RTLD_NOW) ? 0 : 1;
}

static void *wait_for_ever(void *data)
{
    pause();
    return data;
}

static void become_itself(int signal)
{
    static char left[16];
    (void)signal;
    snprintf(left, sizeof left, "%d", atoi(arguments[2]) - 1);
    arguments[2] = left;
    execv("/proc/self/exe", arguments);
}

/* In the midst of malloc, a handler becomes the next one of so many programs. */
static int exec_in_handler(void)
{
    sigset_t none;
    pthread_t thread;
    if (atoi(arguments[2]) == 0)
        return 0;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    pthread_create(&thread, NULL, wait_for_ever, NULL); /* now malloc locks */
    signal(SIGALRM, become_itself);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 3000}, NULL);
    void *kept[64] = {0};
    for (unsigned i = 0;; i++) {
        free(kept[i % 64]);
        kept[i % 64] = malloc(5000 + i % 3000);
    }
}

/* A handler with all signals blocked works, and becomes the program in arguments[2]. */
static void work_and_exec(int signal)
{
    (void)signal;
    spend(50000000);
    execl(arguments[2], "moments", "unblocked", (char *)NULL);
}

static int exec_with_signals_blocked(void)
{
    struct sigaction action = {.sa_handler = work_and_exec};
    sigfillset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
    raise(SIGHUP);
    return 1;
}

/* That program, which we are not in: a signal of ours that has waited would end it. */
static int unblocked(void)
{
    sigset_t none;
    sigemptyset(&none);
    return sigprocmask(SIG_SETMASK, &none, NULL);
}

static void *fork_when_cancelled(void *ret_status)
{
    pthread_cancel(pthread_self());
    pid_t child = fork();
    if (child == 0)
        _exit(7);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    waitpid(child, ret_status, 0);
    return NULL;
}

static int fork_with_cancellation(void)
{
    int status = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, fork_when_cancelled, &status);
    pthread_join(thread, NULL);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 7;
}

/* The stack pointer is at the end of the last page that there is. */
static int empty_stack(void)
{
#ifdef __x86_64__
    enum { BYTES = 65536, PAGE = 4096 };
    char *stack = mmap(NULL, BYTES + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    munmap(stack + BYTES, PAGE);
    for (int i = 0; i < 100; i++)
        __asm__ volatile("mov %%rsp, %%rbx; mov %0, %%rsp; mov $2000000, %%ecx;"
                         "1: dec %%ecx; jnz 1b; mov %%rbx, %%rsp" ::"r"(stack + BYTES)
                         : "rbx", "rcx", "memory");
#endif
    return 0;
}

void (*__sysv_signal(int, void (*)(int)))(int);

/* Each signal as it was, by what `signal` is in standard C. */
static int default_actions(void)
{
    for (int number = 1; number < 32; number++)
        __sysv_signal(number, SIG_DFL);
    spend(200000000);
    return 0;
}

/* A signal stack that is too small for others: what lies before it stays as it is, and the program
 * sees its own. */
static int small_signal_stack(void)
{
    enum { BYTES = 4096, BEFORE = 16384 };
    char *memory = calloc(1, BEFORE + BYTES);
    stack_t mine = {.ss_sp = memory + BEFORE, .ss_size = BYTES}, none = {.ss_flags = SS_DISABLE},
            seen;
    if (sigaltstack(&mine, &seen) < 0 || !(seen.ss_flags & SS_DISABLE))
        return 1;
    spend(100000000);
    if (sigaltstack(&none, &seen) < 0 || seen.ss_sp != mine.ss_sp || seen.ss_size != BYTES)
        return 1;
    for (size_t i = 0; i < BEFORE; i++)
        if (memory[i])
            return 1;
    return sigaltstack(NULL, &seen) < 0 || !(seen.ss_flags & SS_DISABLE);
}

static int no_program(void)
{
    char *const *volatile nothing = NULL;
    const char *volatile nobody = NULL;
    char *list[] = {"x", NULL};
    return execve(nobody, list, list) != -1 || errno != EFAULT ||
           fexecve(0, nothing, nothing) != -1;
}

int main(int count, char **values)
{
    static const struct {
        const char *name;
        int (*function)(void);
    } MOMENTS[] = {
        {"constructor", constructor},
        {"exec_in_handler", exec_in_handler},
        {"exec_with_signals_blocked", exec_with_signals_blocked},
        {"unblocked", unblocked},
        {"fork_with_cancellation", fork_with_cancellation},
        {"empty_stack", empty_stack},
        {"default_actions", default_actions},
        {"small_signal_stack", small_signal_stack},
        {"no_program", no_program},
    };
    arguments = values;
    for (size_t i = 0; count > 1 && i < sizeof MOMENTS / sizeof *MOMENTS; i++)
        if (strcmp(values[1], MOMENTS[i].name) == 0 && MOMENTS[i].function() == 0)
            puts("ok");
    return 0;
}

#endif
