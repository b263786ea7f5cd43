/* The life of the sampler in one process:
 *
 *     loader -> sampler_start: ring, handler, trigger
 *     a thread begins -> its structure, its timer if timers are used     (interp/interpose.c)
 *     signal -> on_signal: registers, Python frames, a copy of the C stack -> ring
 *     fork -> the child starts anew with a ring of its own; the parent goes on
 *     exec -> the trigger is taken away first; the new program starts at the top again
 *     exit -> the last list of mappings
 *
 * The handler allocates nothing, waits for nothing, and calls nothing of Python's but the two
 * functions that tell the thread's state, which only read. */
#include "interp/sampler.h"

#include "formats/sample_ring.h"
#include "interp/interpose.h"
#include "interp/pyapi.h"
#include "interp/sample_frames.h"
#include "interp/sample_kernel.h"
#include "interp/sample_stack.h"
#include "interp/sample_thread.h"
#include "interp/sample_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum {
    NS_PER_SECOND = 1000000000,
    FRAME_BYTES = 64, /* of a Python frame, what is read of it */
    MOST_NS_PER_BYTE = 2,
    REST = 4,
    MOST_MAPS_BYTES = 256 << 10,
    MOST_RINGS = 1000, /* of one process number: one more with each exec */
    LEAST_HZ = 1,
    MOST_HZ = 100000,
};

static struct {
    struct sample_ring ring;
    char folder[PATH_MAX - 64];
    pid_t pid;
    enum sample_clock clock;
    uint32_t frequency_hz;
    enum sample_trigger trigger;
    struct sigaction theirs; /* what the program had for our signal */
    volatile bool is_on;
    pthread_key_t key; /* its destructor runs when a thread ends */
} sampler;

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *object) __attribute__((weak));
extern void *__dso_handle;

static uint64_t time_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* --- the handler ----------------------------------------------------------------------------- */

/* By DWARF number. */
static const int REGISTERS[SAMPLE_REGISTERS] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

enum { RSP = 7 };

static void announce_thread(struct sample_thread *thread, uint64_t now)
{
    char name[16] = "";
    uint64_t position;
    struct sample_record *record = sample_ring_take(&sampler.ring, sizeof *record + sizeof name,
                                                    SAMPLE_RECORD_THREAD, &position);
    if (!record)
        return;
    prctl(PR_GET_NAME, name);
    memcpy(record + 1, name, sizeof name);
    record->time_ns = now;
    record->tid = thread->tid;
    record->extra = (uint32_t)strnlen(name, sizeof name);
    record->flags = thread->frames ? 0 : SAMPLE_THREAD_BORDER;
    sample_ring_give(&sampler.ring, record, position);
    thread->is_announced = true;
}

/* The time that this sample stands for, and whether the thread has slept through it. */
static uint64_t weight_of(struct sample_thread *thread, const siginfo_t *info, uint64_t now,
                          bool *ret_waiting)
{
    uint64_t period = NS_PER_SECOND / sampler.frequency_hz;
    *ret_waiting = false;
    uint64_t times =
        info->si_code == SI_TIMER && info->si_overrun > 0 ? 1 + (uint64_t)info->si_overrun : 1;
    if (sampler.trigger != SAMPLE_TRIGGER_PERF_USER && sampler.trigger != SAMPLE_TRIGGER_WALL_TIMER)
        return period * times;
    uint64_t cpu = time_of(CLOCK_THREAD_CPUTIME_ID);
    uint64_t cpu_used = cpu - thread->cpu_ns, passed = now - thread->time_ns;
    bool is_first = thread->time_ns == 0;
    thread->cpu_ns = cpu;
    thread->time_ns = now;
    if (sampler.trigger == SAMPLE_TRIGGER_PERF_USER)
        return is_first || cpu_used < period ? period : cpu_used;
    *ret_waiting = !is_first && cpu_used < passed / 2;
    return period * times;
}

/* How often the thread was interrupted since the last signal, and what it did in the kernel. */
static struct sample_kernel_result interrupts_of(struct sample_thread *thread)
{
    if (!thread->kernel_buffer)
        return (struct sample_kernel_result){.user = 1};
    return sample_kernel_read(thread, NS_PER_SECOND / sampler.frequency_hz, thread->kernel_words);
}

/* How many Python frames at the outer end are those of the last deep sample. */
static size_t count_kept(const struct sample_thread *thread, size_t count)
{
    size_t last = thread->last_count, kept = 0;
    if (count < SAMPLE_DEEP_FRAMES)
        return 0;
    while (kept < count && kept < last &&
           thread->frames[count - 1 - kept] == thread->last_frames[last - 1 - kept])
        kept++;
    return kept;
}

/* The sample that has these frames is in the ring. */
static void remember_frames(struct sample_thread *thread, size_t count)
{
    if (count < SAMPLE_DEEP_FRAMES)
        return;
    uint64_t *frames = thread->frames;
    thread->frames = thread->last_frames;
    thread->last_frames = frames;
    thread->last_count = count;
}

/* How many bytes of the program's memory it had to read, roughly; 0 when it was left out. */
static size_t take_sample(struct sample_thread *thread, const siginfo_t *info, const ucontext_t *at,
                          uint64_t now)
{
    struct sample_ring *ring = &sampler.ring;
    bool is_waiting;
    struct sample_kernel_result kernel = interrupts_of(thread);
    if (kernel.user + kernel.kernel == 0)
        return 0; /* the sample before has it already */
    struct sample_body body = {.weight_ns = kernel.user * weight_of(thread, info, now, &is_waiting),
                               .kernel_weight_ns =
                                   kernel.kernel * (NS_PER_SECOND / sampler.frequency_hz),
                               .kernel_words = kernel.words};
    *(kernel.user ? &body.weight_ns : &body.kernel_weight_ns) += thread->owed_ns;
    thread->owed_ns = body.weight_ns + body.kernel_weight_ns;
    if (now < thread->rest_until_ns)
        return 0;
    if (!thread->is_announced)
        announce_thread(thread, kernel.words ? kernel.oldest_ns : now);
    struct sample_frames_result frames = {0};
    if (thread->frames)
        frames = sample_frames_read(ring, thread->stack_low, thread->stack_high, thread->frames,
                                    SAMPLE_THREAD_FRAMES);
    struct sample_stack stack = sample_stack_find(ring, thread, at);
    size_t stack_bytes = sample_stack_bytes(&stack);
    size_t kept = count_kept(thread, frames.count);
    size_t frame_bytes = (frames.count - kept) * sizeof *thread->frames;
    size_t kernel_bytes = kernel.words * sizeof *thread->kernel_words;
    size_t bytes = sizeof body + kernel_bytes + frame_bytes + stack_bytes;
    uint64_t position;
    struct sample_record *record = NULL;
    if (!frames.is_lost)
        record = sample_ring_take(ring, sizeof *record + bytes, SAMPLE_RECORD_SAMPLE, &position);
    if (!record) {
        atomic_fetch_add_explicit(&ring->header->lost, kernel.user + kernel.kernel,
                                  memory_order_relaxed);
        return frames.count * FRAME_BYTES;
    }
    thread->owed_ns = 0;
    if (frames.is_cut)
        atomic_fetch_add_explicit(&ring->header->unreadable, 1, memory_order_relaxed);
    body.frame_count = frames.count - kept;
    body.kept_frames = kept;
    for (int i = 0; i < SAMPLE_REGISTERS; i++)
        body.registers[i] = (uint64_t)at->uc_mcontext.gregs[REGISTERS[i]];
    record->time_ns = now;
    record->tid = thread->tid;
    record->extra = (uint32_t)stack_bytes;
    record->flags =
        (uint16_t)((stack.is_whole ? SAMPLE_STACK_WHOLE : 0) | (is_waiting ? SAMPLE_WAITING : 0) |
                   (frames.is_cut ? SAMPLE_CUT : 0) | (stack.outer_bytes ? SAMPLE_TWO_STACKS : 0) |
                   (stack.known.count ? SAMPLE_STACK_KNOWN : 0));
    uint8_t *out = (uint8_t *)(record + 1);
    memcpy(out, &body, sizeof body);
    out += sizeof body;
    if (kernel_bytes)
        memcpy(out, thread->kernel_words, kernel_bytes);
    out += kernel_bytes;
    if (frame_bytes)
        memcpy(out, thread->frames, frame_bytes);
    sample_stack_copy(&stack, out + frame_bytes);
    sample_ring_give(ring, record, position);
    remember_frames(thread, frames.count);
    return stack_bytes + frames.count * FRAME_BYTES;
}

/* With very deep stacks a sample can take as long as the time up to the next one, and the program
 * would hardly get on: it gets REST times as long as the sample took. Not more than such a sample
 * should take, since other programs may have had the processor meanwhile. */
static void take_sample_in_time(struct sample_thread *thread, const siginfo_t *info,
                                const ucontext_t *at)
{
    uint64_t begin = time_of(CLOCK_MONOTONIC);
    size_t bytes = take_sample(thread, info, at, begin);
    uint64_t end = time_of(CLOCK_MONOTONIC), took = end - begin;
    if (took > bytes * MOST_NS_PER_BYTE)
        took = bytes * MOST_NS_PER_BYTE;
    if (took > NS_PER_SECOND / sampler.frequency_hz / 4)
        thread->rest_until_ns = end + REST * took;
    thread->handled_ns = end;
}

/* A breakpoint of the program itself, or a signal that somebody sent: as if we were not here. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    struct sigaction *theirs = &sampler.theirs;
    if (theirs->sa_flags & SA_SIGINFO) {
        theirs->sa_sigaction(signal, info, context);
    } else if (theirs->sa_handler == SIG_DFL) {
        interpose_sigaction(signal, theirs, NULL);
        raise(signal);
    } else if (theirs->sa_handler != SIG_IGN) {
        theirs->sa_handler(signal);
    }
}

/* A thread at its very beginning or end, or one that nobody has told us of: it runs no Python code.
 */
static void sample_unknown_thread(const siginfo_t *info, const ucontext_t *at)
{
    struct sample_thread thread = {.tid = (uint32_t)gettid()};
    take_sample(&thread, info, at, time_of(CLOCK_MONOTONIC));
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct sample_thread *thread = sample_thread_mine();
    if (!sample_trigger_is_source(info))
        pass_on(signal, info, context);
    else if (!sampler.is_on && thread)
        sample_trigger_remove(thread); /* we have stepped aside */
    else if (thread)
        take_sample_in_time(thread, info, context);
    else if (sampler.is_on)
        sample_unknown_thread(info, context);
    errno = saved_errno;
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void say_problem(const char *problem)
{
    snprintf(sampler.ring.header->problem, sizeof sampler.ring.header->problem, "%s", problem);
}

/* Puts the list of mappings into the ring. Not from a handler: there may be much of it. */
static void note_maps(void)
{
    struct sample_ring *ring = &sampler.ring;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 ? malloc(MOST_MAPS_BYTES) : NULL;
    size_t length = 0;
    ssize_t got = 0;
    while (text && length < MOST_MAPS_BYTES &&
           (got = read(fd, text + length, MOST_MAPS_BYTES - length)) > 0)
        length += (size_t)got;
    uint64_t position;
    struct sample_record *record = NULL;
    if (length)
        record = sample_ring_take(ring, sizeof *record + ((length + 7) & ~(size_t)7),
                                  SAMPLE_RECORD_MAPS, &position);
    if (record) {
        memcpy(record + 1, text, length);
        record->time_ns = time_of(CLOCK_MONOTONIC);
        record->tid = 0;
        record->extra = (uint32_t)length;
        sample_ring_give(ring, record, position);
    }
    free(text);
    if (fd >= 0)
        close(fd);
}

static bool open_ring(void)
{
    char path[PATH_MAX];
    int error = -EEXIST;
    for (int i = 0; i < MOST_RINGS && error == -EEXIST; i++) {
        snprintf(path, sizeof path, "%s/%d.%d" SAMPLE_RING_SUFFIX, sampler.folder, (int)getpid(),
                 i);
        error = sample_ring_create(&sampler.ring, path, SAMPLE_RING_BYTES);
    }
    if (error < 0)
        return false;
    struct sample_ring_header *header = sampler.ring.header;
    header->version = SAMPLE_RING_VERSION;
    header->pid = getpid();
    header->parent_pid = getppid();
    header->start_ns = time_of(CLOCK_MONOTONIC);
    header->frequency_hz = sampler.frequency_hz;
    header->clock = sampler.clock;
    snprintf(header->command, sizeof header->command, "%s", program_invocation_short_name);
    return true;
}

static void start_in_this_thread(void)
{
    struct sample_thread *thread = sample_thread_begin();
    if (thread)
        sampler.trigger = sample_trigger_start(sampler.clock, sampler.frequency_hz, thread);
    sampler.ring.header->trigger = sampler.trigger;
    if (sampler.trigger == SAMPLE_TRIGGER_NONE)
        say_problem("neither a perf event nor a timer could be made");
}

static bool install_handler(int signal)
{
    struct sigaction ours = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    /* While a sample is taken nothing else should run on this stack. */
    sigfillset(&ours.sa_mask);
    sigdelset(&ours.sa_mask, SIGSEGV);
    sigdelset(&ours.sa_mask, SIGBUS);
    return interpose_sigaction(signal, &ours, &sampler.theirs) == 0;
}

static void publish(const char *python_problem)
{
    struct sample_ring_header *header = sampler.ring.header;
    if (!python_problem) {
        header->python_minor = (uint32_t)py.minor;
        header->evaluator_avma = (uintptr_t)py.evaluator;
    } else if (*python_problem) {
        say_problem(python_problem);
    }
    atomic_store_explicit(&header->magic, SAMPLE_RING_MAGIC, memory_order_release);
}

static void read_options(const char *text)
{
    unsigned hz = 0;
    const char *at = text ? strstr(text, "hz=") : NULL;
    if (at)
        sscanf(at, "hz=%u", &hz);
    sampler.frequency_hz = hz < LEAST_HZ || hz > MOST_HZ ? 999 : hz;
    sampler.clock = text && strstr(text, "clock=wall") ? SAMPLE_CLOCK_WALL : SAMPLE_CLOCK_CPU;
}

static const char *python_problem;

static void in_child(void)
{
    if (!sampler.is_on)
        return;
    struct sample_thread *thread = sample_thread_mine();
    sampler.is_on = false;
    sample_ring_close(&sampler.ring);
    sample_frames_forget();
    sample_trigger_forget(thread);
    if (thread) {
        thread->tid = (uint32_t)gettid();
        thread->is_announced = false;
        thread->cpu_ns = thread->time_ns = thread->owed_ns = 0;
        thread->last_count = 0;
    }
    if (!open_ring())
        return;
    sampler.pid = getpid();
    note_maps();
    sampler.is_on = true;
    start_in_this_thread();
    publish(python_problem);
}

static void on_thread_end(void *unused)
{
    (void)unused;
    struct sample_thread *thread = sample_thread_mine();
    if (!thread)
        return;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, sample_trigger_signal(sampler.trigger));
    interpose_sigmask(SIG_BLOCK, &ours, &before);
    sample_trigger_remove(thread);
    sample_thread_end();
    interpose_sigmask(SIG_SETMASK, &before, NULL);
}

void sampler_thread_begins(void)
{
    struct sample_thread *thread = sampler.is_on ? sample_thread_begin() : NULL;
    if (!thread)
        return;
    pthread_setspecific(sampler.key, thread);
    sample_trigger_add(sampler.trigger, sampler.frequency_hz, thread);
    if (sampler.trigger == SAMPLE_TRIGGER_PERF_KERNEL && !thread->kernel_buffer)
        atomic_fetch_add_explicit(&sampler.ring.header->bare_threads, 1, memory_order_relaxed);
}

bool sampler_is_on(void)
{
    return sampler.is_on;
}

bool sampler_uses_signal(int signal)
{
    return sampler.is_on && signal == sample_trigger_signal(sampler.trigger);
}

bool sampler_handles_signal(int signal)
{
    /* The child of a vfork shares this memory, but not the handlers. */
    return signal && signal == sample_trigger_signal(sampler.trigger) && getpid() == sampler.pid;
}

int sampler_descriptor(void)
{
    return sampler.is_on ? sample_trigger_descriptor() : -1;
}

static void step_aside(void)
{
    if (!sampler.is_on)
        return;
    struct sample_thread *thread = sample_thread_mine();
    sampler.is_on = false;
    sample_trigger_end();
    if (thread)
        sample_trigger_remove(thread);
    say_problem("the program uses the sampler's signal itself");
}

static bool does(const struct sigaction *action, void (*what)(int))
{
    return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == what;
}

/* Timers of other threads end when they come next (on_signal). So our handler stays in front of the
 * program's, with all that the program wants of its own. */
int sampler_set_action(int signal, const struct sigaction *action)
{
    struct sigaction both = *action;
    both.sa_sigaction = on_signal;
    both.sa_flags |= SA_SIGINFO;
    sampler.theirs = *action;
    if (does(action, SIG_DFL))
        return 0; /* what it was, or as good: see pass_on */
    step_aside();
    return interpose_sigaction(signal, does(action, SIG_IGN) ? action : &both, NULL);
}

void sampler_give_action(struct sigaction *ret_action)
{
    *ret_action = sampler.theirs;
}

void sampler_before_exec(void)
{
    if (!sampler.is_on || getpid() != sampler.pid)
        return; /* the child of a vfork shares this memory, but no trigger */
    struct sample_thread *thread = sample_thread_mine();
    sample_trigger_pause();
    if (thread)
        sample_trigger_remove(thread);
    note_maps();
}

void sampler_exec_failed(void)
{
    if (!sampler.is_on || getpid() != sampler.pid)
        return;
    struct sample_thread *thread = sample_thread_mine();
    sample_trigger_resume();
    if (thread)
        sample_trigger_add(sampler.trigger, sampler.frequency_hz, thread);
}

__attribute__((destructor)) static void on_unload(void)
{
    if (!sampler.is_on || getpid() != sampler.pid)
        return;
    note_maps();
    atomic_store(&sampler.ring.header->has_ended, 1);
}

void sampler_start(void)
{
    const char *folder = secure_getenv(SAMPLE_RING_FOLDER);
    if (!folder || !*folder || strlen(folder) >= sizeof sampler.folder)
        return;
    snprintf(sampler.folder, sizeof sampler.folder, "%s", folder);
    read_options(getenv("PITVIPER_RECORD_OPTIONS"));
    if (!open_ring())
        return;
    sampler.pid = getpid();
    note_maps();
    python_problem = sample_frames_load();
    pthread_key_create(&sampler.key, on_thread_end);
    if (__register_atfork)
        __register_atfork(NULL, NULL, in_child, &__dso_handle);
    int signal = sampler.clock == SAMPLE_CLOCK_WALL ? SIGSTKFLT : SIGTRAP;
    sampler.is_on = install_handler(SIGSTKFLT) && (signal == SIGSTKFLT || install_handler(SIGTRAP));
    if (sampler.is_on)
        start_in_this_thread();
    publish(python_problem);
}
