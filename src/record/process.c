/* From a sample in the ring to one in the recording:
 *
 *     registers, copy of the stack --unwind--> C functions  --+
 *                                                             +--merge--> chain
 *     code numbers, offsets ------functions--> addresses    --+
 *
 * Next to nothing is allocated for a sample. The unwinder remembers rules by address, and Python
 * frames are looked up in a small table with one place per (function, instruction). What is deep in
 * a stack is remembered from the sample before (known_stacks.c, thread_frames.c, kept_chain.c). */
#include "record/process.h"

#include "record/proc_search.h"
#include "record/process_code.h"
#include "record/ring_record.h"

#include <elf.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    MOST_CODE_NUMBERS = 1 << 26,
    REGISTER_PC = SAMPLE_REGISTERS - 1,
    REGISTER_SP = 7,
    MOST_OWN = 8, /* so many callers of the innermost function may be ours */
};

/* Records that are written while a ring is being emptied are newer than its beginning; what is
 * later than this is none of them. */
static const uint64_t MOST_AHEAD_NS = 10000000000;

/* --- room, open, close ------------------------------------------------------------------------ */

int process_room_init(struct process_room *room)
{
    size_t entries = RECORDING_CHAIN_MOST;
    *room = (struct process_room){.frame_capacity = SAMPLE_RING_RECORD_MOST / sizeof(uint64_t)};
    room->pcs = malloc(entries * sizeof *room->pcs);
    room->cfas = malloc(entries * sizeof *room->cfas);
    room->frames = malloc(room->frame_capacity * sizeof *room->frames);
    room->chain = malloc((RECORDING_FRONT + entries) * sizeof *room->chain);
    room->evaluators = malloc(entries * sizeof *room->evaluators);
    if (room->pcs && room->cfas && room->frames && room->chain && room->evaluators)
        return 0;
    process_room_done(room);
    return -ENOMEM;
}

void process_room_done(struct process_room *room)
{
    free(room->pcs);
    free(room->cfas);
    free(room->frames);
    free(room->chain);
    free(room->evaluators);
    *room = (struct process_room){0};
}

static uint64_t avma_of(void *data, uint64_t frame);

/* A process, as others of its PID namespace call it. */
static struct programs_process named(const struct process *process, int32_t pid)
{
    return (struct programs_process){.pid_namespace = process->ring.header->pid_namespace,
                                     .pid = pid};
}

int process_open(struct process_context *context, const struct sample_ring *ring,
                 struct process **ret_process)
{
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return -ENOMEM;
    struct unwind_finder finder = {.find = process_code_find, .context = process};
    if (unwinder_open(EM_X86_64, finder, &process->unwinder) < 0) {
        free(process);
        return -ENOMEM;
    }
    process->context = context;
    generated_code_init(&process->generated, process);
    process->thread_frames = (struct thread_frames){.resolve = avma_of, .context = process};
    process->ring = *ring;
    process->own_pid = ring->header->pid;
    process->pid = proc_search_by_namespace(ring->header->pid_namespace, process->own_pid);
    if (!process->pid) { /* it is gone */
        process->pid = process->own_pid;
        process->has_successor = true;
    }
    if (process->pid == process->own_pid) /* else it is another namespace's number */
        process->parent_pid = ring->header->parent_pid;
    process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    process->newest_ns = ring->header->start_ns;
    memcpy(process->command, ring->header->command, sizeof process->command - 1);
    programs_record(&context->programs, named(process, process->own_pid), process->newest_ns);
    *ret_process = process;
    return 0;
}

void process_close(struct process *process)
{
    if (!process)
        return;
    if (process->pidfd >= 0)
        close(process->pidfd);
    sample_ring_close(&process->ring);
    process_maps_done(&process->maps);
    unwinder_close(process->unwinder);
    generated_code_done(&process->generated);
    known_stacks_done(&process->known_stacks);
    thread_frames_done(&process->thread_frames);
    hashtable_done(&process->threads);
    vector_done(&process->functions);
    free(process);
}

static struct recording_task task_of(const struct process *process, uint32_t tid, uint64_t time_ns)
{
    bool is_main = !tid || (int32_t)tid == process->own_pid;
    return (struct recording_task){
        .pid = process->pid, .tid = is_main ? process->pid : (int32_t)tid, .time_ns = time_ns};
}

/* --- is it still there? ----------------------------------------------------------------------- */

static bool is_gone(const struct process *process)
{
    if (process->pidfd < 0)
        return kill(process->pid, 0) < 0 && errno == ESRCH;
    struct pollfd poll_fd = {.fd = process->pidfd, .events = POLLIN};
    return poll(&poll_fd, 1, 0) == 1;
}

bool process_has_ended(const struct process *process)
{
    /* First whether it is gone: what it wrote before that is in the ring now. */
    return (process->has_successor || is_gone(process)) && !sample_ring_peek(&process->ring);
}

/* --- Python functions ------------------------------------------------------------------------- */

static void take_code(struct process *process, const struct ring_record_code *code)
{
    struct recording *recording = process->context->recording;
    uint32_t number;
    if (code->number >= MOST_CODE_NUMBERS ||
        vector_reserve(&process->functions, code->number + 1) < 0)
        return;
    if (python_functions_add(&recording->functions, process->ring.header->python_minor, code,
                             &number) < 0)
        number = PYTHON_FUNCTIONS_UNKNOWN;
    while (process->functions.count <= code->number)
        process->functions.items[process->functions.count++] = PYTHON_FUNCTIONS_UNKNOWN;
    process->functions.items[code->number] = number;
    if (!process->has_python)
        recording_mmap_python(recording, task_of(process, 0, process->ring.header->start_ns));
    process->has_python = true;
}

static uint64_t avma_of(void *data, uint64_t frame)
{
    struct process *process = data;
    struct process_cached *cached =
        &process->addresses[hash_u64(frame) >> (64 - PROCESS_CACHE_BITS)];
    if (cached->frame == frame)
        return cached->avma;
    uint64_t code = frame >> 32;
    uint32_t function = code < process->functions.count ? process->functions.items[code]
                                                        : (uint32_t)PYTHON_FUNCTIONS_UNKNOWN;
    uint64_t avma =
        python_functions_avma(&process->context->recording->functions, function, (uint32_t)frame);
    /* A function that is not known may become so: its number can come late. */
    if (function != PYTHON_FUNCTIONS_UNKNOWN)
        *cached = (struct process_cached){.frame = frame, .avma = avma};
    return avma;
}

/* --- samples ---------------------------------------------------------------------------------- */

/* The process may have written anything. */
static void split_stacks(struct unwind_sample *state, size_t before)
{
    struct sample_two_stacks end;
    if (state->stack_bytes < before + sizeof end)
        return;
    size_t both = state->stack_bytes - sizeof end;
    memcpy(&end, state->stack + both, sizeof end);
    if (end.inner_bytes > both - before)
        return;
    state->stack_bytes = before + (size_t)end.inner_bytes;
    state->outer_stack = state->stack + state->stack_bytes;
    state->outer_bytes = both - state->stack_bytes;
    state->outer_avma = end.outer_avma;
}

/* Functions of the sampler that stand in front of others (interp/interpose.c) are left out, and
 * their part of the stack is their callee's. They call nothing of the program's, so they are among
 * the innermost; the innermost itself stays. */
static void leave_out_own(const struct process *process, struct unwind_frames *frames)
{
    const struct sample_ring_header *header = process->ring.header;
    uint64_t start = header->own_start_avma, end = header->own_end_avma;
    for (size_t i = 1; i < frames->count && i <= MOST_OWN;) {
        if (frames->pcs[i] < start || frames->pcs[i] >= end) {
            i++;
            continue;
        }
        size_t behind = frames->count - i - 1;
        memmove(&frames->pcs[i], &frames->pcs[i + 1], behind * sizeof *frames->pcs);
        memmove(&frames->cfas[i - 1], &frames->cfas[i], (behind + 1) * sizeof *frames->cfas);
        frames->count--;
    }
}

static enum unwind_end unwind_copy(struct process *process, const struct ring_record *record,
                                   struct unwind_frames *frames)
{
    const struct ring_record_sample *sample = &record->sample;
    size_t before = sample->red_zone_bytes;
    struct unwind_sample state = {.stack = sample->stack - before,
                                  .stack_bytes = before + sample->stack_bytes,
                                  .stack_avma = sample->registers[REGISTER_SP] - before,
                                  .is_whole = record->flags & SAMPLE_STACK_WHOLE};
    if (record->flags & SAMPLE_TWO_STACKS)
        split_stacks(&state, before);
    state.cpu.pc = sample->registers[REGISTER_PC];
    memcpy(state.cpu.registers, sample->registers, REGISTER_PC * sizeof *sample->registers);
    state.cpu.known = (1u << REGISTER_PC) - 1;
    enum unwind_end end = unwind(process->unwinder, &state, frames);
    leave_out_own(process, frames);
    return end;
}

/* Without what is known behind the joint. */
static enum unwind_end unwind_sample(struct process *process, struct ring_record *record,
                                     struct unwind_frames *frames, struct known_joint *ret_joint)
{
    *ret_joint = (struct known_joint){0};
    if (!(record->flags & SAMPLE_STACK_KNOWN))
        return unwind_copy(process, record, frames);
    struct sample_known_stack known = known_stacks_take(&record->sample);
    enum unwind_end end;
    unwind_copy(process, record, frames);
    *ret_joint =
        known_stacks_join(&process->known_stacks, &process->ring, record, known, frames, &end);
    return end;
}

static void on_evaluator(void *data, uint64_t pc_avma)
{
    struct process *process = data;
    evaluators_learn(&process->evaluators, &process->maps, pc_avma);
}

/* What a sample in the ring is of, besides the kernel. */
struct user_part {
    uint64_t *chain; /* with room for RECORDING_FRONT entries before it */
    size_t count;
    enum unwind_end end;
    enum merge_verdict verdict;
    bool has_python, is_cut;
};

static void count_sample(struct process_counts *counts, const struct user_part *user)
{
    counts->samples++;
    counts->complete += user->end == UNWIND_COMPLETE;
    counts->truncated += user->end == UNWIND_TRUNCATED;
    counts->broken += user->end == UNWIND_BROKEN;
    counts->python += user->has_python || user->verdict != MERGE_MATCHED;
    counts->starting += user->verdict == MERGE_STARTING;
    counts->unmatched += user->verdict == MERGE_UNMATCHED;
    counts->cut += user->is_cut;
}

static const enum perfdata_stack_end end_of[] = {[UNWIND_COMPLETE] = PERFDATA_STACK_COMPLETE,
                                                 [UNWIND_TRUNCATED] = PERFDATA_STACK_TRUNCATED,
                                                 [UNWIND_BROKEN] = PERFDATA_STACK_BROKEN};

static void put_sample(struct process *process, struct recording_task task,
                       const struct user_part *user, struct recording_sample *sample)
{
    struct process_context *context = process->context;
    count_sample(&context->counts, user);
    sample->user = user->chain;
    sample->user_count = user->count;
    sample->end = end_of[user->end];
    recording_sample(context->recording, task, sample);
}

/* Each chain of the kernel is a sample by itself, on top of the same callers. */
static void put_chains(struct process *process, const struct ring_record *record,
                       const struct user_part *user)
{
    struct ring_record_chain chain;
    uint64_t count = 0, left_ns = record->sample.kernel_weight_ns;
    for (size_t position = 0; ring_record_next_chain(&record->sample, &position, &chain);)
        count++;
    /* The process might change the number meanwhile. */
    for (size_t position = 0;
         count > 0 && ring_record_next_chain(&record->sample, &position, &chain); count--) {
        struct recording_task task = task_of(process, record->tid, chain.time_ns);
        if (task.time_ns > record->time_ns || task.time_ns < process->ring.header->start_ns)
            task.time_ns = record->time_ns;
        struct recording_sample sample = {
            .weight_ns = left_ns / count, .kernel = chain.addresses, .kernel_count = chain.count};
        left_ns -= sample.weight_ns;
        put_sample(process, task, user, &sample);
    }
}

/* The joint's part of the C functions is not there yet. */
static enum merge_verdict merge_sample(const struct thread_frames_taken *frames,
                                       struct unwind_frames *native, struct known_joint joint,
                                       struct merge_stacks *stacks, struct merge_result *result)
{
    struct kept_chain_stacks parts = {
        .merge = stacks, .native = native, .joint = joint, .same_frames = frames->same};
    if (frames->chain)
        return kept_chain_merge(frames->chain, &parts, result);
    known_stacks_append(joint, native, native->count + joint.left);
    stacks->count = native->count;
    return merge(stacks, result);
}

static void take_sample(struct process *process, struct ring_record *record)
{
    struct process_room *room = &process->context->room;
    struct unwind_frames native = {
        .pcs = room->pcs, .cfas = room->cfas, .capacity = RECORDING_CHAIN_MOST};
    if (process->ring.header->evaluator_avma && !process->evaluators.is_named)
        evaluators_name(&process->evaluators, &process->maps, process->ring.header->evaluator_avma);
    struct known_joint joint;
    enum unwind_end end = unwind_sample(process, record, &native, &joint);
    struct thread_frames_taken frames;
    thread_frames_take(&process->thread_frames, record, room->frames, room->frame_capacity,
                       &frames);
    struct merge_stacks stacks = {.pcs = native.pcs,
                                  .cfas = native.cfas,
                                  .stack_avma = record->sample.registers[REGISTER_SP],
                                  .is_complete = end == UNWIND_COMPLETE,
                                  .frames = frames.items,
                                  .frame_count = frames.count,
                                  .evaluators = process->evaluators.ranges,
                                  .evaluator_count = process->evaluators.count,
                                  .trampolines = process->trampolines,
                                  .trampoline_count = process->trampoline_count,
                                  .starters = process->starters,
                                  .starter_count = process->starter_count};
    struct merge_result merged = {.entries = room->chain + RECORDING_FRONT,
                                  .capacity = RECORDING_CHAIN_MOST,
                                  .evaluators = room->evaluators,
                                  .on_evaluator = on_evaluator,
                                  .context = process};
    struct user_part user = {.verdict = merge_sample(&frames, &native, joint, &stacks, &merged),
                             .has_python = stacks.frame_count > 0,
                             .is_cut = frames.is_cut || record->flags & SAMPLE_CUT};
    if (end == UNWIND_COMPLETE)
        known_stacks_tell(&process->known_stacks, &process->ring, record, &native, joint);
    user.chain = merged.entries;
    user.count = merged.count;
    user.end = merged.is_cut ? UNWIND_TRUNCATED : merged.has_starter ? UNWIND_COMPLETE : end;
    struct recording_sample sample = {.weight_ns = record->sample.weight_ns,
                                      .is_waiting = record->flags & SAMPLE_WAITING};
    if (sample.weight_ns)
        put_sample(process, task_of(process, record->tid, record->time_ns), &user, &sample);
    put_chains(process, record, &user);
}

/* What is known of a thread number. One that comes again as a whole is another thread. */
enum thread_state { THREAD_IS_NEW, THREAD_AT_BORDER, THREAD_IS_WHOLE };

static void name_thread(struct process *process, struct recording_task task,
                        const struct ring_record *record)
{
    char name[64];
    size_t length = record->text.length < sizeof name ? record->text.length : sizeof name - 1;
    memcpy(name, record->text.bytes, length);
    name[length] = '\0';
    recording_comm(process->context->recording, task, name, false);
}

static void take_thread(struct process *process, const struct ring_record *record)
{
    struct recording_task task = task_of(process, record->tid, record->time_ns);
    bool is_border = record->flags & SAMPLE_THREAD_BORDER;
    uint64_t hash = hash_u64(record->tid), state = THREAD_IS_NEW;
    hashtable_get(&process->threads, hash, &state);
    if (is_border && state != THREAD_IS_NEW)
        return;
    if (!(record->flags & SAMPLE_THREAD_RENAMED)) {
        (void)hashtable_set(&process->threads, hash,
                            is_border ? THREAD_AT_BORDER : THREAD_IS_WHOLE);
        if (task.tid != task.pid && state != THREAD_AT_BORDER)
            recording_fork(process->context->recording, task, process->pid);
    }
    name_thread(process, task, record);
}

static void take_program(struct process *process, const struct ring_record *record)
{
    programs_start(&process->context->programs, named(process, (int32_t)record->tid),
                   record->time_ns, record->text.bytes, record->text.length);
}

static void take_record(struct process *process, const struct sample_record *record)
{
    struct ring_record decoded;
    if (ring_record_decode(record, process->ring.data_bytes, &decoded) < 0 ||
        decoded.time_ns > process->context->now_ns + MOST_AHEAD_NS) {
        process->context->counts.damaged++;
        return;
    }
    if (decoded.time_ns > process->newest_ns)
        process->newest_ns = decoded.time_ns;
    switch (decoded.type) {
    case SAMPLE_RECORD_SAMPLE:
        take_sample(process, &decoded);
        break;
    case SAMPLE_RECORD_CODE:
        take_code(process, &decoded.code);
        break;
    case SAMPLE_RECORD_THREAD:
        take_thread(process, &decoded);
        break;
    case SAMPLE_RECORD_PROGRAM:
        take_program(process, &decoded);
        break;
    default:
        process_code_list(process, decoded.time_ns,
                          maps_text_init(decoded.text.bytes, decoded.text.length));
    }
}

unsigned process_drain(struct process *process)
{
    struct sample_ring *ring = &process->ring;
    uint64_t tail = atomic_load_explicit(&ring->header->tail, memory_order_relaxed);
    uint64_t head = atomic_load_explicit(&ring->header->head, memory_order_acquire);
    uint64_t waiting = head - tail;
    if (waiting > ring->data_bytes)
        waiting = ring->data_bytes;
    sample_ring_prepare(ring);
    if (process->wants_maps)
        process_code_refresh(process);
    const struct sample_record *record;
    for (uint64_t done = 0; done < waiting && (record = sample_ring_peek(ring)) != NULL;) {
        done += record->bytes >= sizeof *record ? record->bytes : sizeof *record;
        take_record(process, record);
        sample_ring_done_with(ring, record);
    }
    uint64_t lost = atomic_load_explicit(&ring->header->lost, memory_order_relaxed);
    process->context->counts.lost += lost - process->lost;
    process->lost = lost;
    return ring->data_bytes ? (unsigned)(waiting * 256 / ring->data_bytes) : 0;
}
