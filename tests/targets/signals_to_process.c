/* Alarms for a process of two threads, both of which have them open: the main thread gets them,
 * with all that is known of them. signals_to_process COUNT prints how many went elsewhere. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t wrong, calls;

static void with_info(int signal, siginfo_t *info, void *context)
{
    (void)context;
    calls++;
    wrong += gettid() != getpid() || signal != SIGALRM || info->si_signo != SIGALRM ||
             info->si_code != SI_KERNEL;
}

static void plain(int signal)
{
    calls++;
    wrong += gettid() != getpid() || signal != SIGALRM;
}

static void *wait_for_ever(void *data)
{
    for (;;)
        pause();
    return data;
}

static void set_alarms(int count, const struct sigaction *action)
{
    sigaction(SIGALRM, action, NULL);
    calls = wrong = 0;
    for (int i = 0; i < count; i++) {
        struct itimerval soon = {.it_value.tv_usec = 1000 + i % 10 * 100};
        int before = calls;
        setitimer(ITIMER_REAL, &soon, NULL);
        while (calls == before)
            poll(NULL, 0, 100);
    }
    printf("%d of %d\n", (int)wrong, (int)calls);
}

int main(int argument_count, char **arguments)
{
    int count = argument_count > 1 ? atoi(arguments[1]) : 1;
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_ever, NULL);
    set_alarms(count, &(struct sigaction){.sa_sigaction = with_info, .sa_flags = SA_SIGINFO});
    set_alarms(count, &(struct sigaction){.sa_handler = plain});
    return 0;
}
