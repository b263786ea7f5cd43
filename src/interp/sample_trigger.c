/* In order of preference, for CPU time:
 *
 *     perf event with the kernel's stack   SIGTRAP    precise, any frequency; needs the permission
 *     perf event with the kernel's time    SIGTRAP    the same, where memory can't be locked
 *     perf event without it                SIGTRAP    time in the kernel is seen a moment later
 *     CPU-time timer                       SIGSTKFLT  at every tick of the kernel that it falls in
 *
 * An event (`sigtrap`, Linux 5.13) interrupts the thread that ran, wherever it is, ends at exec,
 * and is inherited by the threads that come later. With the kernel's stack there is one for each
 * processor, for only such events may have a buffer and be inherited. A timer belongs to one
 * thread. Of both signals few are ever pending; real-time signals would queue up. SIGSTKFLT is sent
 * by nothing on Linux.
 *
 * Wall-clock time is a timer too: nothing in the kernel interrupts a thread that sleeps.
 *
 * Events are missing where threads come and go all the time: when a thread ends, the kernel throws
 * away how far an event had come that it has handed on to it from another. So each thread that has
 * an event has a timer, too, which looks whether its CPU time has gone on without one. It comes
 * with the ticks of the kernel's clock. In young threads it comes with every tick, and its samples
 * are those that count: sample_rest.c. */
#include "interp/sample_trigger.h"

#include "base/clock.h"
#include "interp/sample_kernel.h"
#include "interp/sampler.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    NS_PER_SECOND = 1000000000,
    TICK_NS = 4000000, /* of a thread's time, from one look for missing events to the next ... */
    TICK_PERIODS = 4,  /* ... or so many periods; ... */
    TICK_REST = 8,     /* ... so many times that long if there were none */
    YOUNG_PERIODS = 4,
};

#ifndef TRAP_PERF
#define TRAP_PERF 6
#endif

/* The event of all processors, where there is only one. */
static int event_fd = -1;
static uint64_t event_id; /* the kernel's, of the event that event_fd was opened for */

/* For the calling thread and those that it makes. */
static struct perf_event_attr kind_of_event(uint32_t frequency_hz)
{
    return (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
                                    .config = PERF_COUNT_SW_CPU_CLOCK,
                                    .size = PERF_ATTR_SIZE_VER7,
                                    .sample_period = NS_PER_SECOND / frequency_hz,
                                    .inherit = 1,
                                    .inherit_thread = 1,
                                    .remove_on_exec = 1,
                                    .sigtrap = 1,
                                    .exclude_hv = 1};
}

static int open_event(uint32_t frequency_hz, enum sample_trigger trigger)
{
    struct perf_event_attr attr = kind_of_event(frequency_hz);
    attr.disabled = 1;
    attr.exclude_kernel = trigger == SAMPLE_TRIGGER_PERF_USER;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return fd;
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
    case SAMPLE_TRIGGER_PERF_KERNEL:
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

static bool is_event(enum sample_trigger trigger)
{
    return sample_trigger_signal(trigger) == SIGTRAP;
}

/* A thread's first sample comes at any moment of the first period: else the time of all threads
 * that are shorter would be lost. */
static uint64_t any_number(const struct sample_thread *thread)
{
    uint64_t number = clock_ns(CLOCK_MONOTONIC) ^ (uint64_t)thread->tid << 32;
    number *= UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio */
    return number >> 20;
}

static bool set_timer(clockid_t clock, int signal, const struct itimerspec *times,
                      struct sample_thread *thread)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = signal};
    event._sigev_un._tid = (pid_t)thread->tid;
    event.sigev_value.sival_ptr = &event_fd; /* tells ours from others' */
    if (timer_create(clock, &event, &thread->timer) < 0)
        return false;
    thread->has_timer = true;
    return timer_settime(thread->timer, 0, times, NULL) == 0;
}

static bool start_timer(clockid_t clock, uint32_t frequency_hz, struct sample_thread *thread)
{
    uint64_t period_ns = NS_PER_SECOND / frequency_hz;
    struct itimerspec times = {.it_interval = clock_time_of(period_ns),
                               .it_value = clock_time_of(1 + any_number(thread) % period_ns)};
    return set_timer(clock, SIGSTKFLT, &times, thread);
}

/* The kernel looks at CPU-time timers when its clock ticks. */
static struct itimerspec ticks_every(uint64_t ns)
{
    return (struct itimerspec){.it_value = clock_time_of(ns), .it_interval = clock_time_of(ns)};
}

static uint64_t tick_interval(const struct sample_thread *thread, uint32_t frequency_hz,
                              bool is_missing)
{
    uint64_t some_ns = (uint64_t)TICK_PERIODS * NS_PER_SECOND / frequency_hz;
    if (thread->is_young)
        return 1;
    return (some_ns > TICK_NS ? some_ns : TICK_NS) * (is_missing ? 1 : TICK_REST);
}

static void watch_ticks(uint32_t frequency_hz, struct sample_thread *thread)
{
    thread->tick_ns = tick_interval(thread, frequency_hz, true);
    struct itimerspec times = ticks_every(thread->tick_ns);
    if (!set_timer(CLOCK_THREAD_CPUTIME_ID, SIGTRAP, &times, thread))
        thread->is_young = false; /* a user may have so many timers */
}

void sample_trigger_after_tick(uint32_t frequency_hz, struct sample_thread *thread, bool is_missing)
{
    uint64_t interval_ns = tick_interval(thread, frequency_hz, is_missing);
    if (interval_ns == thread->tick_ns || !thread->has_timer)
        return;
    thread->tick_ns = interval_ns;
    struct itimerspec times = ticks_every(interval_ns);
    timer_settime(thread->timer, 0, &times, NULL);
}

void sample_trigger_rejoin(enum sample_trigger trigger, uint32_t frequency_hz,
                           struct sample_thread *thread)
{
    uint64_t young_ns = (uint64_t)YOUNG_PERIODS * NS_PER_SECOND / frequency_hz;
    if (trigger == SAMPLE_TRIGGER_PERF_KERNEL)
        sample_kernel_join(thread);
    if (thread->accounted_ns - thread->born_ns < young_ns)
        return;
    thread->is_young = false;
    sample_trigger_after_tick(frequency_hz, thread, true);
}

/* Events with the kernel's stack. */
static bool start_kernel_events(uint32_t frequency_hz, struct sample_thread *thread)
{
    struct perf_event_attr attr = kind_of_event(frequency_hz);
    sample_kernel_join(thread);
    return sample_kernel_start(&attr);
}

/* One event, without. */
static bool start_event(uint32_t frequency_hz, enum sample_trigger trigger)
{
    event_fd = open_event(frequency_hz, trigger);
    return event_fd >= 0 && ioctl(event_fd, PERF_EVENT_IOC_ID, &event_id) == 0 &&
           ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

/* The first that the kernel allows. */
static enum sample_trigger start_cpu_trigger(uint32_t frequency_hz, struct sample_thread *thread)
{
    if (start_kernel_events(frequency_hz, thread))
        return SAMPLE_TRIGGER_PERF_KERNEL;
    if (start_event(frequency_hz, SAMPLE_TRIGGER_PERF))
        return SAMPLE_TRIGGER_PERF;
    if (start_event(frequency_hz, SAMPLE_TRIGGER_PERF_USER))
        return SAMPLE_TRIGGER_PERF_USER;
    if (start_timer(CLOCK_THREAD_CPUTIME_ID, frequency_hz, thread))
        return SAMPLE_TRIGGER_CPU_TIMER;
    return SAMPLE_TRIGGER_NONE;
}

enum sample_trigger sample_trigger_start(enum sample_clock clock, uint32_t frequency_hz,
                                         struct sample_thread *thread)
{
    thread->born_ns = thread->accounted_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (clock == SAMPLE_CLOCK_WALL) {
        thread->is_young = false;
        return start_timer(CLOCK_MONOTONIC, frequency_hz, thread) ? SAMPLE_TRIGGER_WALL_TIMER
                                                                  : SAMPLE_TRIGGER_NONE;
    }
    enum sample_trigger trigger = start_cpu_trigger(frequency_hz, thread);
    thread->is_young &= is_event(trigger);
    if (is_event(trigger))
        watch_ticks(frequency_hz, thread);
    return trigger;
}

void sample_trigger_add(enum sample_trigger trigger, uint32_t frequency_hz,
                        struct sample_thread *thread)
{
    thread->born_ns = thread->accounted_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    thread->is_young &= is_event(trigger);
    if (trigger == SAMPLE_TRIGGER_PERF_KERNEL)
        sample_kernel_join(thread);
    if (is_event(trigger))
        watch_ticks(frequency_hz, thread);
    else if (trigger == SAMPLE_TRIGGER_CPU_TIMER)
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

void sample_trigger_end(void)
{
    sample_trigger_pause();
    sample_kernel_end();
}

void sample_trigger_pause(void)
{
    if (has_event())
        ioctl(event_fd, PERF_EVENT_IOC_DISABLE, 0);
    sample_kernel_pause();
}

bool sample_trigger_resume(uint32_t frequency_hz)
{
    struct perf_event_attr attr = kind_of_event(frequency_hz);
    if (has_event())
        ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0);
    return sample_kernel_resume(&attr);
}

void sample_trigger_forget(struct sample_thread *thread)
{
    int fd = sample_trigger_descriptor();
    event_fd = -1;
    if (fd >= 0)
        close(fd);
    sample_kernel_forget();
    if (thread)
        thread->has_timer = false; /* timers are not inherited */
}

static bool is_our_timer(const siginfo_t *info)
{
    return info->si_code == SI_TIMER && info->si_value.sival_ptr == &event_fd;
}

bool sample_trigger_is_source(const siginfo_t *info)
{
    /* Short of memory, the kernel sends it without saying why: from nobody. */
    if (info->si_signo == SIGTRAP &&
        (info->si_code == TRAP_PERF || (info->si_code == SI_USER && info->si_pid == 0)))
        return true;
    return is_our_timer(info);
}

bool sample_trigger_is_tick(enum sample_trigger trigger, const siginfo_t *info)
{
    return is_event(trigger) && is_our_timer(info);
}
