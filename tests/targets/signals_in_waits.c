/* Waits of five seconds, each of which an alarm ends after some milliseconds: signals_in_waits
 * COUNT prints how many were not ended by it, of each kind. */
#define _GNU_SOURCE
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 5, KINDS = 11 };

static volatile sig_atomic_t is_about_to_wait, was_early;

static void on_alarm(int signal)
{
    (void)signal;
    was_early |= !is_about_to_wait;
}

/* And again, since one that comes before a pause does not end it. */
static void set_alarm(void)
{
    struct itimerval soon = {.it_value.tv_usec = 2000 + rand() % 1000,
                             .it_interval.tv_sec = SECONDS};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static int pipe_end;
static pid_t child; /* which sleeps */

static void wait_once(int kind, int epoll, sem_t *semaphore)
{
    struct timespec time = {.tv_sec = SECONDS}, end;
    struct timeval value = {.tv_sec = SECONDS};
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += SECONDS;
    is_about_to_wait = 1;
    if (was_early)
        return;
    switch (kind) {
    case 0:
        nanosleep(&time, NULL);
        break;
    case 1:
        poll(NULL, 0, SECONDS * 1000);
        break;
    case 2:
        select(0, NULL, NULL, NULL, &value);
        break;
    case 3:
        epoll_wait(epoll, &event, 1, SECONDS * 1000);
        break;
    case 4:
        sem_timedwait(semaphore, &end);
        break;
    case 5:
        pause();
        break;
    case 6:
        sigsuspend(&none);
        break;
    case 7:
        read(pipe_end, &event, 1);
        break;
    case 8:
        sem_wait(semaphore);
        break;
    case 9:
        waitpid(child, NULL, 0);
        break;
    default:
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, NULL);
    }
}

int main(int count, char **values)
{
    static const char *const NAMES[KINDS] = {
        "nanosleep",  "poll", "select",   "epoll_wait", "sem_timedwait",  "pause",
        "sigsuspend", "read", "sem_wait", "waitpid",    "clock_nanosleep"};
    int epoll = epoll_create1(0), late[KINDS] = {0};
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = on_alarm}, NULL);
    int pipes[2];
    if (pipe(pipes) < 0)
        return 1;
    pipe_end = pipes[0];
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    for (int i = 0; count > 1 && i < atoi(values[1]); i++) {
        struct timespec begin, end;
        is_about_to_wait = was_early = 0;
        set_alarm();
        clock_gettime(CLOCK_MONOTONIC, &begin);
        wait_once(i % KINDS, epoll, &semaphore);
        clock_gettime(CLOCK_MONOTONIC, &end);
        late[i % KINDS] += end.tv_sec - begin.tv_sec >= SECONDS - 1;
    }
    for (int i = 0; i < KINDS; i++)
        printf("%s %d\n", NAMES[i], late[i]);
    kill(child, SIGKILL);
    return 0;
}
