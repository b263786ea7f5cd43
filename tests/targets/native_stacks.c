/* A native program whose stacks have everything that is hard to unwind: signal handlers on top of
 * interrupted code, calls through the PLT, callbacks out of libc, stacks realigned for vectors,
 * frames of a size that is only known at run time, the vdso; and, with LD_BIND_NOT=1 in the
 * environment, ld.so's resolver in every call.
 *
 *     native_stacks SECONDS       of CPU time */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline)) static void spin(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++)
        sink += i * i;
}

/* Interrupts whatever runs, itself included. */
static void on_alarm(int signal)
{
    (void)signal;
    spin(100000);
}

static int compare(const void *left, const void *right)
{
    char a[16], b[16];
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    strncpy(a, left, sizeof a - 1);
    strncpy(b, right, sizeof b - 1);
    return memcmp(a, b, sizeof a);
}

/* The locals want 64 bytes of alignment; the caller promised 16. */
__attribute__((noinline)) static uint64_t realigned(unsigned bytes)
{
    uint64_t vector[8] __attribute__((aligned(64)));
    volatile char *buffer = __builtin_alloca(bytes);
    for (unsigned i = 0; i < bytes; i += 16)
        buffer[i] = (char)i;
    for (unsigned i = 0; i < 8; i++)
        vector[i] = (uint64_t)(uintptr_t)&vector[i] + (uint64_t)buffer[0];
    spin((unsigned)(vector[3] % 64) + 2000);
    return vector[1];
}

__attribute__((noinline)) static uint64_t recurse(unsigned depth)
{
    if (!depth)
        return realigned(200);
    return recurse(depth - 1) + depth;
}

static void ask_for_time(void)
{
    struct timespec now;
    for (int i = 0; i < 2000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        sink += (uint64_t)now.tv_nsec;
    }
}

int main(int argc, char **argv)
{
    static char records[400][16];
    double end = cpu_seconds() + (argc > 1 ? atof(argv[1]) : 1);
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_NODEFER | SA_RESTART};
    struct itimerval every = {{0, 1000}, {0, 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    while (cpu_seconds() < end) {
        for (size_t i = 0; i < 400; i++) {
            for (size_t j = 0; j < 15; j++)
                records[i][j] = (char)('a' + rand() % 26);
        }
        qsort(records, 400, sizeof records[0], compare);
        for (int i = 0; i < 30; i++)
            sink += recurse(20);
        ask_for_time();
    }
    return 0;
}
