/* Calls that a signal may end, in cases that are easily got wrong when they are to go on:
 * interrupted_calls NAME, prints "ok". */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char much[16 << 20];
static volatile sig_atomic_t signals;

static void count(int signal)
{
    (void)signal;
    signals++;
}

static void rest_ms(long ms)
{
    struct timespec time = {.tv_nsec = ms * 1000000};
    nanosleep(&time, NULL);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Two ends of a connection over loopback. */
static int connection(int *ret_other)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (struct sockaddr *)&address, bytes);
    listen(listener, 1);
    getsockname(listener, (struct sockaddr *)&address, &bytes);
    connect(one, (struct sockaddr *)&address, bytes);
    *ret_other = accept(listener, NULL, NULL);
    close(listener);
    return one;
}

/* One end, when another process has reset the connection, after it has sent so much. */
static int reset_connection(size_t sent)
{
    int other, one = connection(&other);
    if (fork() == 0) {
        struct linger at_once = {.l_onoff = 1};
        close(one);
        send(other, much, sent, 0);
        rest_ms(100);
        setsockopt(other, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close(other);
        _exit(0);
    }
    close(other);
    return one;
}

/* The call that is cut tells how much, the next one why. */
static int reset_while_sending(void)
{
    signal(SIGPIPE, count);
    int one = reset_connection(0);
    ssize_t sent = send(one, much, sizeof much, 0);
    ssize_t next = send(one, much, 1, 0);
    return !(sent > 0 && sent < (ssize_t)sizeof much && next == -1 && errno == ECONNRESET &&
             !signals);
}

static int reset_while_receiving(void)
{
    int one = reset_connection(100);
    ssize_t received = recv(one, much, 200, MSG_WAITALL), next = recv(one, much, 200, 0);
    return !(received == 100 && next == -1 && errno == ECONNRESET);
}

static int no_message(void)
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    struct msghdr *volatile none = NULL;
    struct msghdr nowhere = {.msg_iov = (struct iovec *)8, .msg_iovlen = 1};
    if (recvmsg(ends[0], none, MSG_WAITALL) != -1 || errno != EFAULT)
        return 1;
    return recvmsg(ends[0], &nowhere, MSG_WAITALL) != -1 || errno != EFAULT;
}

static void set_limit(int fd)
{
    struct timeval limit = {.tv_usec = 300000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/* Nobody accepts: poll says that it is ready all the same. */
static int connect_in_time(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), result;
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "pitviper-test-%d", (int)getpid());
    bind(listener, (struct sockaddr *)&address, sizeof address);
    listen(listener, 0);
    double begin = now();
    do {
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        set_limit(fd);
        result = connect(fd, (struct sockaddr *)&address, sizeof address);
    } while (result == 0);
    return !(errno == EAGAIN && now() - begin > 0.25 && now() - begin < 3);
}

static int datagrams_in_time(void)
{
    int ends[2];
    socketpair(AF_UNIX, SOCK_DGRAM, 0, ends);
    set_limit(ends[0]);
    double begin = now();
    while (send(ends[0], much, 100, 0) == 100)
        begin = now();
    return !(errno == EAGAIN && now() - begin > 0.25 && now() - begin < 3);
}

/* What does not fit is not tried: that would be a signal. */
static int limited_file(void)
{
    struct rlimit limit = {.rlim_cur = sizeof much / 2, .rlim_max = RLIM_INFINITY};
    int fd = memfd_create("limited", 0), whole = 0;
    signal(SIGXFSZ, count);
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 50; i++) {
        if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
            return 1;
        whole += write(fd, much, sizeof much) != (ssize_t)sizeof much / 2;
    }
    return whole || signals;
}

/* A handler after which the kernel goes on with the call. */
static int restarting_handler(void)
{
    int ends[2];
    signal(SIGALRM, count);
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    if (fork() == 0) {
        for (int i = 0; i < 2; i++) {
            rest_ms(50);
            send(ends[1], much, 100, 0);
        }
        _exit(0);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 20000}, NULL);
    return !(recv(ends[0], much, 200, MSG_WAITALL) == 200 && signals == 1);
}

static int error_number(void)
{
    int pipes[2];
    errno = 0;
    usleep(50000);
    poll(NULL, 0, 50);
    if (errno || pipe(pipes) < 0)
        return 1;
    if (fork() == 0) {
        close(pipes[1]);
        while (read(pipes[0], much, 65536) > 0)
            rest_ms(1);
        _exit(0);
    }
    return write(pipes[1], much, 1 << 20) != 1 << 20 || errno;
}

static int random_bytes(void)
{
    for (int i = 0; i < 10; i++)
        if (getrandom(much, 1 << 20, 0) != 1 << 20)
            return 1;
    return 0;
}

static int pause_for_one(void)
{
    signal(SIGALRM, count);
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 200000}, NULL);
    double begin = now();
    sigpause(SIGUSR2);
    return !(signals == 1 && now() - begin > 0.19);
}

static void jump_back(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    ucontext_t *at = context;
    signals += info->si_addr != (void *)at->uc_mcontext.gregs[REG_RIP];
    at->uc_mcontext.gregs[REG_RIP] = *(greg_t *)at->uc_mcontext.gregs[REG_RSP];
    at->uc_mcontext.gregs[REG_RSP] += sizeof(greg_t);
}

/* Calls to where there is nothing: the only fault is the program's own. */
static int nowhere_to_go(void)
{
    struct sigaction action = {.sa_sigaction = jump_back, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    void (*volatile nowhere)(void) = (void (*)(void))0x10100;
    double end = now() + 1;
    while (now() < end)
        nowhere();
    return signals;
}

int main(int argument_count, char **arguments)
{
    static const struct {
        const char *name;
        int (*function)(void);
    } CASES[] = {
        {"reset_while_sending", reset_while_sending},
        {"reset_while_receiving", reset_while_receiving},
        {"no_message", no_message},
        {"connect_in_time", connect_in_time},
        {"datagrams_in_time", datagrams_in_time},
        {"limited_file", limited_file},
        {"restarting_handler", restarting_handler},
        {"error_number", error_number},
        {"random_bytes", random_bytes},
        {"pause_for_one", pause_for_one},
        {"nowhere_to_go", nowhere_to_go},
    };
    for (size_t i = 0; argument_count > 1 && i < sizeof CASES / sizeof *CASES; i++)
        if (strcmp(arguments[1], CASES[i].name) == 0 && CASES[i].function() == 0)
            puts("ok");
    return 0;
}
