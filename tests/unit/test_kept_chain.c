#include "record/kept_chain.h"

#include "failing_malloc.h"
#include "record/recording.h"
#include "record/thread_frames.h"
#include "unit.h"

#include <stdio.h>

/* A thread calls and returns at random. Each of its samples goes two ways: as the sampler and the
 * recorder do it, with what is known of the sample before, and in one go, with all of the stacks
 * merged. The chains must be the same.
 *
 * A call of the thread is some C functions, the innermost of them an evaluator, and the Python
 * functions that it runs. Now and then something is wrong with one. */
enum {
    MOST_CALLS = 400,
    MOST_GLUE = 3,
    MOST_RUN = 3,
    MOST_NATIVES = (MOST_CALLS + 2) * (MOST_GLUE + 1),
    MOST_FRAMES = MOST_CALLS * (MOST_RUN + 1),
    STACK_BYTES = MOST_NATIVES * 512,
    CODE = 0x10000, /* pcs of C functions from here on ... */
    EVALUATOR = 0xe00000,
    EVALUATOR_BYTES = 0x1000, /* ... and of evaluators, of several such ranges */
    EVALUATORS = 3,
    SURE_AFTER = 4,
    HIDDEN = 7, /* the offset in frames that are not shown */
    TID = 9,
    RSP = 7
};

struct call {
    uint64_t glue[MOST_GLUE], evaluator; /* pcs, the outermost first; 0: none */
    uint64_t run[MOST_RUN];              /* frames, the outermost first */
    size_t glue_count, run_count;
    uint64_t lost;       /* not 0: the border's address, which is nowhere */
    bool has_no_address; /* the border */
};

/* What is known of evaluators, learned as record/evaluators.c does. */
struct learned {
    struct merge_range ranges[EVALUATORS];
    size_t count;
    uint32_t hits[EVALUATORS];
};

/* How a thread behaves. */
struct kind {
    bool has_addresses; /* borders have one ... */
    bool is_mixed;      /* ... or only some */
    bool is_poor;       /* the recorder gets memory only now and then */
    bool has_strays;    /* some evaluators run nothing */
    unsigned odd;       /* one of so many calls is not in order; 0: none */
    size_t capacity;    /* of the chain */
    unsigned forgets;   /* one of so many samples does not reach the recorder; 0: none */
};

/* One of five C functions. */
static const struct merge_range trampolines = {CODE, CODE + 10 * 16};

static uint64_t random_state;
static struct kind kind;
static struct call calls[MOST_CALLS];
static size_t call_count;
static uint64_t leaves[MOST_GLUE];
static size_t leaf_count;

/* The thread's stacks, innermost first. */
static _Alignas(16) uint8_t memory[STACK_BYTES];
static uint64_t pcs[MOST_NATIVES], cfas[MOST_NATIVES], frames[MOST_FRAMES];
static size_t native_count, frame_count;
static uint64_t stack_avma;

/* The sampler's and the recorder's side. */
static uint64_t sent[MOST_FRAMES];
static size_t sent_count;
static uint32_t deep_number;
static struct sample_ring ring;
static struct sample_ring seen; /* the thread takes what it was told from here */
static struct sample_ring_header seen_header;
static _Alignas(8) uint8_t seen_table[SAMPLE_RING_TABLE_BYTES];
static struct known_stacks known_stacks;
static struct thread_frames thread_frames;
static struct learned quick_learned, plain_learned;
static uint64_t some_pcs[MOST_NATIVES], some_cfas[MOST_NATIVES], room[MOST_FRAMES];
static uint64_t quick_entries[RECORDING_FRONT + RECORDING_CHAIN_MOST];
static uint64_t plain_entries[RECORDING_CHAIN_MOST];
static uint32_t evaluators[MOST_NATIVES];
static size_t quick_count, sample_count, verdicts[MERGE_UNMATCHED + 1];

/* What is left of all frames of the thread in the recorder, the outermost first. */
static uint64_t reference[MOST_FRAMES];
static size_t reference_count;
static uint32_t reference_number;

static uint64_t below(uint64_t limit)
{
    return next_random(&random_state) % limit;
}

static bool is_odd(void)
{
    return kind.odd && below(kind.odd) == 0;
}

static uint64_t resolve(void *context, uint64_t frame)
{
    (void)context;
    return (uint32_t)frame == HIDDEN ? 0 : frame * 3;
}

static void learn(void *context, uint64_t pc)
{
    struct learned *learned = context;
    uint64_t number = (pc - EVALUATOR) / EVALUATOR_BYTES;
    for (size_t i = 0; i < learned->count; i++)
        if (pc >= learned->ranges[i].start_avma && pc < learned->ranges[i].end_avma)
            return;
    if (pc < EVALUATOR || ++learned->hits[number] < SURE_AFTER)
        return;
    uint64_t start = EVALUATOR + number * EVALUATOR_BYTES;
    learned->ranges[learned->count++] = (struct merge_range){start, start + EVALUATOR_BYTES};
}

/* --- the thread ------------------------------------------------------------------------------- */

static uint64_t new_frame(void)
{
    return (1 + below(20)) << 32 | 2 * below(20) | (below(200) ? 0 : HIDDEN);
}

static uint64_t some_code(void)
{
    return CODE + below(50) * 16;
}

/* One that is not known at first, mostly. */
static uint64_t some_evaluator(void)
{
    return EVALUATOR + below(EVALUATORS) * EVALUATOR_BYTES;
}

static void push_call(void)
{
    struct call *call = &calls[call_count++];
    *call = (struct call){.glue_count = below(MOST_GLUE + 1), .run_count = 1 + below(MOST_RUN)};
    if (!kind.has_addresses)
        call->run_count = 1;
    for (size_t i = 0; i < call->glue_count; i++)
        call->glue[i] = kind.has_strays && below(300) == 0 ? some_evaluator() : some_code();
    call->evaluator = EVALUATOR + below(10) * 16;
    for (size_t i = 0; i < call->run_count; i++)
        call->run[i] = new_frame();
    if (kind.has_addresses && below(500) == 0)
        call->evaluator = some_evaluator();
    call->has_no_address = kind.is_mixed && below(100) == 0;
    if (is_odd())
        call->run_count = 0;
    if (is_odd())
        call->evaluator = 0;
    if (is_odd())
        call->lost = 1 + below(1 << 20) * 8;
}

/* The thread goes on for a while: the innermost calls end, and there are others. */
static void go_on(void)
{
    size_t ended = below(100) ? below(6) : below(MOST_CALLS);
    size_t least = MOST_CALLS / 4 + below(MOST_CALLS / 4);
    call_count -= ended < call_count ? ended : call_count;
    if (call_count && calls[call_count - 1].run_count)
        calls[call_count - 1].run[calls[call_count - 1].run_count - 1] = new_frame();
    if (below(50) == 0) /* somewhere in the middle something else is called the same way */
        calls[below(MOST_CALLS)].run[0] = new_frame();
    if (below(10) == 0) /* ... or the same in another of two ways */
        calls[below(4) * MOST_CALLS / 16].glue[0] ^= 16;
    size_t wanted = call_count + below(6);
    while (call_count < MOST_CALLS && (call_count < wanted || call_count < least))
        push_call();
    leaf_count = below(MOST_GLUE + 1);
    for (size_t i = 0; i < leaf_count; i++)
        leaves[i] = some_code();
    if (below(20) == 0 && leaf_count)
        leaves[below(leaf_count)] = EVALUATOR; /* it has no Python function yet */
}

/* --- its stacks ------------------------------------------------------------------------------- */

static uint64_t end_avma(void)
{
    return (uintptr_t)memory + sizeof memory;
}

/* One function more, from the outermost on. How much of the stack it takes is its own affair. */
static void call_function(uint64_t pc)
{
    uint64_t caller = native_count ? pcs[native_count - 1] + 1 : 0;
    pcs[native_count] = pc;
    cfas[native_count++] = stack_avma;
    memcpy((void *)(uintptr_t)(stack_avma - sizeof caller), &caller, sizeof caller);
    stack_avma -= 64 + pc % 7 * 64;
}

static void call_python(const struct call *call)
{
    bool has_address = kind.has_addresses && !call->has_no_address;
    uint64_t avma = call->lost ? call->lost : has_address ? stack_avma + 32 : 0;
    if (!call->run_count)
        return;
    if (!(kind.has_addresses && is_odd()))
        frames[frame_count++] = SAMPLE_FRAME_BORDER | avma;
    for (size_t i = 0; i < call->run_count; i++)
        frames[frame_count++] = call->run[i];
}

static void turn(uint64_t *items, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uint64_t item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
}

static void build_stacks(void)
{
    native_count = frame_count = 0;
    stack_avma = end_avma();
    call_function(CODE);
    for (size_t i = 0; i < call_count; i++) {
        for (size_t j = 0; j < calls[i].glue_count; j++)
            call_function(calls[i].glue[j]);
        if (calls[i].evaluator)
            call_function(calls[i].evaluator);
        call_python(&calls[i]);
    }
    for (size_t i = 0; i < leaf_count; i++)
        call_function(leaves[i]);
    turn(pcs, native_count);
    turn(cfas, native_count);
    turn(frames, frame_count);
}

/* --- both ways -------------------------------------------------------------------------------- */

/* The sample's Python frames, without those that are as in the one before. */
static void send_frames(struct ring_record *record)
{
    size_t kept = 0;
    while (kept < frame_count && kept < sent_count &&
           frames[frame_count - 1 - kept] == sent[sent_count - 1 - kept])
        kept++;
    if (below(50) == 0)
        kept = kept && below(2) ? below(kept) : 0;
    memcpy(sent, frames, frame_count * sizeof *frames);
    sent_count = frame_count;
    record->sample.frames = sent;
    record->sample.frame_count = frame_count - kept;
    record->sample.kept_frames = kept;
    record->sample.deep_number = ++deep_number;
}

/* All frames that are known of it, innermost first; in the way that keeps no place. */
static size_t all_frames(const struct ring_record_sample *sample, uint64_t *ret_frames)
{
    size_t kept = sample->kept_frames, count = 0;
    if (reference_number + 1 != sample->deep_number || kept > reference_count)
        memset(reference, 0, sizeof reference);
    reference_number = sample->deep_number;
    reference_count = kept;
    for (size_t i = sample->frame_count; i-- > 0;)
        reference[reference_count++] = sample->frames[i] & SAMPLE_FRAME_BORDER
                                           ? sample->frames[i]
                                           : resolve(NULL, sample->frames[i]);
    for (size_t i = reference_count; i-- > 0;)
        if (reference[i])
            ret_frames[count++] = reference[i];
    return count;
}

/* The C functions that can be unwound from the copy. */
static void unwind_copy(struct unwind_frames *native, uint64_t copy_end)
{
    for (size_t i = 0; i < native_count; i++) {
        native->pcs[i] = pcs[i];
        native->cfas[i] = cfas[i] <= copy_end ? cfas[i] : 0;
        native->count++;
        if (cfas[i] > copy_end)
            break;
    }
}

static enum merge_verdict merge_plain(struct merge_stacks stacks, struct merge_result *result)
{
    *result = (struct merge_result){.entries = plain_entries,
                                    .capacity = kind.capacity,
                                    .evaluators = evaluators,
                                    .on_evaluator = learn,
                                    .context = &plain_learned};
    stacks.evaluators = plain_learned.ranges;
    stacks.evaluator_count = plain_learned.count;
    stacks.trampolines = &trampolines;
    stacks.trampoline_count = 1;
    return merge(&stacks, result);
}

/* The thread's side of what the recorder tells; it looks at that later than it is told. */
static uint64_t look_at_landmarks(struct ring_record *record, struct sample_known_stack *ret_known)
{
    record->time_ns = 1; /* older than what was told */
    if (below(4) == 0) {
        seen_header.table_tids[0] = ring.header->table_tids[0];
        if (seen_header.table_tids[0])
            memcpy(seen_table, ring.tables, sizeof seen_table);
        record->time_ns = (uint64_t)1 << 62;
    }
    return sample_landmarks_check(&seen, TID, stack_avma, end_avma(), ret_known);
}

static void assert_same(struct ring_record *record)
{
    struct unwind_frames native = {.pcs = some_pcs, .cfas = some_cfas, .capacity = MOST_NATIVES};
    struct sample_known_stack known = {0};
    struct known_joint joint = {0};
    enum unwind_end end = UNWIND_COMPLETE;
    uint64_t copy_end = look_at_landmarks(record, &known);
    record->flags = known.version ? SAMPLE_STACK_KNOWN : SAMPLE_STACK_WHOLE;
    record->sample.registers[RSP] = stack_avma;
    record->sample.stack = (const void *)(uintptr_t)stack_avma;
    record->sample.stack_bytes = copy_end - stack_avma;
    unwind_copy(&native, copy_end);
    if (known.version)
        joint = known_stacks_join(&known_stacks, &ring, record, known, &native, &end);
    bool is_complete = end == UNWIND_COMPLETE; /* else what was left on the stack misled it */

    static uint64_t plain_frames[MOST_FRAMES];
    struct merge_stacks plain = {.pcs = is_complete ? pcs : native.pcs,
                                 .cfas = is_complete ? cfas : native.cfas,
                                 .count = is_complete ? native_count : native.count,
                                 .stack_avma = stack_avma,
                                 .is_complete = is_complete,
                                 .frames = plain_frames,
                                 .frame_count = all_frames(&record->sample, plain_frames)};
    struct merge_result wanted;
    enum merge_verdict verdict = merge_plain(plain, &wanted);

    struct thread_frames_taken taken;
    thread_frames_take(&thread_frames, record, room, MOST_FRAMES, &taken);
    struct merge_stacks stacks = {.stack_avma = stack_avma,
                                  .is_complete = is_complete,
                                  .frames = taken.items,
                                  .frame_count = taken.count,
                                  .evaluators = quick_learned.ranges,
                                  .evaluator_count = quick_learned.count,
                                  .trampolines = &trampolines,
                                  .trampoline_count = 1};
    struct kept_chain_stacks parts = {
        .merge = &stacks, .native = &native, .joint = joint, .same_frames = taken.same};
    struct merge_result result = {.entries = quick_entries + RECORDING_FRONT,
                                  .capacity = kind.capacity,
                                  .evaluators = evaluators,
                                  .on_evaluator = learn,
                                  .context = &quick_learned};
    failing_malloc_after(kind.is_poor ? (long)below(4) : FAILING_MALLOC_NEVER);
    enum merge_verdict got = kept_chain_merge(taken.chain, &parts, &result);
    failing_malloc_stop();
    assert_int_equal(got, verdict);
    assert_int_equal(result.count, wanted.count);
    assert_memory_equal(result.entries, wanted.entries, wanted.count * sizeof *wanted.entries);
    assert_int_equal(result.is_cut, wanted.is_cut);
    assert_memory_equal(&quick_learned, &plain_learned, sizeof quick_learned);
    /* As the recorder does, which puts the kernel's part before it. */
    memset(result.entries - RECORDING_FRONT, 0xff, RECORDING_FRONT * sizeof *result.entries);
    quick_count += is_complete && native.count < native_count;
    verdicts[verdict]++;
    if (is_complete)
        known_stacks_tell(&known_stacks, &ring, record, &native, joint);
}

static void another_thread_learns(void)
{
    uint64_t pc = some_evaluator();
    learn(&quick_learned, pc);
    learn(&plain_learned, pc);
}

static void run(struct kind which, uint64_t seed, size_t samples)
{
    kind = which;
    random_state = seed;
    call_count = sent_count = reference_count = quick_count = 0;
    sample_count = samples;
    deep_number = reference_number = 0;
    memset(verdicts, 0, sizeof verdicts);
    quick_learned =
        (struct learned){.ranges = {{EVALUATOR, EVALUATOR + EVALUATOR_BYTES}}, .count = 1};
    plain_learned = quick_learned;
    known_stacks = (struct known_stacks){0};
    thread_frames = (struct thread_frames){.resolve = resolve};
    seen = (struct sample_ring){.header = &seen_header, .tables = seen_table};
    seen_header.table_tids[0] = 0;
    char path[64];
    snprintf(path, sizeof path, "/tmp/pitviper-kept-%d", (int)getpid());
    assert_int_equal(sample_ring_create(&ring, path, 4096), 0);
    unlink(path);
    for (size_t i = 0; i < samples; i++) {
        struct ring_record record = {.type = SAMPLE_RECORD_SAMPLE, .tid = TID};
        go_on();
        build_stacks();
        send_frames(&record);
        if (!kind.forgets || below(kind.forgets))
            assert_same(&record);
        if (kind.has_strays && below(50) == 0)
            another_thread_learns();
    }
    known_stacks_done(&known_stacks);
    thread_frames_done(&thread_frames);
    sample_ring_close(&ring);
}

/* --- kinds of threads ------------------------------------------------------------------------- */

/* As on 3.9: each Python function has an evaluator of its own, of which no address is known. */
static void chains_are_the_same_without_addresses(void **state)
{
    (void)state;
    run((struct kind){.capacity = RECORDING_CHAIN_MOST}, 1, 10000);
    assert_true(quick_count > sample_count / 2);
    assert_true(verdicts[MERGE_STARTING] > 0);
    assert_int_equal(verdicts[MERGE_UNMATCHED], 0);
}

static void chains_are_the_same_with_addresses(void **state)
{
    (void)state;
    run((struct kind){.has_addresses = true, .capacity = RECORDING_CHAIN_MOST}, 2, 10000);
    assert_true(quick_count > sample_count / 2);
    assert_true(verdicts[MERGE_STARTING] > 0);
    assert_int_equal(verdicts[MERGE_UNMATCHED], 0);
    assert_int_equal(quick_learned.count, EVALUATORS);
}

static void chains_are_the_same_with_some_addresses(void **state)
{
    (void)state;
    run((struct kind){.has_addresses = true, .is_mixed = true, .capacity = RECORDING_CHAIN_MOST}, 7,
        10000);
    assert_true(quick_count > sample_count / 2);
    assert_true(verdicts[MERGE_STARTING] > 0);
    run((struct kind){.has_addresses = true,
                      .is_mixed = true,
                      .has_strays = true,
                      .capacity = RECORDING_CHAIN_MOST},
        8, 10000);
    assert_true(quick_count > 0);
    assert_true(verdicts[MERGE_UNMATCHED] > 0);
}

/* Each time, two of three evaluators have to be learned. */
static void the_same_is_learned(void **state)
{
    (void)state;
    size_t learned = 0;
    for (uint64_t i = 0; i < 100; i++) {
        struct kind strays = {
            .has_addresses = true, .has_strays = true, .capacity = RECORDING_CHAIN_MOST};
        run(strays, 100 + i, 300);
        learned += quick_learned.count - 1;
    }
    assert_true(learned > 50);
}

static void chains_are_the_same_where_stacks_do_not_agree(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 16; i++) {
        struct kind odd = {
            .has_addresses = i % 2, .odd = i < 8 ? 4000 : 1000, .capacity = RECORDING_CHAIN_MOST};
        run(odd, 10 + i, 3000);
        assert_true(quick_count > 0 && quick_count < sample_count);
        assert_true(verdicts[MERGE_UNMATCHED] > 0);
    }
}

static void chains_are_the_same_when_cut(void **state)
{
    (void)state;
    run((struct kind){.has_addresses = true, .capacity = 800}, 3, 1000);
    assert_true(quick_count > 0 && quick_count < sample_count);
    run((struct kind){.capacity = 800}, 4, 1000);
    assert_true(quick_count > 0 && quick_count < sample_count);
}

static void chains_are_the_same_behind_lost_samples(void **state)
{
    (void)state;
    run((struct kind){.forgets = 100, .capacity = RECORDING_CHAIN_MOST}, 5, 3000);
    assert_true(quick_count > sample_count / 4 && verdicts[MERGE_UNMATCHED] > 0);
    run((struct kind){.has_addresses = true, .forgets = 100, .capacity = RECORDING_CHAIN_MOST}, 6,
        3000);
    assert_true(quick_count > sample_count / 4 && verdicts[MERGE_UNMATCHED] > 0);
}

static void chains_are_the_same_without_memory(void **state)
{
    (void)state;
    size_t quick = 0;
    for (uint64_t i = 0; i < 50; i++) {
        run((struct kind){.is_poor = true, .capacity = RECORDING_CHAIN_MOST}, 300 + i, 50);
        quick += quick_count;
    }
    assert_true(quick > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_the_same_without_addresses),
        cmocka_unit_test(chains_are_the_same_with_addresses),
        cmocka_unit_test(chains_are_the_same_with_some_addresses),
        cmocka_unit_test(the_same_is_learned),
        cmocka_unit_test(chains_are_the_same_where_stacks_do_not_agree),
        cmocka_unit_test(chains_are_the_same_when_cut),
        cmocka_unit_test(chains_are_the_same_behind_lost_samples),
        cmocka_unit_test(chains_are_the_same_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
