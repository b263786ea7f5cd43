/* From the profile's tables to the viewer's, in this order:
 *
 *     samples --> stacks that are used --> frames --> functions --> modules
 *                        |                   |
 *                        `-- fold            `-- the most frequent first: small numbers
 *
 * Then the trees and the samples are written down with the new numbers. */
#include "export/viewer_tables.h"

#include "base/text.h"
#include "export/names.h"
#include "export/viewer_column.h"
#include "profile/fold.h"
#include "profile/pairmap.h"

#include <string.h>

struct frame_use {
    uint32_t frame; /* of viewer_tables.frames, before it is in order */
    uint64_t stacks;
};

struct building {
    struct viewer_tables *tables;
    const struct profile *profile;
    struct fold fold;
    bool *is_used;        /* per stack */
    bool *is_folded_used; /* per folded stack */
    struct names names;
    uint32_t *string_of; /* these per string, module, … of the profile: the viewer's number, or */
    uint32_t *module_of; /* PROFILE_NONE */
    uint32_t *function_of; /* per name */
    uint32_t *frame_of;
    uint32_t *process_of;
    uint32_t *thread_of;
    struct pairmap by_place; /* (function and file, line) -> frame */
};

/* --- texts ------------------------------------------------------------------------------------ */

int viewer_tables_text(struct viewer_tables *tables, const char *bytes, size_t length,
                       uint32_t *ret_string)
{
    static const char replacement[] = "\xef\xbf\xbd";
    size_t valid = 0, size;
    while (valid < length && (size = text_utf8_length(bytes + valid, length - valid)))
        valid += size;
    if (valid == length)
        return strings_intern(&tables->strings, bytes, length, ret_string);
    char *text = malloc(length * (sizeof replacement - 1));
    if (!text)
        return -ENOMEM;
    size_t used = 0;
    for (size_t i = 0; i < length; i += size ? size : 1) {
        size = text_utf8_length(bytes + i, length - i);
        memcpy(text + used, size ? bytes + i : replacement, size ? size : sizeof replacement - 1);
        used += size ? size : sizeof replacement - 1;
    }
    int error = strings_intern(&tables->strings, text, used, ret_string);
    free(text);
    return error;
}

/* The number of a string of the profile. */
static int take_string(struct building *building, uint32_t string, uint32_t *ret_string)
{
    uint32_t *known = &building->string_of[string];
    struct strings_text text = strings_get(&building->profile->strings, string);
    int error = 0;
    if (*known == PROFILE_NONE)
        error = viewer_tables_text(building->tables, text.bytes, text.length, known);
    *ret_string = *known;
    return error;
}

/* --- modules, functions, frames --------------------------------------------------------------- */

static int take_module(struct building *building, uint32_t number, uint32_t *ret_module)
{
    const struct profile_module *module = &building->profile->modules.items[number];
    struct viewer_tables *tables = building->tables;
    if (building->module_of[number] == PROFILE_NONE) {
        struct viewer_module row = {.kind = module->kind};
        if (take_string(building, module->name, &row.name) < 0 ||
            take_string(building, module->path, &row.path) < 0 ||
            vector_push(&tables->modules, row) < 0)
            return -ENOMEM;
        building->module_of[number] = (uint32_t)(tables->modules.count - 1);
    }
    *ret_module = building->module_of[number];
    return 0;
}

static int add_function(struct building *building, const struct export_name *name)
{
    struct viewer_tables *tables = building->tables;
    struct viewer_function row = {.line = name->line,
                                  .kind = building->profile->functions.items[name->function].kind,
                                  .place = name->place};
    if (viewer_tables_text(tables, name->name.bytes, name->name.length, &row.name) < 0 ||
        viewer_tables_text(tables, name->file.bytes, name->file.length, &row.file) < 0 ||
        take_module(building, name->module, &row.module) < 0)
        return -ENOMEM;
    return vector_push(&tables->functions, row);
}

static int take_function(struct building *building, uint32_t number, uint32_t *ret_function)
{
    uint32_t name = building->names.of_function[number];
    uint32_t *known = &building->function_of[name];
    if (*known == PROFILE_NONE) {
        if (add_function(building, &building->names.items.items[name]) < 0)
            return -ENOMEM;
        *known = (uint32_t)(building->tables->functions.count - 1);
    }
    *ret_function = *known;
    return 0;
}

static int take_frame(struct building *building, uint32_t number)
{
    const struct profile_frame *frame = &building->profile->frames.items[number];
    struct viewer_tables *tables = building->tables;
    struct viewer_frame row = {.line = frame->line, .inlined = frame->is_inlined};
    if (take_function(building, frame->function, &row.function) < 0 ||
        take_string(building, frame->file, &row.file) < 0)
        return -ENOMEM;
    uint64_t high = (uint64_t)row.function << 32 | row.file;
    uint32_t low = row.line << 1 | row.inlined; /* no file has 2^31 lines */
    if (pairmap_get(&building->by_place, high, low, &building->frame_of[number]))
        return 0;
    building->frame_of[number] = (uint32_t)tables->frames.count;
    if (vector_push(&tables->frames, row) < 0)
        return -ENOMEM;
    return pairmap_set(&building->by_place, high, low, building->frame_of[number]);
}

static int compare_uses(const void *a, const void *b)
{
    const struct frame_use *left = a, *right = b;
    if (left->stacks != right->stacks)
        return left->stacks > right->stacks ? -1 : 1;
    return left->frame < right->frame ? -1 : left->frame > right->frame;
}

/* Frames of many stacks get small numbers, which take one byte. */
static int order_frames(struct building *building, struct frame_use *uses)
{
    struct viewer_tables *tables = building->tables;
    size_t count = tables->frames.count;
    qsort(uses, count, sizeof *uses, compare_uses);
    struct viewer_frame *ordered = calloc(count, sizeof *ordered);
    uint32_t *number_of = calloc(count, sizeof *number_of);
    if (ordered && number_of) {
        for (size_t i = 0; i < count; i++) {
            ordered[i] = tables->frames.items[uses[i].frame];
            number_of[uses[i].frame] = (uint32_t)i;
        }
        memcpy(tables->frames.items, ordered, count * sizeof *ordered);
        for (size_t i = 0; i < building->profile->frames.count; i++)
            if (building->frame_of[i] != PROFILE_NONE)
                building->frame_of[i] = number_of[building->frame_of[i]];
    }
    bool has_failed = !ordered || !number_of;
    free(ordered);
    free(number_of);
    return has_failed ? -ENOMEM : 0;
}

/* The frames of the stacks that are used; folded stacks have no others. */
static int take_frames(struct building *building)
{
    const struct profile *profile = building->profile;
    int error = 0;
    for (size_t i = 1; i < profile->stacks.count && error == 0; i++)
        if (building->is_used[i] &&
            building->frame_of[profile->stacks.items[i].frame] == PROFILE_NONE)
            error = take_frame(building, profile->stacks.items[i].frame);
    size_t count = building->tables->frames.count;
    if (error < 0 || !count)
        return error;
    struct frame_use *uses = calloc(count, sizeof *uses);
    if (!uses)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        uses[i].frame = i;
    for (size_t i = 1; i < profile->stacks.count; i++)
        if (building->is_used[i])
            uses[building->frame_of[profile->stacks.items[i].frame]].stacks++;
    error = order_frames(building, uses);
    free(uses);
    return error;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static void mark_stacks(struct building *building)
{
    const struct profile *profile = building->profile;
    for (size_t i = 0; i < profile->samples.count; i++)
        building->is_used[profile->samples.items[i].stack] = true;
    viewer_tree_mark_callers(profile->stacks.items, profile->stacks.count, building->is_used);
    for (size_t i = 0; i < profile->stacks.count; i++)
        if (building->is_used[i])
            building->is_folded_used[building->fold.stack_of[i]] = true;
    viewer_tree_mark_callers(building->fold.stacks.items, building->fold.stacks.count,
                             building->is_folded_used);
}

static int make_trees(struct building *building)
{
    const struct profile *profile = building->profile;
    struct viewer_tables *tables = building->tables;
    struct viewer_tree_source source = {.stacks = profile->stacks.items,
                                        .count = profile->stacks.count,
                                        .is_used = building->is_used,
                                        .frame_of = building->frame_of};
    if (viewer_tree_init(&tables->stacks, &source) < 0)
        return -ENOMEM;
    source.stacks = building->fold.stacks.items;
    source.count = building->fold.stacks.count;
    source.is_used = building->is_folded_used;
    if (viewer_tree_init(&tables->folded, &source) < 0 ||
        vector_reserve(&tables->folded_of, tables->stacks.nodes.count) < 0)
        return -ENOMEM;
    tables->folded_of.count = tables->stacks.nodes.count;
    for (size_t i = 0; i < profile->stacks.count; i++)
        if (building->is_used[i])
            tables->folded_of.items[tables->stacks.node_of[i]] =
                tables->folded.node_of[building->fold.stack_of[i]];
    return 0;
}

/* --- processes, threads, samples -------------------------------------------------------------- */

static uint32_t id_of(int32_t id)
{
    return id < 0 ? 0 : (uint32_t)id; /* perf's -1: not known */
}

static int take_process(struct building *building, uint32_t number, uint32_t *ret_process)
{
    const struct profile_process *process = &building->profile->processes.items[number];
    struct viewer_tables *tables = building->tables;
    if (building->process_of[number] == PROFILE_NONE) {
        struct viewer_process row = {.pid = id_of(process->pid)};
        if (take_string(building, process->comm, &row.name) < 0 ||
            vector_push(&tables->processes, row) < 0)
            return -ENOMEM;
        building->process_of[number] = (uint32_t)(tables->processes.count - 1);
    }
    *ret_process = building->process_of[number];
    return 0;
}

static int take_thread(struct building *building, uint32_t number, uint32_t *ret_thread)
{
    const struct profile_thread *thread = &building->profile->threads.items[number];
    struct viewer_tables *tables = building->tables;
    if (building->thread_of[number] == PROFILE_NONE) {
        struct viewer_thread row = {.tid = id_of(thread->tid)};
        if (take_process(building, thread->process, &row.process) < 0 ||
            take_string(building, thread->comm, &row.name) < 0 ||
            vector_push(&tables->threads, row) < 0)
            return -ENOMEM;
        building->thread_of[number] = (uint32_t)(tables->threads.count - 1);
    }
    *ret_thread = building->thread_of[number];
    return 0;
}

/* Processes without samples are left out, and their children belong to their parents. */
static void find_parents(struct building *building)
{
    const struct profile *profile = building->profile;
    for (size_t i = 0; i < profile->processes.count; i++) {
        if (building->process_of[i] == PROFILE_NONE)
            continue;
        uint32_t parent = profile->processes.items[i].parent;
        /* A recording may be damaged: no more steps than there are processes. */
        for (size_t steps = 0; steps < profile->processes.count && parent != PROFILE_NONE &&
                               building->process_of[parent] == PROFILE_NONE;
             steps++)
            parent = profile->processes.items[parent].parent;
        if (parent != PROFILE_NONE && building->process_of[parent] != PROFILE_NONE && parent != i)
            building->tables->processes.items[building->process_of[i]].parent =
                building->process_of[parent] + 1;
    }
}

static int compare_samples(const void *a, const void *b, void *context)
{
    const struct profile_sample *samples = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    if (samples[left].time_ns != samples[right].time_ns)
        return samples[left].time_ns < samples[right].time_ns ? -1 : 1;
    return left < right ? -1 : left > right;
}

/* The samples by time. They are in order already, unless a round of the recording had late ones. */
static uint32_t *order_of_samples(const struct profile *profile)
{
    size_t count = profile->samples.count;
    uint32_t *order = calloc(count + 1, sizeof *order);
    if (!order)
        return NULL;
    bool is_ordered = true;
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
        is_ordered &=
            !i || profile->samples.items[i - 1].time_ns <= profile->samples.items[i].time_ns;
    }
    if (!is_ordered)
        qsort_r(order, count, sizeof *order, compare_samples, profile->samples.items);
    return order;
}

static uint64_t limited(uint64_t value)
{
    return value < VIEWER_NUMBER_LIMIT ? value : VIEWER_NUMBER_LIMIT - 1;
}

static int take_sample(struct building *building, const struct profile_sample *sample)
{
    struct viewer_tables *tables = building->tables;
    struct viewer_sample row = {.time_ns = limited(sample->time_ns - tables->start_ns),
                                .weight = limited(sample->period),
                                .stack = tables->stacks.node_of[sample->stack],
                                .event = sample->event,
                                .end = sample->end,
                                .waiting = sample->waiting};
    int error = take_thread(building, sample->thread, &row.thread);
    return error < 0 ? error : vector_push(&tables->samples, row);
}

static int take_samples(struct building *building)
{
    const struct profile *profile = building->profile;
    struct viewer_tables *tables = building->tables;
    size_t count = profile->samples.count;
    uint32_t *order = order_of_samples(profile);
    int error = order ? vector_reserve(&tables->samples, count + 1) : -ENOMEM;
    if (error == 0 && count) {
        tables->start_ns = profile->samples.items[order[0]].time_ns;
        tables->end_ns = profile->samples.items[order[count - 1]].time_ns;
    }
    for (size_t i = 0; i < count && error == 0; i++)
        error = take_sample(building, &profile->samples.items[order[i]]);
    free(order);
    if (error == 0)
        find_parents(building);
    return error;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Numbers for `count` things, none known yet. */
static uint32_t *new_numbers(size_t count)
{
    uint32_t *numbers = malloc((count + 1) * sizeof *numbers);
    if (numbers)
        memset(numbers, 0xff, (count + 1) * sizeof *numbers); /* PROFILE_NONE */
    return numbers;
}

static int build(struct building *building)
{
    const struct profile *profile = building->profile;
    building->is_used = calloc(profile->stacks.count + 1, sizeof(bool));
    building->is_folded_used = calloc(building->fold.stacks.count + 1, sizeof(bool));
    building->string_of = new_numbers(profile->strings.texts.count);
    building->module_of = new_numbers(profile->modules.count);
    building->function_of = new_numbers(profile->functions.count);
    building->frame_of = new_numbers(profile->frames.count);
    building->process_of = new_numbers(profile->processes.count);
    building->thread_of = new_numbers(profile->threads.count);
    if (!building->is_used || !building->is_folded_used || !building->string_of ||
        !building->module_of || !building->function_of || !building->frame_of ||
        !building->process_of || !building->thread_of)
        return -ENOMEM;
    mark_stacks(building);
    int error = take_frames(building);
    if (error == 0)
        error = make_trees(building);
    return error < 0 ? error : take_samples(building);
}

static void release(struct building *building)
{
    names_done(&building->names);
    fold_done(&building->fold);
    free(building->is_used);
    free(building->is_folded_used);
    free(building->string_of);
    free(building->module_of);
    free(building->function_of);
    free(building->frame_of);
    free(building->process_of);
    free(building->thread_of);
    pairmap_done(&building->by_place);
}

int viewer_tables_init(struct viewer_tables *tables, const struct profile *profile)
{
    *tables = (struct viewer_tables){0};
    int error = strings_init(&tables->strings);
    if (error < 0)
        return error;
    struct building building = {.tables = tables, .profile = profile};
    error = names_init(&building.names, profile);
    if (error == 0)
        error = fold_init(&building.fold, profile);
    if (error == 0)
        error = build(&building);
    release(&building);
    if (error < 0)
        viewer_tables_done(tables);
    return error;
}

void viewer_tables_done(struct viewer_tables *tables)
{
    strings_done(&tables->strings);
    vector_done(&tables->modules);
    vector_done(&tables->functions);
    vector_done(&tables->frames);
    viewer_tree_done(&tables->stacks);
    viewer_tree_done(&tables->folded);
    vector_done(&tables->folded_of);
    vector_done(&tables->processes);
    vector_done(&tables->threads);
    vector_done(&tables->samples);
    vector_done(&tables->sources);
}
