/* One pass over the recording, in the order of time: records of mappings, names, forks and exits
 * change the state of their process, a sample becomes a row of the table by that state.
 *
 *     perfdata_next --+-- MMAP, COMM, FORK, EXIT --> tasks, regions, modules
 *                     |-- LOST, THROTTLE ---------> losses
 *                     `-- SAMPLE --> callers (unwinding) --> stacks --> resolve --> functions
 *
 * Nothing of the file is kept but what the tables hold. */
#include "profile/profile.h"

#include "elf/elf_debug.h"
#include "profile/callers.h"
#include "profile/finish.h"

#include <elf.h>
#include <limits.h>
#include <string.h>
#include <time.h>

enum { RECORDS_PER_PROGRESS = 8192 };

struct loader {
    struct profile *profile;
    const struct profile_options *options;
    struct perfdata_reader *reader;
    struct elf_debug_search search;
    char cache[PATH_MAX]; /* perf's, where the options name none */
    struct modules modules;
    struct functions functions;
    struct kernel kernel;
    struct tasks tasks;
    struct resolver resolver;
    struct stacks stacks;
    struct callers callers;
    VECTOR(struct jit_dump *) dumps; /* owned */
    bool is_monotonic;               /* the recording's times are of CLOCK_MONOTONIC */
    bool is_own;                     /* it is one of `pitviper record` */
};

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Memory without a file, in which generated code may be: what perf looks into perf maps for. */
static bool is_generated(const char *path)
{
    return strcmp(path, "//anon") == 0 || strcmp(path, "[heap]") == 0 ||
           starts_with(path, "/dev/zero") || starts_with(path, "/anon_hugepage") ||
           starts_with(path, "[stack") || starts_with(path, "/SYSV") || starts_with(path, "[anon:");
}

/* The dump of that path, read if it is new; NULL in *ret_dump when it can't be. */
static int find_dump(struct loader *loader, const struct perfdata_record *record,
                     struct jit_dump **ret_dump)
{
    uint32_t module;
    int error = modules_find(
        &loader->modules,
        &(struct modules_wanted){.path = record->mmap.path, .kind = PROFILE_MODULE_PYTHON},
        &module);
    *ret_dump = NULL;
    for (size_t i = 0; i < loader->dumps.count; i++)
        if (loader->dumps.items[i]->module == module)
            *ret_dump = loader->dumps.items[i];
    if (error < 0 || *ret_dump)
        return error;
    struct jit_dump *dump = malloc(sizeof *dump);
    if (!dump || vector_reserve(&loader->dumps, loader->dumps.count + 1) < 0) {
        free(dump);
        return -ENOMEM;
    }
    error = jit_dump_open(dump, record->mmap.path, record->mmap.pid);
    if (error < 0) {
        free(dump);
        return error == -ENOMEM ? error : 0;
    }
    jit_dump_set_clock(dump, loader->is_monotonic, record->time_ns);
    loader->profile->losses.jit_without_times += dump->clock == JIT_CLOCK_UNKNOWN;
    loader->profile->modules.items[module].has_symbols = true;
    dump->module = module;
    vector_push(&loader->dumps, dump);
    *ret_dump = dump;
    return 0;
}

/* The marker of a jitdump was mapped. */
static int add_dump(struct loader *loader, struct task *task, const struct perfdata_record *record)
{
    struct jit_dump *dump;
    int error = find_dump(loader, record, &dump);
    if (error < 0 || !dump)
        return error;
    for (size_t i = 0; i < task->dumps.count; i++)
        if (task->dumps.items[i] == dump)
            return 0;
    tasks_renew(&loader->tasks, task);
    return vector_push(&task->dumps, dump);
}

static int on_mmap(struct loader *loader, const struct perfdata_record *record)
{
    const struct perfdata_mmap *mmap = &record->mmap;
    if (mmap->pid == -1 || perfdata_cpumode(record) == PERF_RECORD_MISC_KERNEL)
        return kernel_map(&loader->kernel, record);
    struct task *task;
    int error = tasks_of_pid(&loader->tasks, mmap->pid, &task);
    if (error == 0)
        error = tasks_change(&loader->tasks, task);
    if (error == 0 && task->map_module == PROFILE_NONE)
        error = modules_find_map(&loader->modules, mmap->pid, &task->map_module);
    if (error < 0)
        return error;
    struct region region = {.start_avma = mmap->start_avma,
                            .end_avma = mmap->start_avma + mmap->length,
                            .fileoff = mmap->fileoff,
                            .time_ns = record->time_ns,
                            .module = task->map_module,
                            .is_generated = is_generated(mmap->path)};
    struct modules_wanted wanted = {.path = mmap->path,
                                    .build_id = mmap->build_id_size ? mmap->build_id : NULL,
                                    .build_id_size = mmap->build_id_size};
    if (!region.is_generated)
        error = modules_find(&loader->modules, &wanted, &region.module);
    bool replaced = false;
    if (error == 0)
        error = regions_add(task->regions, &region, &replaced);
    if (replaced)
        tasks_renew(&loader->tasks, task);
    if (error == 0 && jit_dump_is_marker(mmap->path))
        error = add_dump(loader, task, record);
    return error == -ENOMEM ? error : 0;
}

static char mode_char(uint16_t cpumode)
{
    switch (cpumode) {
    case PERF_RECORD_MISC_KERNEL:
        return 'k';
    case PERF_RECORD_MISC_HYPERVISOR:
        return 'H';
    case PERF_RECORD_MISC_GUEST_KERNEL:
        return 'g';
    case PERF_RECORD_MISC_GUEST_USER:
        return 'u';
    default:
        return '.';
    }
}

/* How the stack of a sample ended, where our recorder has noted it. */
static void take_end(const struct loader *loader, const struct perfdata_record *record,
                     struct stacks_chain *chain)
{
    static const uint8_t ends[] = {[PERFDATA_STACK_COMPLETE] = PROFILE_STACK_COMPLETE,
                                   [PERFDATA_STACK_TRUNCATED] = PROFILE_STACK_TRUNCATED,
                                   [PERFDATA_STACK_BROKEN] = PROFILE_STACK_BROKEN};
    enum perfdata_stack_end end = perfdata_stack_end(record);
    if (!loader->is_own || end == PERFDATA_STACK_UNTOLD)
        return;
    chain->has_end = true;
    chain->end = ends[end];
}

static int on_sample(struct loader *loader, const struct perfdata_record *record)
{
    struct profile *profile = loader->profile;
    const struct perfdata_sample *sample = &record->sample;
    struct profile_event *event = &profile->events.items[record->event];
    uint32_t thread;
    int error = tasks_find(&loader->tasks, record->pid, record->tid, &thread);
    if (error < 0)
        return error;
    uint16_t cpumode = perfdata_cpumode(record);
    struct stacks_chain chain = {.task = tasks_of_thread(&loader->tasks, thread),
                                 .time_ns = record->time_ns,
                                 .ip_avma = sample->ip_avma,
                                 .is_kernel = cpumode == PERF_RECORD_MISC_KERNEL,
                                 .entries = sample->callchain,
                                 .count = sample->callchain_length,
                                 .has_callers = event->has_callchains};
    take_end(loader, record, &chain);
    if (event->has_user_stacks && event->has_callchains)
        error = callers_unwind(&loader->callers, sample, &chain);
    struct stacks_result result;
    if (error == 0)
        error = stacks_add(&loader->stacks, &chain, &result);
    if (error < 0)
        return error;
    struct profile_sample row = {.time_ns = record->time_ns,
                                 .period = sample->period,
                                 .thread = thread,
                                 .comm = profile->threads.items[thread].comm,
                                 .stack = result.stack,
                                 .leaf = result.leaf,
                                 .cpu = record->cpu,
                                 .event = (uint16_t)record->event,
                                 .cpumode = mode_char(cpumode),
                                 .end = result.end,
                                 .waiting = record->misc & PERFDATA_MISC_WAITING};
    if (!(sample->type & PERF_SAMPLE_PERIOD))
        row.period = event->frequency_hz || !event->period ? 1 : event->period;
    event->samples++;
    event->periods += row.period;
    return vector_push(&profile->samples, row);
}

static void on_lost(struct loader *loader, const struct perfdata_record *record)
{
    struct profile_losses *losses = &loader->profile->losses;
    if (record->type == PERF_RECORD_LOST) {
        losses->lost_records += record->lost.count;
        return;
    }
    losses->lost_samples += record->lost.count;
    if (record->event < loader->profile->events.count)
        loader->profile->events.items[record->event].lost_samples += record->lost.count;
}

static int on_record(struct loader *loader, const struct perfdata_record *record)
{
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return on_mmap(loader, record);
    case PERF_RECORD_COMM:
        return tasks_comm(&loader->tasks, record);
    case PERF_RECORD_FORK:
        return tasks_fork(&loader->tasks, record);
    case PERF_RECORD_EXIT:
        return tasks_exit(&loader->tasks, record);
    case PERF_RECORD_SAMPLE:
        return record->event < loader->profile->events.count ? on_sample(loader, record) : 0;
    case PERF_RECORD_LOST:
    case PERF_RECORD_LOST_SAMPLES:
        on_lost(loader, record);
        return 0;
    case PERF_RECORD_THROTTLE:
        loader->profile->losses.throttles++;
        return 0;
    default:
        return 0;
    }
}

/* Pipes describe their events while they are read. */
static int take_events(struct loader *loader)
{
    const struct perfdata_info *info = perfdata_info(loader->reader);
    struct profile *profile = loader->profile;
    for (size_t i = profile->events.count; i < info->event_count && i <= UINT16_MAX; i++) {
        const struct perfdata_event *from = &info->events[i];
        const struct perf_event_attr *attr = &from->attr;
        struct profile_event event = {.type = attr->type,
                                      .config = attr->config,
                                      .frequency_hz = attr->freq ? attr->sample_freq : 0,
                                      .period = attr->freq ? 0 : attr->sample_period,
                                      .sample_type = attr->sample_type,
                                      .has_callchains = attr->sample_type & PERF_SAMPLE_CALLCHAIN,
                                      .has_user_stacks =
                                          (attr->sample_type & PERF_SAMPLE_STACK_USER) &&
                                          (attr->sample_type & PERF_SAMPLE_REGS_USER)};
        int error = strings_intern(&profile->strings, from->name, strlen(from->name), &event.name);
        if (error < 0 || vector_push(&profile->events, event) < 0)
            return -ENOMEM;
        if (loader->options->inlines == PROFILE_INLINES_UNWOUND && event.has_user_stacks)
            loader->resolver.inlines = true;
        if (i == 0)
            loader->is_monotonic = attr->use_clockid && attr->clockid == CLOCK_MONOTONIC;
    }
    return 0;
}

static int read_records(struct loader *loader)
{
    const struct perfdata_info *info = perfdata_info(loader->reader);
    const struct profile_options *options = loader->options;
    struct perfdata_record record;
    uint64_t count = 0;
    int result, error = 0;
    while (error == 0 && (result = perfdata_next(loader->reader, &record)) != 0) {
        if (result < 0)
            return result;
        if (info->event_count > loader->profile->events.count)
            error = take_events(loader);
        if (error == 0)
            error = on_record(loader, &record);
        if (error == 0 && ++count % RECORDS_PER_PROGRESS == 0 && options->progress &&
            !options->progress(options->progress_context, record.offset, info->bytes))
            error = -ECANCELED;
    }
    return error;
}

static int start(struct loader *loader)
{
    const struct profile_options *options = loader->options;
    const struct perfdata_info *info = perfdata_info(loader->reader);
    struct profile *profile = loader->profile;
    loader->search = (struct elf_debug_search){.buildid_dir = options->buildid_dir,
                                               .debug_dir = options->debug_dir};
    if (!options->buildid_dir && elf_debug_default_cache(loader->cache, sizeof loader->cache))
        loader->search.buildid_dir = loader->cache;
    functions_init(&loader->functions, profile, options->demangle);
    kernel_init(&loader->kernel, &loader->modules, options, loader->search.buildid_dir);
    tasks_init(&loader->tasks, profile);
    loader->resolver = (struct resolver){.profile = profile,
                                         .options = options,
                                         .modules = &loader->modules,
                                         .functions = &loader->functions,
                                         .kernel = &loader->kernel,
                                         .inlines = options->inlines == PROFILE_INLINES_ALL};
    loader->is_own = perfdata_is_own(info);
    bool is_arm = info->arch && strcmp(info->arch, "aarch64") == 0;
    struct stacks_limit limit = {.most = options->max_stack, .outermost = options->outermost};
    loader->callers = (struct callers){.resolver = &loader->resolver,
                                       .elf_machine = is_arm ? EM_AARCH64 : EM_X86_64,
                                       .limit = limit};
    int error = modules_init(&loader->modules, profile, &loader->search);
    if (error == 0)
        error = stacks_init(&loader->stacks, profile, &loader->resolver, limit);
    if (error == 0)
        error = modules_take_images(&loader->modules, info->private_data, info->private_length);
    for (size_t i = 0; error == 0 && i < info->build_id_count; i++)
        error = modules_note_build_id(&loader->modules, &info->build_ids[i]);
    return error < 0 ? error : take_events(loader);
}

static void end(struct loader *loader)
{
    callers_done(&loader->callers);
    stacks_done(&loader->stacks);
    resolver_done(&loader->resolver);
    tasks_done(&loader->tasks);
    for (size_t i = 0; i < loader->dumps.count; i++) {
        jit_dump_done(loader->dumps.items[i]);
        free(loader->dumps.items[i]);
    }
    vector_done(&loader->dumps);
    kernel_done(&loader->kernel);
    functions_done(&loader->functions);
    modules_done(&loader->modules);
    perfdata_close(loader->reader);
}

int profile_load(const char *path, const struct profile_options *options, const char **ret_problem,
                 struct profile **ret_profile)
{
    struct loader *loader = calloc(1, sizeof *loader);
    struct profile *profile = calloc(1, sizeof *profile);
    *ret_problem = "memory is short";
    int error = loader && profile ? strings_init(&profile->strings) : -ENOMEM;
    if (error < 0) {
        free(loader);
        free(profile);
        return error;
    }
    loader->profile = profile;
    loader->options = options;
    error = perfdata_open(path, ret_problem, &loader->reader);
    if (error < 0)
        loader->reader = NULL;
    if (error == 0)
        error = start(loader);
    if (error == 0)
        error = read_records(loader);
    if (error == 0)
        error = finish(profile, loader->reader);
    if (error == -ECANCELED)
        *ret_problem = "interrupted";
    end(loader);
    free(loader);
    if (error < 0)
        profile_free(profile);
    else
        *ret_profile = profile;
    return error;
}
