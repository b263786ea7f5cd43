/* In order of preference, for CPU time:
 *
 *     perf event with the kernel's time    SIGTRAP    precise, any frequency; needs the permission
 *     perf event without it                SIGTRAP    time in the kernel is seen a moment later
 *     CPU-time timer                       SIGSTKFLT  at every tick of the kernel that it falls in
 *
 * The event (`sigtrap`, Linux 5.13) interrupts the thread that ran, wherever it is, is inherited by
 * the threads that come later, and ends at exec. A timer belongs to one thread. Both signals keep
 * one pending at most; real-time signals would queue up. SIGSTKFLT is sent by nothing on Linux.
 *
 * Wall-clock time is a timer too: nothing in the kernel interrupts a thread that sleeps. */
#include "interp/sample_trigger.h"

#include "interp/sampler.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { NS_PER_SECOND = 1000000000 };

#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

static int event_fd = -1;
static uint64_t event_id; /* the kernel's, of the event that event_fd was opened for */

static int open_event(uint32_t frequency_hz, bool with_kernel)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_CPU_CLOCK,
                                   .size = PERF_ATTR_SIZE_VER7,
                                   .sample_period = NS_PER_SECOND / frequency_hz,
                                   .disabled = 1,
                                   .inherit = 1,
                                   .inherit_thread = 1,
                                   .remove_on_exec = 1,
                                   .sigtrap = 1,
                                   .exclude_kernel = !with_kernel,
                                   .exclude_hv = 1};
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return -1;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SAMPLER_FIRST_DESCRIPTOR);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    return fd;
}

/* Whether the descriptor is still that of the event: dup2 may have put another one in its place. */
static bool has_event(void)
{
    uint64_t id = 0;
    return event_fd >= 0 && ioctl(event_fd, PERF_EVENT_IOC_ID, &id) == 0 && id == event_id;
}

int sample_trigger_descriptor(void)
{
    return has_event() ? event_fd : -1;
}

int sample_trigger_signal(enum sample_trigger trigger)
{
    switch (trigger) {
    case SAMPLE_TRIGGER_PERF:
    case SAMPLE_TRIGGER_PERF_USER:
        return SIGTRAP;
    case SAMPLE_TRIGGER_CPU_TIMER:
    case SAMPLE_TRIGGER_WALL_TIMER:
        return SIGSTKFLT;
    default:
        return 0;
    }
}

static bool start_timer(clockid_t clock, uint32_t frequency_hz, struct sample_thread *thread)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGSTKFLT};
    event._sigev_un._tid = (pid_t)thread->tid;
    event.sigev_value.sival_ptr = &event_fd; /* tells ours from others' */
    if (timer_create(clock, &event, &thread->timer) < 0)
        return false;
    thread->has_timer = true;
    long period = (long)(NS_PER_SECOND / frequency_hz);
    struct timespec interval = {.tv_sec = period / NS_PER_SECOND,
                                .tv_nsec = period % NS_PER_SECOND};
    struct itimerspec times = {.it_interval = interval, .it_value = interval};
    return timer_settime(thread->timer, 0, &times, NULL) == 0;
}

enum sample_trigger sample_trigger_start(enum sample_clock clock, uint32_t frequency_hz,
                                         struct sample_thread *thread)
{
    if (clock == SAMPLE_CLOCK_WALL)
        return start_timer(CLOCK_MONOTONIC, frequency_hz, thread) ? SAMPLE_TRIGGER_WALL_TIMER
                                                                  : SAMPLE_TRIGGER_NONE;
    enum sample_trigger trigger = SAMPLE_TRIGGER_PERF;
    event_fd = open_event(frequency_hz, true);
    if (event_fd < 0) {
        trigger = SAMPLE_TRIGGER_PERF_USER;
        event_fd = open_event(frequency_hz, false);
    }
    if (event_fd >= 0 && ioctl(event_fd, PERF_EVENT_IOC_ID, &event_id) == 0 &&
        ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) == 0)
        return trigger;
    if (start_timer(CLOCK_THREAD_CPUTIME_ID, frequency_hz, thread))
        return SAMPLE_TRIGGER_CPU_TIMER;
    return SAMPLE_TRIGGER_NONE;
}

void sample_trigger_add(enum sample_trigger trigger, uint32_t frequency_hz,
                        struct sample_thread *thread)
{
    if (trigger == SAMPLE_TRIGGER_CPU_TIMER)
        start_timer(CLOCK_THREAD_CPUTIME_ID, frequency_hz, thread);
    else if (trigger == SAMPLE_TRIGGER_WALL_TIMER)
        start_timer(CLOCK_MONOTONIC, frequency_hz, thread);
}

void sample_trigger_remove(struct sample_thread *thread)
{
    if (thread->has_timer)
        timer_delete(thread->timer);
    thread->has_timer = false;
}

void sample_trigger_pause(void)
{
    if (has_event())
        ioctl(event_fd, PERF_EVENT_IOC_DISABLE, 0);
}

void sample_trigger_resume(void)
{
    if (has_event())
        ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0);
}

void sample_trigger_forget(struct sample_thread *thread)
{
    int fd = sample_trigger_descriptor();
    event_fd = -1;
    if (fd >= 0)
        close(fd);
    thread->has_timer = false; /* timers are not inherited */
}

bool sample_trigger_is_source(const siginfo_t *info)
{
    if (info->si_signo == SIGTRAP)
        return info->si_code == TRAP_PERF;
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == &event_fd;
}
