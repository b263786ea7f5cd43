/* The life of the sampler in one process:
 *
 *     loader -> sampler_start: ring, handler, trigger
 *     a thread begins -> its structure, its timer                        (interp/interpose.c)
 *     signal -> on_signal: registers, Python frames, a copy of the C stack -> ring (sample_take.c)
 *     fork -> the child starts anew with a ring of its own; the parent goes on
 *     exec -> the trigger is taken away first; the new program starts at the top again
 *     exit -> the last list of mappings
 *     nobody reads the ring any more -> the trigger is taken away, and the program goes on alone
 *
 * The handler allocates nothing, waits for nobody longer than some microseconds (sample_codes.c),
 * and calls nothing of Python's but the two functions that tell the thread's state, which only
 * read. */
#include "interp/sampler.h"

#include "base/clock.h"
#include "base/number.h"
#include "formats/sample_ring.h"
#include "interp/exec_environment.h"
#include "interp/interpose.h"
#include "interp/interrupted_call.h"
#include "interp/main_thread.h"
#include "interp/program_needs.h"
#include "interp/pyapi.h"
#include "interp/sample_codes.h"
#include "interp/sample_frames.h"
#include "interp/sample_rest.h"
#include "interp/sample_take.h"
#include "interp/sample_thread.h"
#include "interp/sample_trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOST_MAPS_BYTES = 256 << 10,
    MOST_NAME_BYTES = 1024,
    MOST_RINGS = 1000, /* of one process number: one more with each exec */
    LEAST_HZ = 1,
    DEFAULT_HZ = 999,
    MOST_HZ = 20000,
    NS_PER_SECOND = 1000000000,
};

static struct {
    struct sample_take_source source; /* the ring, and what interrupts the threads */
    char folder[PATH_MAX - 64];
    pid_t pid;
    enum sample_clock clock;
    struct sigaction theirs; /* what the program had for our signal */
    volatile bool is_on;
    pthread_key_t key; /* its destructor runs when a thread ends */
} sampler;

extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *object) __attribute__((weak));
extern void *__dso_handle;

/* Of this object, by the linker. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));

/* --- the handler ----------------------------------------------------------------------------- */

/* Our handler has all signals blocked; theirs those that it wants. */
static void block_as_they_want(int signal, const struct sigaction *theirs, const ucontext_t *at)
{
    sigset_t blocked;
    sigorset(&blocked, &at->uc_sigmask, &theirs->sa_mask);
    if (!(theirs->sa_flags & SA_NODEFER))
        sigaddset(&blocked, signal);
    interpose_sigmask(SIG_SETMASK, &blocked, NULL);
}

/* A breakpoint of the program itself, or a signal that somebody sent: as if we were not here.
 * Whether a handler of the program's has run. */
static bool pass_on(int signal, siginfo_t *info, void *context)
{
    struct sigaction theirs = sampler.theirs;
    bool has_info = theirs.sa_flags & SA_SIGINFO;
    if (!has_info && theirs.sa_handler == SIG_IGN)
        return false;
    if (!has_info && theirs.sa_handler == SIG_DFL) {
        interpose_sigaction(signal, &theirs, NULL);
        raise(signal);
        return false;
    }
    if (theirs.sa_flags & SA_RESETHAND)
        sampler.theirs = (struct sigaction){.sa_handler = SIG_DFL};
    block_as_they_want(signal, &theirs, context);
    if (has_info)
        theirs.sa_sigaction(signal, info, context);
    else
        theirs.sa_handler(signal);
    return true;
}

static uint64_t period_ns(void)
{
    return NS_PER_SECOND / sampler.source.frequency_hz;
}

/* A thread at its very beginning or end, or one that nobody has told us of: it runs no Python code.
 * What it has told already when it ended is not told again. */
static void sample_unknown_thread(const siginfo_t *info, const ucontext_t *at)
{
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), *ended_ns = sample_thread_ended();
    struct sample_thread thread = {.tid = (uint32_t)gettid(),
                                   .accounted_ns = ended_ns ? *ended_ns : cpu_ns - period_ns()};
    if (cpu_ns - thread.accounted_ns < period_ns() ||
        sample_trigger_is_tick(sampler.source.trigger, info))
        return;
    sample_take(&sampler.source, &thread, info, at);
    if (ended_ns)
        *ended_ns = cpu_ns;
}

/* For all threads: timers of others end when they come next (on_signal). */
static void stop(void)
{
    struct sample_thread *thread = sample_thread_mine();
    if (!sampler.is_on)
        return;
    sampler.is_on = false;
    sample_trigger_end();
    if (thread)
        sample_trigger_remove(thread);
}

/* Something of ours. */
static void on_sample(struct sample_thread *thread, siginfo_t *info, void *context)
{
    if (sampler.clock == SAMPLE_CLOCK_WALL && thread && thread->tid == (uint32_t)sampler.pid)
        main_thread_is_sampled(&((ucontext_t *)context)->uc_sigmask);
    if (!sampler.is_on && thread)
        sample_trigger_remove(thread); /* nobody reads any more */
    else if (thread)
        sample_take(&sampler.source, thread, info, context);
    else if (sampler.is_on)
        sample_unknown_thread(info, context);
    if (sampler.source.is_over)
        stop();
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    struct sample_thread *thread = sample_thread_mine();
    if (sample_trigger_is_source(info))
        on_sample(thread, info, context);
    else if (pass_on(signal, info, context) && thread)
        thread->handled++;
    if (thread)
        interrupted_call_note(thread, context, sampler.clock == SAMPLE_CLOCK_WALL);
    errno = saved_errno;
}

/* --- beginning and end ----------------------------------------------------------------------- */

static void say_problem_in(const struct sample_ring *ring, const char *problem)
{
    snprintf(ring->header->problem, sizeof ring->header->problem, "%s", problem);
}

static void say_problem(const char *problem)
{
    say_problem_in(&sampler.source.ring, problem);
}

/* Puts a record that is nothing but text into the ring. */
static void note_text(uint16_t type, const char *text, size_t length, uint32_t tid,
                      uint64_t time_ns)
{
    struct sample_ring *ring = &sampler.source.ring;
    uint64_t position;
    struct sample_record *record =
        sample_ring_take(ring, sizeof *record + ((length + 7) & ~(size_t)7), type, &position);
    if (!record)
        return;
    memcpy(record + 1, text, length);
    record->time_ns = time_ns;
    record->tid = tid;
    record->extra = (uint32_t)length;
    sample_ring_give(ring, record, position);
}

/* The list of mappings. Not from our handler: there may be much of it. But a program may fork and
 * exec in a handler of its own, so malloc, which may have been interrupted, is not for us. */
static void note_maps(void)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    char *text =
        mmap(NULL, MOST_MAPS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t length = 0;
    ssize_t got = 0;
    while (text != MAP_FAILED && length < MOST_MAPS_BYTES &&
           (got = read(fd, text + length, MOST_MAPS_BYTES - length)) > 0)
        length += (size_t)got;
    if (length)
        note_text(SAMPLE_RECORD_MAPS, text, length, 0, clock_ns(CLOCK_MONOTONIC));
    if (text != MAP_FAILED)
        munmap(text, MOST_MAPS_BYTES);
    close(fd);
}

/* After unshare(CLONE_NEWPID) children have numbers that mean something else here. */
static bool has_children_here(void)
{
    struct stat children;
    return stat("/proc/self/ns/pid_for_children", &children) < 0 ||
           (uint32_t)children.st_ino == sampler.source.ring.header->pid_namespace;
}

void sampler_note_program(const char *name, pid_t pid, uint64_t time_ns)
{
    if (!name)
        name = "?"; /* which the kernel will refuse */
    if (sampler.is_on && has_children_here())
        note_text(SAMPLE_RECORD_PROGRAM, name, strnlen(name, MOST_NAME_BYTES), (uint32_t)pid,
                  time_ns);
}

/* A ring may not be as large as it has to be. */
static void note_absence(void)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%d" SAMPLE_RING_ABSENT_SUFFIX, sampler.folder, (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* A recorder that was killed can't tell, but its lock on the folder is gone (record/ring_folder.c).
 */
static bool is_recorder_gone(void)
{
    int fd = open(sampler.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_gone = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return is_gone;
}

/* 0, or why there is none: -ESRCH, nobody would read it; -EFBIG, the recorder knows; others. */
static int open_ring(void)
{
    if (is_recorder_gone())
        return -ESRCH;
    char path[PATH_MAX];
    int error = -EEXIST;
    for (int i = 0; i < MOST_RINGS && error == -EEXIST; i++) {
        snprintf(path, sizeof path, "%s/%d.%d" SAMPLE_RING_SUFFIX, sampler.folder, (int)getpid(),
                 i);
        error = sample_ring_create(&sampler.source.ring, path, SAMPLE_RING_BYTES);
    }
    if (error == -EFBIG)
        note_absence();
    if (error < 0)
        return error;
    sampler.source.full_ns = 0;
    struct sample_ring_header *header = sampler.source.ring.header;
    header->version = SAMPLE_RING_VERSION;
    struct stat own;
    header->pid = getpid();
    header->pid_namespace = stat("/proc/self/ns/pid", &own) == 0 ? (uint32_t)own.st_ino : 0;
    header->parent_pid = getppid();
    header->start_ns = clock_ns(CLOCK_MONOTONIC);
    header->frequency_hz = sampler.source.frequency_hz;
    header->clock = sampler.clock;
    header->own_start_avma = (uintptr_t)__ehdr_start;
    header->own_end_avma = (uintptr_t)etext;
    snprintf(header->command, sizeof header->command, "%s", program_invocation_short_name);
    return 0;
}

/* Instead of the parent's, which can still be told that the child will be missing. */
static bool open_childs_ring(void)
{
    struct sample_ring parents = sampler.source.ring;
    sampler.source.ring = (struct sample_ring){0};
    int error = open_ring();
    bool is_missed = error < 0 && error != -ESRCH && error != -EFBIG;
    if (is_missed && parents.header && !*parents.header->problem)
        say_problem_in(&parents, "what it forked could not be recorded: behind a chroot, or for "
                                 "want of memory or descriptors");
    sample_ring_close(&parents);
    return error == 0;
}

static void start_in_this_thread(void)
{
    struct sample_thread *thread = sample_thread_begin();
    if (thread)
        sampler.source.trigger =
            sample_trigger_start(sampler.clock, sampler.source.frequency_hz, thread);
    sampler.source.ring.header->trigger = sampler.source.trigger;
    if (sampler.source.trigger == SAMPLE_TRIGGER_NONE)
        say_problem("neither a perf event nor a timer could be made");
}

static bool install_handler(int signal)
{
    struct sigaction ours = {.sa_sigaction = on_signal,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    /* While a sample is taken nothing else should run on this stack, nor end the thread half-way:
     * with the signals that the C library keeps for itself, which sigfillset leaves out. */
    memset(&ours.sa_mask, 0xff, sizeof ours.sa_mask);
    sigdelset(&ours.sa_mask, SIGSEGV);
    sigdelset(&ours.sa_mask, SIGBUS);
    return interpose_sigaction(signal, &ours, &sampler.theirs) == 0;
}

/* Who started us may have blocked all signals. */
static void unblock(void)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, sample_trigger_signal(sampler.source.trigger));
    interpose_sigmask(SIG_UNBLOCK, &ours, NULL);
}

static const char *python_problem; /* NULL: none; empty: there is no Python */

static void publish(void)
{
    struct sample_ring_header *header = sampler.source.ring.header;
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
    uint64_t hz = 0;
    const char *at = text ? strstr(text, "hz=") : NULL;
    if (at)
        at += strlen("hz=");
    bool is_wanted = at && number_take(&at, 10, &hz) && hz >= LEAST_HZ && hz <= MOST_HZ;
    sampler.source.frequency_hz = is_wanted ? (uint32_t)hz : DEFAULT_HZ;
    sampler.clock = text && strstr(text, "clock=wall") ? SAMPLE_CLOCK_WALL : SAMPLE_CLOCK_CPU;
}

void sampler_look_for_python(void)
{
    static atomic_flag is_looking = ATOMIC_FLAG_INIT;
    if (!sampler.is_on || !python_problem || *python_problem || getpid() != sampler.pid ||
        atomic_flag_test_and_set(&is_looking))
        return;
    python_problem = sample_frames_load();
    publish();
    atomic_flag_clear(&is_looking);
}

/* fork and exec are no places where a thread may be cancelled; what we do there must not make them
 * such. */
static int keep_from_cancelling(void)
{
    int before = PTHREAD_CANCEL_ENABLE;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static void start_in_child(void)
{
    struct sample_thread *thread = sample_thread_mine();
    sampler.is_on = false;
    sample_codes_forget();
    sample_trigger_forget(thread);
    if (thread) {
        thread->tid = (uint32_t)gettid();
        thread->is_announced = false;
        thread->time_ns = thread->owed_ns = 0;
        thread->is_young = true;
        thread->told = 0;
    }
    if (!open_childs_ring())
        return;
    sampler.pid = getpid();
    note_maps();
    sampler.is_on = true;
    start_in_this_thread();
    publish();
}

static void in_child(void)
{
    if (!sampler.is_on)
        return;
    int state = keep_from_cancelling();
    start_in_child();
    pthread_setcancelstate(state, NULL);
}

/* The thread ends, or becomes another program. */
static void leave_rest(struct sample_thread *thread)
{
    sample_rest_leave(thread, period_ns());
}

static void on_thread_end(void *unused)
{
    (void)unused;
    struct sample_thread *thread = sample_thread_mine();
    if (!thread)
        return;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, sample_trigger_signal(sampler.source.trigger));
    interpose_sigmask(SIG_BLOCK, &ours, &before);
    sample_trigger_remove(thread);
    leave_rest(thread);
    sample_thread_end();
    interpose_sigmask(SIG_SETMASK, &before, NULL);
}

void sampler_thread_begins(void)
{
    struct sample_thread *thread = sampler.is_on ? sample_thread_begin() : NULL;
    if (!thread)
        return;
    pthread_setspecific(sampler.key, thread);
    thread->is_young = true;
    sample_trigger_add(sampler.source.trigger, sampler.source.frequency_hz, thread);
}

bool sampler_is_on(void)
{
    return sampler.is_on;
}

struct sample_thread *sampler_interrupts_waits(void)
{
    return sampler.is_on && sampler.clock == SAMPLE_CLOCK_WALL ? sample_thread_mine() : NULL;
}

bool sampler_is_before_handlers(void)
{
    /* The child of a vfork has handlers of its own, but not the memory for them. */
    return sampler.is_on && getpid() == sampler.pid;
}

bool sampler_uses_signal(int signal)
{
    return sampler.is_on && signal == sample_trigger_signal(sampler.source.trigger);
}

bool sampler_handles_signal(int signal)
{
    /* The child of a vfork shares this memory, but not the handlers. */
    return signal && signal == sample_trigger_signal(sampler.source.trigger) &&
           getpid() == sampler.pid;
}

int sampler_descriptor(void)
{
    return sampler.is_on ? sample_trigger_descriptor() : -1;
}

/* A signal tells whether it is ours. So our handler stays in front, and passes on what is the
 * program's. */
void sampler_set_action(const struct sigaction *action)
{
    bool is_default = !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
    sampler.theirs = *action;
    if (!is_default && sampler.is_on)
        say_problem("the program uses the sampler's signal itself: each gets its own");
}

void sampler_give_action(struct sigaction *ret_action)
{
    *ret_action = sampler.theirs;
}

/* Our signal, where the program has blocked it past us: it would still be there in the new program,
 * and end it. */
static void take_pending(void)
{
    sigset_t ours;
    struct timespec now = {0};
    sigemptyset(&ours);
    sigaddset(&ours, sample_trigger_signal(sampler.source.trigger));
    while (syscall(SYS_rt_sigtimedwait, &ours, NULL, &now, NSIG / 8) > 0)
        ;
}

void sampler_before_exec(const char *name)
{
    sampler_note_program(name, getpid(), clock_ns(CLOCK_MONOTONIC));
    if (!sampler.is_on || getpid() != sampler.pid)
        return; /* the child of a vfork shares this memory, but no trigger */
    struct sample_thread *thread = sample_thread_mine();
    int state = keep_from_cancelling();
    sample_trigger_pause();
    if (thread) {
        sample_trigger_remove(thread);
        leave_rest(thread);
    }
    take_pending();
    note_maps();
    pthread_setcancelstate(state, NULL);
}

void sampler_exec_failed(void)
{
    sampler_note_program("", getpid(), clock_ns(CLOCK_MONOTONIC));
    if (!sampler.is_on || getpid() != sampler.pid)
        return;
    struct sample_thread *thread = sample_thread_mine();
    if (!sample_trigger_resume(sampler.source.frequency_hz))
        say_problem("after an exec that failed, threads from before it have fewer samples");
    if (thread)
        sample_trigger_add(sampler.source.trigger, sampler.source.frequency_hz, thread);
}

void sampler_before_exit(void)
{
    struct sample_thread *thread = sample_thread_mine();
    if (sampler.is_on && thread && getpid() == sampler.pid)
        leave_rest(thread);
}

__attribute__((destructor)) static void on_unload(void)
{
    if (!sampler.is_on || getpid() != sampler.pid)
        return;
    note_maps();
    sampler_before_exit();
    atomic_store(&sampler.source.ring.header->has_ended, 1);
}

/* Why this program must not be interrupted; NULL: it may be. ThreadSanitizer stands before our
 * handler, and before functions that it calls, and can't have them at all times. */
static const char *refusal_of_program(void)
{
    if (!program_needs_libraries())
        return "the program does without the C library";
    return program_has_thread_sanitizer()
               ? "it is built with -fsanitize=thread, which can't be recorded"
               : NULL;
}

void sampler_start(void)
{
    const char *folder = secure_getenv(SAMPLE_RING_FOLDER);
    if (!folder || !*folder || strlen(folder) >= sizeof sampler.folder)
        return;
    snprintf(sampler.folder, sizeof sampler.folder, "%s", folder);
    read_options(getenv(SAMPLE_RING_OPTIONS));
    exec_environment_init();
    if (open_ring() < 0)
        return;
    sampler.pid = getpid();
    note_maps();
    const char *refusal = refusal_of_program();
    if (refusal) {
        say_problem(refusal);
        publish();
        return;
    }
    python_problem = sample_frames_load();
    sample_rest_start();
    pthread_key_create(&sampler.key, on_thread_end);
    if (__register_atfork)
        __register_atfork(NULL, NULL, in_child, &__dso_handle);
    int signal = sampler.clock == SAMPLE_CLOCK_WALL ? SIGSTKFLT : SIGTRAP;
    sampler.is_on = install_handler(SIGSTKFLT) && (signal == SIGSTKFLT || install_handler(SIGTRAP));
    if (sampler.is_on) {
        start_in_this_thread();
        unblock();
    }
    publish();
}
