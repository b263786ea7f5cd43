/* Functions that end with EINTR when a signal comes, however it was handled. Each is called for 0.2
 * seconds; prints its name and how many it took. The last ones are ended by an alarm, after 0.2. */
#define _GNU_SOURCE
#include <poll.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#define WAIT(name, call)                                                                           \
    do {                                                                                           \
        double begin = seconds(CLOCK_MONOTONIC);                                                   \
        call;                                                                                      \
        printf("%s %.2f\n", name, seconds(CLOCK_MONOTONIC) - begin);                               \
    } while (0)

static void do_nothing(int signal)
{
    (void)signal;
}

static void set_alarm(void)
{
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 200000}, NULL);
}

int main(void)
{
    struct timespec time = {.tv_nsec = 200000000}, end;
    struct timeval value = {.tv_usec = 200000};
    struct epoll_event event;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    int fd = epoll_create1(0);
    WAIT("nanosleep", nanosleep(&time, NULL));
    WAIT("clock_nanosleep", clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
    WAIT("usleep", usleep(200000));
    WAIT("poll", poll(NULL, 0, 200));
    WAIT("ppoll", ppoll(NULL, 0, &time, NULL));
    WAIT("select", select(0, NULL, NULL, NULL, &value));
    WAIT("pselect", pselect(0, NULL, NULL, NULL, &time, NULL));
    WAIT("epoll_wait", epoll_wait(fd, &event, 1, 200));
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_nsec += 200000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    WAIT("sem_timedwait", sem_timedwait(&semaphore, &end));
    int set = semget(IPC_PRIVATE, 1, 0600);
    struct sembuf take = {.sem_op = -1};
    WAIT("semtimedop", semtimedop(set, &take, 1, &time));
    semctl(set, 0, IPC_RMID);
    WAIT("thrd_sleep", thrd_sleep(&time, NULL));
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = do_nothing}, NULL);
    set_alarm();
    WAIT("sleep", sleep(5));
    set_alarm();
    WAIT("pause", pause());
    return 0;
}
