/* In recordings with copies of the stack the kernel notes only its own part of the chain:
 *
 *     PERF_CONTEXT_KERNEL, ips …                  as recorded, if the sample is in the kernel
 *     PERF_CONTEXT_USER, pc, return addresses - 1 …   unwound here
 *
 * perf takes at most --max-stack entries of each of the two. Each process has an unwinder of its
 * own, which asks for the code at addresses it has not met before. */
#include "profile/callers.h"

void callers_done(struct callers *callers)
{
    vector_done(&callers->entries);
}

/* The finder of a task's unwinder. */
static bool find_code(void *data, uint64_t avma, struct unwind_code *ret_code)
{
    struct callers_context *context = data;
    struct task *task = context->task;
    struct resolve_place place = {.task = task, .avma = avma, .time_ns = context->time_ns};
    const struct region *region = regions_find(task->regions, avma);
    struct jit_dump *dump;
    const struct jitdump_placement *code = resolve_generated(task, region, &place, &dump);
    *ret_code = (struct unwind_code){0};
    if (code) {
        ret_code->table = jit_dump_unwind_table(dump, code, context->elf_machine);
        ret_code->bias = code->avma;
        return true;
    }
    if (!region)
        return false;
    if (region->is_generated)
        return true;
    struct modules *modules = context->resolver->modules;
    int32_t pid = modules->profile->processes.items[task->process].pid;
    struct native *native = modules_native(modules, region->module, pid);
    struct elf_mapping mapping = {.start_avma = region->start_avma,
                                  .length = region->end_avma - region->start_avma,
                                  .pgoff = region->fileoff};
    if (native && native_bias(native, &mapping, &ret_code->bias)) {
        ret_code->table = native_unwind_table(native);
        ret_code->code = native_code_rules(native);
    }
    return true;
}

/* The task's unwinder; NULL in *ret_unwinder when the machine is not known. */
static int unwinder_of(struct callers *callers, struct task *task, struct unwinder **ret_unwinder)
{
    if (!task->unwinder) {
        struct callers_context *context = malloc(sizeof *context);
        if (!context)
            return -ENOMEM;
        *context = (struct callers_context){
            .resolver = callers->resolver, .task = task, .elf_machine = callers->elf_machine};
        int error = unwinder_open(callers->elf_machine,
                                  (struct unwind_finder){.find = find_code, .context = context},
                                  &task->unwinder);
        if (error < 0) {
            free(context);
            task->unwinder = NULL;
            *ret_unwinder = NULL;
            return error == -ENOMEM ? error : 0;
        }
        task->unwind_context = context;
    }
    *ret_unwinder = task->unwinder;
    return 0;
}

/* Copies the kernel's part of the chain. */
static void take_kernel_part(struct callers *callers, const struct stacks_chain *chain)
{
    size_t taken = 0, skip = stacks_excess(callers->limit, chain->entries, chain->count);
    bool is_kernel = false;
    for (size_t i = 0; i < chain->count && taken < callers->limit.most; i++) {
        uint64_t entry = chain->entries[i];
        bool is_frame = !perfdata_is_marker(entry);
        if (!is_frame)
            is_kernel = entry == (uint64_t)PERF_CONTEXT_KERNEL;
        if (is_frame && skip) {
            skip--;
            continue;
        }
        taken += is_frame;
        if (is_kernel)
            callers->entries.items[callers->entries.count++] = entry;
    }
}

static const uint8_t end_of[] = {[UNWIND_COMPLETE] = PROFILE_STACK_COMPLETE,
                                 [UNWIND_TRUNCATED] = PROFILE_STACK_TRUNCATED,
                                 [UNWIND_BROKEN] = PROFILE_STACK_BROKEN};

static bool has_user_part(const struct perfdata_sample *sample)
{
    return sample->user_regs_abi == PERF_SAMPLE_REGS_ABI_64 && sample->user_regs &&
           sample->user_stack_length;
}

/* Whether what stands at an address may change in a way that nobody tells the unwinder. */
static bool changes_silently(const struct task *task)
{
    for (size_t i = 0; i < task->dumps.count; i++)
        if (task->dumps.items[i]->index.ranges.overlap_count)
            return true;
    return false;
}

static int unwind_user_part(struct callers *callers, const struct perfdata_sample *sample,
                            struct stacks_chain *chain)
{
    struct unwinder *unwinder;
    int error = unwinder_of(callers, chain->task, &unwinder);
    struct unwind_sample state;
    chain->end = PROFILE_STACK_BROKEN;
    if (error < 0 || !unwinder ||
        !unwind_sample_from_perf(callers->elf_machine, sample->user_regs_mask, sample->user_regs,
                                 &state))
        return error;
    ((struct callers_context *)chain->task->unwind_context)->time_ns = chain->time_ns;
    if (changes_silently(chain->task))
        unwinder_forget(unwinder);
    state.stack = sample->user_stack;
    state.stack_bytes = sample->user_stack_length;
    uint64_t *room = callers->entries.items + callers->entries.count;
    struct unwind_frames frames = {.pcs = room + 1, .capacity = callers->limit.most};
    room[0] = (uint64_t)PERF_CONTEXT_USER;
    chain->end = end_of[unwind(unwinder, &state, &frames)];
    callers->entries.count += frames.count + 1;
    return 0;
}

int callers_unwind(struct callers *callers, const struct perfdata_sample *sample,
                   struct stacks_chain *chain)
{
    if (vector_reserve(&callers->entries, chain->count + callers->limit.most + 2) < 0)
        return -ENOMEM;
    callers->entries.count = 0;
    take_kernel_part(callers, chain);
    chain->end = PROFILE_STACK_COMPLETE; /* a thread of the kernel has no user part */
    int error = has_user_part(sample) ? unwind_user_part(callers, sample, chain) : 0;
    chain->entries = callers->entries.items;
    chain->count = callers->entries.count;
    chain->is_unwound = chain->has_end = true;
    return error;
}
