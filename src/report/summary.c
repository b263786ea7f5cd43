/* Counting for the page. Stacks are a tree, and parents come before children in its table, so what
 * a stack inherits from its caller is known when it is reached:
 *
 *     stack                              innermost    in_gc
 *     main                               -            no
 *      `- py::work                       work         no
 *          `- _PyEval_EvalFrameDefault   work         no
 *              `- gc_collect_main        work         yes
 *                  `- visit_decref       work         yes
 *                  `- py::__del__        __del__      no     a finalizer: Python again
 *
 * Samples are then looked at by their stack only, and each different stack once.
 *
 * One thing needs the thread's sample before, too. In recordings of wall-clock time our own signal
 * ends waits, and Python takes the GIL before it repeats them. Where another thread has it most of
 * the time, a thread that would wait for something else is mostly found waiting for the GIL:
 *
 *     samples of a thread, in their order      waits for    counted as
 *     py::serve:7  select_epoll_poll  epoll    select       select
 *     py::serve:7  select_epoll_poll  GIL      GIL          select   it was we who woke it
 *     py::serve:7  select_epoll_poll  GIL      GIL          select
 *     py::serve:8  _PyEval_EvalFrame  GIL      GIL          GIL      it went on by itself
 *
 * So such a sample counts as one more of the stack from which the thread was woken, as long as the
 * thread is at the same place in Python and has not been seen running. */
#include "report/summary.h"

#include "base/hashtable.h"

#include <errno.h>
#include <stdlib.h>

enum { NO_FUNCTION = UINT32_MAX };

struct stack_facts {
    uint32_t innermost; /* index of summary.functions */
    uint32_t line;      /* that it is at; 0: not known */
    uint32_t python;    /* the stack that ends with it; PROFILE_ROOT: none */
    bool in_gc;
    bool is_python;   /* its own frame is a Python function */
    uint8_t wait;     /* enum wait_kind: what a thread waits for here, if it does */
    uint64_t samples; /* with exactly this stack */
    uint64_t weight;
    uint64_t waiting_samples; /* that count as waiting here: see waits_at() */
    uint64_t waiting_weight;
};

struct builder {
    struct summary *summary;
    struct stack_facts *facts; /* per stack */
    uint32_t *function_of;     /* per function of the profile: index of summary.functions */
    uint32_t *waited_at; /* per thread: where it waited in the sample before; or PROFILE_ROOT */
    uint32_t *seen;      /* per summary function: the stack that counted it last */
    bool has_python;     /* there are stacks with Python functions */
    struct hashtable line_of; /* (function, line) -> index of summary.lines */
    struct hashtable wait_of; /* (kind, function, line) -> index of summary.waits */
    uint32_t *place_of;       /* per kind, and behind these per module: index of places + 1 */
};

/* Gives each Python function of the profile its place among ours. */
static int number_functions(struct builder *builder)
{
    struct summary *summary = builder->summary;
    const struct profile *profile = summary->profile;
    struct hashtable by_name = {0};
    int result = 0;
    for (uint32_t i = 0; i < profile->functions.count && result == 0; i++) {
        const struct profile_function *function = &profile->functions.items[i];
        uint64_t known;
        builder->function_of[i] = NO_FUNCTION;
        if (function->kind != PROFILE_FUNCTION_PYTHON)
            continue;
        if (hashtable_get(&by_name, hash_u64(function->name), &known)) {
            builder->function_of[i] = (uint32_t)known;
            continue;
        }
        struct summary_function ours = {.function = i};
        builder->function_of[i] = (uint32_t)summary->functions.count;
        result = hashtable_set(&by_name, hash_u64(function->name), summary->functions.count);
        if (result == 0)
            result = vector_push(&summary->functions, ours);
    }
    hashtable_done(&by_name);
    return result;
}

static const struct profile_function *caller_of(const struct profile *profile, uint32_t stack)
{
    uint32_t parent = profile->stacks.items[stack].parent;
    return parent == PROFILE_ROOT ? NULL : profile_function_of(profile, parent);
}

static void learn_stacks(struct builder *builder)
{
    const struct profile *profile = builder->summary->profile;
    builder->facts[PROFILE_ROOT].innermost = NO_FUNCTION;
    for (uint32_t i = 1; i < profile->stacks.count; i++) {
        uint32_t number = profile->frames.items[profile->stacks.items[i].frame].function;
        struct stack_facts *facts = &builder->facts[i];
        const struct stack_facts *caller = &builder->facts[profile->stacks.items[i].parent];
        facts->is_python = builder->function_of[number] != NO_FUNCTION;
        facts->innermost = facts->is_python ? builder->function_of[number] : caller->innermost;
        facts->python = facts->is_python ? i : caller->python;
        facts->line = facts->is_python ? profile->frames.items[profile->stacks.items[i].frame].line
                                       : caller->line;
        builder->has_python |= facts->is_python;
        facts->wait = (uint8_t)waits_in(profile, &profile->functions.items[number],
                                        caller_of(profile, i), caller->wait);
        facts->in_gc = !facts->is_python &&
                       (caller->in_gc || profile->functions.items[number].role == PROFILE_ROLE_GC);
    }
}

static enum summary_place_kind kind_of(const struct builder *builder,
                                       const struct profile_sample *sample, uint32_t module)
{
    const struct stack_facts *facts = &builder->facts[sample->stack];
    if (facts->innermost == NO_FUNCTION && builder->has_python)
        return SUMMARY_OUTSIDE; /* without any Python function there is no outside */
    if (facts->in_gc)
        return SUMMARY_GC;
    switch (builder->summary->profile->modules.items[module].kind) {
    case PROFILE_MODULE_PYTHON:
    case PROFILE_MODULE_INTERPRETER:
        return SUMMARY_INTERPRETER;
    case PROFILE_MODULE_EXTENSION:
        return SUMMARY_EXTENSION;
    case PROFILE_MODULE_LIBC:
        return SUMMARY_LIBC;
    case PROFILE_MODULE_KERNEL:
        return SUMMARY_KERNEL;
    default:
        return SUMMARY_LIBRARY;
    }
}

static int count_place(struct builder *builder, const struct profile_sample *sample)
{
    struct summary *summary = builder->summary;
    const struct profile *profile = summary->profile;
    uint32_t module = 0;
    if (sample->leaf != PROFILE_NONE)
        module = profile->functions.items[profile->frames.items[sample->leaf].function].module;
    enum summary_place_kind kind = kind_of(builder, sample, module);
    bool by_module = kind == SUMMARY_EXTENSION || kind == SUMMARY_LIBRARY;
    uint32_t *place = &builder->place_of[by_module ? SUMMARY_PLACE_KINDS + module : kind];
    if (!*place) {
        struct summary_place new = {.kind = kind, .module = by_module ? module : PROFILE_NONE};
        if (vector_push(&summary->places, new) < 0)
            return -ENOMEM;
        *place = (uint32_t)summary->places.count;
    }
    summary->places.items[*place - 1].samples++;
    summary->places.items[*place - 1].weight += sample->period;
    return 0;
}

/* The stack for which a sample counts as waiting: its own; or, if only our signal made the thread
 * need the GIL, the one that it was woken from. Both are of the same Python functions. */
static uint32_t waits_at(const struct builder *builder, const struct profile_sample *sample)
{
    uint32_t before = builder->waited_at[sample->thread];
    const struct stack_facts *then = &builder->facts[before];
    const struct stack_facts *now = &builder->facts[sample->stack];
    bool is_same_place = now->python != PROFILE_ROOT && now->python == then->python;
    bool is_woken = is_same_place && now->wait == WAIT_GIL && waits_end_by_signal(then->wait);
    return is_woken ? before : sample->stack;
}

static void count_waiting(struct builder *builder, const struct profile_sample *sample)
{
    uint32_t *waited_at = &builder->waited_at[sample->thread];
    if (!sample->waiting) {
        *waited_at = PROFILE_ROOT;
        return;
    }
    *waited_at = waits_at(builder, sample);
    builder->facts[*waited_at].waiting_samples++;
    builder->facts[*waited_at].waiting_weight += sample->period;
    builder->summary->waiting_samples++;
    builder->summary->waiting_weight += sample->period;
}

static int count_samples(struct builder *builder)
{
    struct summary *summary = builder->summary;
    const struct profile *profile = summary->profile;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct profile_sample *sample = &profile->samples.items[i];
        if (sample->event != summary->event)
            continue;
        summary->samples++;
        summary->weight += sample->period;
        builder->facts[sample->stack].samples++;
        builder->facts[sample->stack].weight += sample->period;
        count_waiting(builder, sample);
        if (count_place(builder, sample) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int count_line(struct builder *builder, const struct stack_facts *facts)
{
    struct summary *summary = builder->summary;
    uint32_t function = summary->functions.items[facts->innermost].function;
    uint64_t key = hash_u64((uint64_t)function << 32 | facts->line), index;
    if (!facts->line)
        return 0;
    if (!hashtable_get(&builder->line_of, key, &index)) {
        index = summary->lines.count;
        struct summary_line line = {.function = function, .line = facts->line};
        if (hashtable_set(&builder->line_of, key, index) < 0 ||
            vector_push(&summary->lines, line) < 0)
            return -ENOMEM;
    }
    summary->lines.items[index].samples += facts->samples;
    summary->lines.items[index].weight += facts->weight;
    return 0;
}

static int count_waits(struct builder *builder)
{
    struct summary *summary = builder->summary;
    for (uint32_t i = 0; i < summary->profile->stacks.count; i++) {
        const struct stack_facts *facts = &builder->facts[i];
        if (!facts->waiting_samples)
            continue;
        struct summary_wait wait = {.kind = facts->wait, .function = PROFILE_NONE};
        if (facts->innermost != NO_FUNCTION) {
            wait.function = summary->functions.items[facts->innermost].function;
            wait.line = facts->line;
        }
        uint64_t index, key = hash_u64((uint64_t)wait.function << 32 | wait.line) + wait.kind;
        if (!hashtable_get(&builder->wait_of, key, &index)) {
            index = summary->waits.count;
            if (hashtable_set(&builder->wait_of, key, index) < 0 ||
                vector_push(&summary->waits, wait) < 0)
                return -ENOMEM;
        }
        summary->waits.items[index].samples += facts->waiting_samples;
        summary->waits.items[index].weight += facts->waiting_weight;
    }
    return 0;
}

/* Each function of a stack gets its samples once, however often it is in it. */
static int count_functions(struct builder *builder)
{
    struct summary *summary = builder->summary;
    const struct profile_stack *stacks = summary->profile->stacks.items;
    for (uint32_t i = 1; i < summary->profile->stacks.count; i++) {
        const struct stack_facts *facts = &builder->facts[i];
        if (!facts->samples || facts->innermost == NO_FUNCTION)
            continue;
        summary->functions.items[facts->innermost].self_samples += facts->samples;
        summary->functions.items[facts->innermost].self_weight += facts->weight;
        if (count_line(builder, facts) < 0)
            return -ENOMEM;
        for (uint32_t s = i; s != PROFILE_ROOT; s = stacks[s].parent) {
            uint32_t function = builder->facts[s].innermost;
            if (function == NO_FUNCTION)
                break; /* no Python further out */
            if (!builder->facts[s].is_python || builder->seen[function] == i)
                continue;
            builder->seen[function] = i;
            summary->functions.items[function].total_samples += facts->samples;
            summary->functions.items[function].total_weight += facts->weight;
            summary->functions.items[function].waiting_samples += facts->waiting_samples;
            summary->functions.items[function].waiting_weight += facts->waiting_weight;
        }
    }
    return 0;
}

static int count_processes(struct summary *summary)
{
    const struct profile *profile = summary->profile;
    bool *seen = calloc(profile->processes.count + 1, sizeof *seen);
    if (!seen)
        return -ENOMEM;
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint32_t thread = profile->samples.items[i].thread;
        bool *mark = &seen[profile->threads.items[thread].process];
        summary->processes += !*mark;
        *mark = true;
    }
    free(seen);
    return 0;
}

static int compare_functions(const void *a, const void *b)
{
    const struct summary_function *left = a, *right = b;
    if (left->self_weight != right->self_weight)
        return left->self_weight > right->self_weight ? -1 : 1;
    if (left->total_weight != right->total_weight)
        return left->total_weight > right->total_weight ? -1 : 1;
    return left->function < right->function ? -1 : left->function > right->function;
}

static int compare_lines(const void *a, const void *b)
{
    const struct summary_line *left = a, *right = b;
    if (left->function != right->function)
        return left->function < right->function ? -1 : 1;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return left->line < right->line ? -1 : left->line > right->line;
}

static int compare_waits(const void *a, const void *b)
{
    const struct summary_wait *left = a, *right = b;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    if (left->function != right->function)
        return left->function < right->function ? -1 : 1;
    return left->line != right->line ? (left->line < right->line ? -1 : 1)
                                     : (int)left->kind - (int)right->kind;
}

static int compare_places(const void *a, const void *b)
{
    const struct summary_place *left = a, *right = b;
    if ((left->kind == SUMMARY_OUTSIDE) != (right->kind == SUMMARY_OUTSIDE))
        return left->kind == SUMMARY_OUTSIDE ? 1 : -1;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return left->kind != right->kind ? (int)left->kind - (int)right->kind
                                     : (left->module > right->module) * 2 - 1;
}

static void sort(struct summary *summary)
{
    size_t count = summary->functions.count, kept = 0;
    for (size_t i = 0; i < count; i++)
        if (summary->functions.items[i].total_samples)
            summary->functions.items[kept++] = summary->functions.items[i];
    summary->functions.count = kept;
    if (kept)
        qsort(summary->functions.items, kept, sizeof *summary->functions.items, compare_functions);
    if (summary->places.count)
        qsort(summary->places.items, summary->places.count, sizeof *summary->places.items,
              compare_places);
    if (summary->waits.count)
        qsort(summary->waits.items, summary->waits.count, sizeof *summary->waits.items,
              compare_waits);
}

/* Sorts the lines and tells each function where its own are. */
static int order_lines(struct summary *summary)
{
    size_t *first_of = calloc(summary->profile->functions.count + 1, sizeof *first_of);
    if (!first_of)
        return -ENOMEM;
    if (summary->lines.count)
        qsort(summary->lines.items, summary->lines.count, sizeof *summary->lines.items,
              compare_lines);
    for (size_t i = summary->lines.count; i-- > 0;)
        first_of[summary->lines.items[i].function] = i;
    for (size_t i = 0; i < summary->functions.count; i++) {
        struct summary_function *function = &summary->functions.items[i];
        size_t first = function->first_line = first_of[function->function];
        while (first + function->line_count < summary->lines.count &&
               summary->lines.items[first + function->line_count].function == function->function)
            function->line_count++;
    }
    free(first_of);
    return 0;
}

static int count(struct builder *builder)
{
    const struct profile *profile = builder->summary->profile;
    builder->facts = calloc(profile->stacks.count + 1, sizeof *builder->facts);
    builder->function_of = calloc(profile->functions.count + 1, sizeof *builder->function_of);
    builder->place_of =
        calloc(SUMMARY_PLACE_KINDS + profile->modules.count, sizeof *builder->place_of);
    builder->waited_at = calloc(profile->threads.count + 1, sizeof *builder->waited_at);
    if (!builder->facts || !builder->function_of || !builder->place_of || !builder->waited_at ||
        number_functions(builder) < 0)
        return -ENOMEM;
    builder->seen = calloc(builder->summary->functions.count + 1, sizeof *builder->seen);
    if (!builder->seen)
        return -ENOMEM;
    learn_stacks(builder);
    if (count_samples(builder) < 0 || count_processes(builder->summary) < 0)
        return -ENOMEM;
    if (count_functions(builder) < 0 || count_waits(builder) < 0)
        return -ENOMEM;
    sort(builder->summary);
    return order_lines(builder->summary);
}

int summary_init(struct summary *summary, const struct profile *profile)
{
    *summary = (struct summary){.profile = profile};
    while (summary->event + 1u < profile->events.count &&
           !profile->events.items[summary->event].samples)
        summary->event++;
    struct builder builder = {.summary = summary};
    int result = count(&builder);
    free(builder.facts);
    free(builder.function_of);
    free(builder.waited_at);
    free(builder.seen);
    free(builder.place_of);
    hashtable_done(&builder.line_of);
    hashtable_done(&builder.wait_of);
    if (result < 0)
        summary_done(summary);
    return result;
}

void summary_done(struct summary *summary)
{
    vector_done(&summary->functions);
    vector_done(&summary->lines);
    vector_done(&summary->places);
    vector_done(&summary->waits);
}
