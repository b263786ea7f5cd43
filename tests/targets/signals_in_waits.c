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
#include <time.h>
#include <unistd.h>

enum { SECONDS = 5, KINDS = 8 };

static void do_nothing(int signal)
{
    (void)signal;
}

/* And again, since one that comes before a pause does not end it. */
static void set_alarm(void)
{
    struct itimerval soon = {.it_value.tv_usec = 2000 + rand() % 1000,
                             .it_interval.tv_sec = SECONDS};
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void wait_once(int kind, int epoll, sem_t *semaphore)
{
    struct timespec time = {.tv_sec = SECONDS}, end;
    struct timeval value = {.tv_sec = SECONDS};
    struct epoll_event event;
    sigset_t none;
    sigemptyset(&none);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += SECONDS;
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
    default:
        clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &end, NULL);
    }
}

int main(int count, char **values)
{
    static const char *const NAMES[KINDS] = {"nanosleep",  "poll",           "select",
                                             "epoll_wait", "sem_timedwait",  "pause",
                                             "sigsuspend", "clock_nanosleep"};
    int epoll = epoll_create1(0), late[KINDS] = {0};
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = do_nothing}, NULL);
    for (int i = 0; count > 1 && i < atoi(values[1]); i++) {
        struct timespec begin, end;
        set_alarm();
        clock_gettime(CLOCK_MONOTONIC, &begin);
        wait_once(i % KINDS, epoll, &semaphore);
        clock_gettime(CLOCK_MONOTONIC, &end);
        late[i % KINDS] += end.tv_sec - begin.tv_sec >= SECONDS - 1;
    }
    for (int i = 0; i < KINDS; i++)
        printf("%s %d\n", NAMES[i], late[i]);
    return 0;
}
