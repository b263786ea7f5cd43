/* A sample is weighed, looked at, and put into the ring:
 *
 *     trigger -> the time that it stands for; what the thread did in the kernel   (sample_kernel.c)
 *     thread  -> Python frames (sample_frames.c), registers, C stack              (sample_stack.c)
 *     ring    -> one record; of deep stacks what has changed since the last
 *
 * A sample that is left out, for want of time or room, or lost is owed: the next one stands for its
 * time, too. */
#include "interp/sample_take.h"

#include "base/clock.h"
#include "interp/sample_frames.h"
#include "interp/sample_kernel.h"
#include "interp/sample_rest.h"
#include "interp/sample_stack.h"
#include "interp/sample_trigger.h"

#include <string.h>
#include <sys/prctl.h>

enum {
    NS_PER_SECOND = 1000000000,
    NAME_NS = 8000000, /* from one look at a name to the next, which takes half a microsecond ... */
    FIRST_NAME_NS = 1000000, /* ... and to the second one */
    FRAME_BYTES = 64,        /* of a Python frame, what is read of it */
    LANDMARK_BYTES = 16,
    MOST_NS_PER_BYTE = 2,
    LARGE_BYTES = 64 << 10, /* a deep stack, all of it */
    COST_SAMPLES = 8,       /* so many samples say what one costs */
    MOST_COST = 3,          /* a third of the time up to the next */
    REST = 4,
    MOST_PUT_OFF = 8,    /* samples in a row, for want of a generator's caller */
    KILLED_SECONDS = 10, /* nobody is so slow */
};

/* By DWARF number. */
static const int REGISTERS[SAMPLE_REGISTERS] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
    REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP,
};

/* False when there is no room in the ring. */
static bool put_name(struct sample_take_source *source, const struct sample_thread *thread,
                     uint16_t flags, uint64_t time_ns)
{
    uint64_t position;
    struct sample_record *record = sample_ring_take(
        &source->ring, sizeof *record + sizeof thread->name, SAMPLE_RECORD_THREAD, &position);
    if (!record)
        return false;
    memcpy(record + 1, thread->name, sizeof thread->name);
    record->time_ns = time_ns;
    record->tid = thread->tid;
    record->extra = (uint32_t)strnlen(thread->name, sizeof thread->name);
    record->flags = flags;
    sample_ring_give(&source->ring, record, position);
    return true;
}

static void announce_thread(struct sample_take_source *source, struct sample_thread *thread,
                            uint64_t first_ns, uint64_t now)
{
    thread->name_ns = now - NAME_NS + FIRST_NAME_NS;
    prctl(PR_GET_NAME, thread->name);
    thread->is_announced =
        put_name(source, thread, thread->chain.entries ? 0 : SAMPLE_THREAD_BORDER, first_ns);
}

/* Threads get other names, and nobody tells us: most soon after they have begun, as CPython 3.14
 * names them when they run already. */
static void look_at_name(struct sample_take_source *source, struct sample_thread *thread,
                         uint64_t now)
{
    char before[sizeof thread->name];
    if (now - thread->name_ns < NAME_NS)
        return;
    thread->name_ns = now;
    memcpy(before, thread->name, sizeof before);
    if (prctl(PR_GET_NAME, thread->name) == 0 &&
        strncmp(before, thread->name, sizeof before) != 0 &&
        !put_name(source, thread, SAMPLE_THREAD_RENAMED, now))
        memcpy(thread->name, before, sizeof before); /* try again */
}

static uint64_t period_of(const struct sample_take_source *source)
{
    return NS_PER_SECOND / source->frequency_hz;
}

/* The CPU time since the last sample. */
static uint64_t cpu_used(const struct sample_thread *thread)
{
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return cpu_ns > thread->accounted_ns ? cpu_ns - thread->accounted_ns : 0;
}

/* The time that an interrupt stands for, and whether the thread has slept through it. */
static uint64_t weight_of(const struct sample_take_source *source, struct sample_thread *thread,
                          const siginfo_t *info, uint64_t now, bool *ret_waiting)
{
    uint64_t period = period_of(source), times = 1;
    if (info->si_code == SI_TIMER && info->si_overrun > 0)
        times += (uint64_t)info->si_overrun;
    if (source->trigger == SAMPLE_TRIGGER_PERF_KERNEL)
        return period; /* what is missing is an interrupt, too */
    if (source->trigger == SAMPLE_TRIGGER_CPU_TIMER)
        return period * times;
    uint64_t used = cpu_used(thread), passed = now - thread->time_ns;
    bool is_first = thread->time_ns == 0;
    thread->accounted_ns += used;
    thread->time_ns = now;
    if (source->trigger != SAMPLE_TRIGGER_WALL_TIMER)
        return used;
    *ret_waiting = !is_first && used < passed / 2;
    return period * times;
}

/* How often the thread was interrupted since the last signal, and what it did in the kernel. A tick
 * is no interrupt by itself. */
static struct sample_kernel_result interrupts_of(const struct sample_take_source *source,
                                                 struct sample_thread *thread, bool is_tick,
                                                 uint64_t now)
{
    uint64_t period = period_of(source);
    if (source->trigger == SAMPLE_TRIGGER_PERF_KERNEL && thread->kernel_words)
        return sample_kernel_read(thread, now, period, is_tick);
    bool is_missing = is_tick && cpu_used(thread) >= SAMPLE_MISSING_EVENTS * period;
    return (struct sample_kernel_result){.user = !is_tick || is_missing};
}

/* A deep sample is told in part: what the one before in the ring has is left out. Returns how many
 * frames that are. */
static size_t count_told(const struct sample_thread *thread, uint64_t now)
{
    if (now > thread->deep_whole_ns + (uint64_t)SAMPLE_DEEP_SECONDS * NS_PER_SECOND)
        return 0;
    return thread->chain.kept < thread->told ? thread->chain.kept : thread->told;
}

/* The chain of a deep sample is the known one now. */
static void remember_frames(struct sample_thread *thread, const struct sample_body *body,
                            bool is_told, uint64_t now)
{
    if (thread->told > thread->chain.kept)
        thread->told = thread->chain.kept;
    sample_chain_keep(&thread->chain);
    if (!is_told)
        return;
    thread->told = thread->chain.known_count;
    thread->deep_number = body->deep_number;
    if (!body->kept_frames)
        thread->deep_whole_ns = now;
}

/* What a sample is made of, besides what the thread's structure has room for. */
struct parts {
    struct sample_body body;
    struct sample_frames_result frames;
    size_t frame_count; /* with those that are not told */
    struct sample_stack stack;
    struct sample_kernel_result kernel;
    bool is_waiting;
};

static uint16_t flags_of(const struct parts *parts)
{
    const struct sample_stack *stack = &parts->stack;
    return (uint16_t)((stack->is_whole ? SAMPLE_STACK_WHOLE : 0) |
                      (stack->outer_bytes ? SAMPLE_TWO_STACKS : 0) |
                      (stack->known.count ? SAMPLE_STACK_KNOWN : 0) |
                      (stack->red_zone_bytes ? SAMPLE_RED_ZONE : 0) |
                      (parts->frames.is_cut ? SAMPLE_CUT : 0) |
                      (parts->is_waiting ? SAMPLE_WAITING : 0));
}

static uint8_t *put_words(uint8_t *out, const uint64_t *words, size_t count)
{
    if (count)
        memcpy(out, words, count * sizeof *words);
    return out + count * sizeof *words;
}

/* False when there is no room in the ring. */
static bool put_sample(struct sample_take_source *source, const struct sample_thread *thread,
                       const struct parts *parts, uint64_t now)
{
    const struct sample_body *body = &parts->body;
    size_t words = (size_t)(body->kernel_words + body->frame_count);
    size_t stack_bytes = sample_stack_bytes(&parts->stack);
    uint64_t position;
    struct sample_record *record = sample_ring_take(
        &source->ring, sizeof *record + sizeof *body + words * sizeof(uint64_t) + stack_bytes,
        SAMPLE_RECORD_SAMPLE, &position);
    if (!record)
        return false;
    record->time_ns = now;
    record->tid = thread->tid;
    record->extra = (uint32_t)stack_bytes;
    record->flags = flags_of(parts);
    uint8_t *out = (uint8_t *)(record + 1);
    memcpy(out, body, sizeof *body);
    out = put_words(out + sizeof *body, thread->kernel_words, (size_t)body->kernel_words);
    out = put_words(out, thread->chain.entries, thread->chain.count);
    out = put_words(out, sample_chain_kept(&thread->chain), thread->chain.kept - body->kept_frames);
    sample_stack_copy(&parts->stack, out);
    sample_ring_give(&source->ring, record, position);
    return true;
}

/* Looks at the thread's Python frames, its registers and its C stack. */
static void look(struct sample_take_source *source, struct sample_thread *thread,
                 const ucontext_t *at, uint64_t now, struct parts *parts)
{
    struct sample_body *body = &parts->body;
    struct sample_chain *chain = &thread->chain;
    if (chain->entries)
        parts->frames = sample_frames_read(
            &source->ring,
            (struct sample_bounds){.low = thread->stack_low, .high = thread->stack_high},
            &thread->states, chain);
    parts->frame_count = chain->count + chain->kept;
    if (parts->frame_count >= SAMPLE_DEEP_FRAMES) {
        body->kept_frames = (uint32_t)count_told(thread, now);
        body->deep_number = thread->deep_number == UINT32_MAX ? 1 : thread->deep_number + 1;
    }
    body->frame_count = parts->frame_count - body->kept_frames;
    for (int i = 0; i < SAMPLE_REGISTERS; i++)
        body->registers[i] = (uint64_t)at->uc_mcontext.gregs[REGISTERS[i]];
    parts->stack = sample_stack_find(&source->ring, thread, at);
}

/* A deep stack that the recorder does not know yet is large: a few of them would fill the ring in
 * less than a millisecond. They leave half of it to others. */
static bool has_to_wait(const struct sample_ring *ring, const struct sample_stack *stack)
{
    if (stack->inner_bytes < LARGE_BYTES)
        return false;
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->header->tail, memory_order_relaxed);
    return head - tail + stack->inner_bytes > ring->data_bytes / 2;
}

/* A recorder that has ended says so; one that was killed does not. */
static void note_lost(struct sample_take_source *source, uint64_t count, uint64_t now)
{
    struct sample_ring_header *header = source->ring.header;
    atomic_fetch_add_explicit(&header->lost, count, memory_order_relaxed);
    uint64_t full_ns =
        source->full_ns; /* other threads set it meanwhile, perhaps later than `now` */
    if (!full_ns)
        source->full_ns = full_ns = now;
    int64_t full_for_ns = (int64_t)(now - full_ns);
    source->is_over = atomic_load_explicit(&header->is_closed, memory_order_relaxed) ||
                      full_for_ns > (int64_t)KILLED_SECONDS * NS_PER_SECOND;
}

/* A generator without its caller is most likely just being called: the next sample shows more. */
static bool is_put_off(struct sample_thread *thread, const struct sample_frames_result *frames)
{
    if (!frames->is_headless) {
        thread->headless_count = 0;
        return false;
    }
    return thread->headless_count < MOST_PUT_OFF && ++thread->headless_count;
}

/* The time that a sample of a young thread stands for: see sample_rest.c. False: none. */
static bool weigh_young(const struct sample_take_source *source, struct sample_thread *thread,
                        bool is_tick, struct parts *parts)
{
    sample_rest_leave(thread, period_of(source));
    sample_trigger_rejoin(source->trigger, source->frequency_hz, thread);
    parts->kernel = (struct sample_kernel_result){.user = is_tick};
    if (is_tick)
        parts->body.weight_ns = sample_rest_take(period_of(source));
    return parts->body.weight_ns > 0;
}

/* The time that the sample stands for; false when there is none that others do not stand for. */
static bool weigh(const struct sample_take_source *source, struct sample_thread *thread,
                  const siginfo_t *info, uint64_t now, struct parts *parts)
{
    struct sample_body *body = &parts->body;
    struct sample_kernel_result *kernel = &parts->kernel;
    bool is_tick = sample_trigger_is_tick(source->trigger, info);
    if (thread->is_young)
        return weigh_young(source, thread, is_tick, parts);
    *kernel = interrupts_of(source, thread, is_tick, now);
    if (kernel->user)
        body->weight_ns = kernel->user * weight_of(source, thread, info, now, &parts->is_waiting);
    body->kernel_weight_ns = kernel->kernel * period_of(source);
    body->kernel_words = kernel->words;
    if (is_tick)
        sample_trigger_after_tick(source->frequency_hz, thread, kernel->user + kernel->kernel > 0);
    if (body->weight_ns + body->kernel_weight_ns == 0)
        return false;
    *(body->weight_ns ? &body->weight_ns : &body->kernel_weight_ns) += thread->owed_ns;
    return true;
}

/* How many bytes of the program's memory it had to read, roughly; 0 when it did not look. */
static size_t take_sample(struct sample_take_source *source, struct sample_thread *thread,
                          const siginfo_t *info, const ucontext_t *at, uint64_t now)
{
    struct sample_ring_header *header = source->ring.header;
    struct parts parts = {.frames = {0}};
    struct sample_body *body = &parts.body;
    struct sample_kernel_result *kernel = &parts.kernel;
    if (!weigh(source, thread, info, now, &parts))
        return 0;
    thread->owed_ns = body->weight_ns + body->kernel_weight_ns;
    if (now < thread->rest_until_ns)
        return 0;
    if (thread->is_announced)
        look_at_name(source, thread, now);
    else
        announce_thread(source, thread, kernel->words ? kernel->oldest_ns : now, now);
    look(source, thread, at, now, &parts);
    if (parts.frames.is_late || is_put_off(thread, &parts.frames) ||
        has_to_wait(&source->ring, &parts.stack))
        return parts.frame_count * FRAME_BYTES;
    bool is_told = !parts.frames.is_lost && put_sample(source, thread, &parts, now);
    if (body->deep_number)
        remember_frames(thread, body, is_told, now);
    if (!is_told) {
        note_lost(source, kernel->user + kernel->kernel, now);
        return parts.frame_count * FRAME_BYTES;
    }
    thread->owed_ns = 0;
    if (source->full_ns)
        source->full_ns = 0;
    if (parts.frames.is_cut)
        atomic_fetch_add_explicit(&header->unreadable, 1, memory_order_relaxed);
    return sample_stack_bytes(&parts.stack) + parts.stack.known.count * LANDMARK_BYTES +
           parts.frame_count * FRAME_BYTES;
}

/* With very deep stacks a sample can take as long as the time up to the next one, and the program
 * would hardly get on: it gets REST times as long as samples take. One may take longer since other
 * programs had the processor meanwhile: it counts for not more than such a sample should take, and
 * not alone. */
static void let_rest(struct sample_thread *thread, uint64_t took, uint64_t period, uint64_t now)
{
    thread->cost_ns += (int64_t)(took - thread->cost_ns) / COST_SAMPLES;
    if (thread->cost_ns > period / MOST_COST)
        thread->rest_until_ns = now + REST * thread->cost_ns;
}

void sample_take(struct sample_take_source *source, struct sample_thread *thread,
                 const siginfo_t *info, const ucontext_t *at)
{
    uint64_t begin = clock_ns(CLOCK_MONOTONIC);
    size_t bytes = take_sample(source, thread, info, at, begin);
    uint64_t end = clock_ns(CLOCK_MONOTONIC), took = end - begin;
    uint64_t most = bytes * MOST_NS_PER_BYTE;
    if (bytes)
        let_rest(thread, took < most ? took : most, period_of(source), end);
    thread->handled_ns = end;
}
