#include "export/view.h"

#include "profile/pairmap.h"

#include <linux/perf_event.h>

static int add_node(struct export_view *view, struct pairmap *known, struct export_node node,
                    uint32_t *ret_node)
{
    uint64_t key = (uint64_t)node.parent << 32 | node.name;
    if (pairmap_get(known, key, node.line, ret_node))
        return 0;
    *ret_node = (uint32_t)view->nodes.count;
    if (vector_push(&view->nodes, node) < 0)
        return -ENOMEM;
    return pairmap_set(known, key, node.line, *ret_node);
}

/* Nodes of a table of stacks; parents come before their children there, so one walk is enough. */
static int merge_stacks(struct export_view *view, const struct profile_stack *stacks, size_t count,
                        bool has_lines, uint32_t *ret_node_of)
{
    const struct profile *profile = view->profile;
    struct pairmap known = {0};
    struct export_node root = {.parent = PROFILE_NONE, .name = PROFILE_NONE};
    int result = vector_push(&view->nodes, root);
    ret_node_of[PROFILE_ROOT] = 0;
    for (size_t i = 1; i < count && result == 0; i++) {
        const struct profile_frame *frame = &profile->frames.items[stacks[i].frame];
        uint32_t parent = ret_node_of[stacks[i].parent];
        struct export_node node = {.parent = parent,
                                   .name = view->names.of_function[frame->function],
                                   .depth = view->nodes.items[parent].depth + 1};
        if (has_lines && view->names.items.items[node.name].is_python)
            node.line = frame->line;
        result = add_node(view, &known, node, &ret_node_of[i]);
    }
    pairmap_done(&known);
    return result;
}

static int make_nodes(struct export_view *view, bool has_lines)
{
    const struct profile *profile = view->profile;
    size_t count = profile->stacks.count;
    view->node_of = calloc(count + 1, sizeof *view->node_of);
    if (!view->node_of)
        return -ENOMEM;
    if (!view->settings.fold)
        return merge_stacks(view, profile->stacks.items, count, has_lines, view->node_of);
    if (fold_init(&view->fold, profile) < 0)
        return -ENOMEM;
    uint32_t *of_folded = calloc(view->fold.stacks.count + 1, sizeof *of_folded);
    int result = of_folded ? merge_stacks(view, view->fold.stacks.items, view->fold.stacks.count,
                                          has_lines, of_folded)
                           : -ENOMEM;
    for (size_t i = 0; i < count && result == 0; i++)
        view->node_of[i] = of_folded[view->fold.stack_of[i]];
    free(of_folded);
    return result;
}

static bool is_wanted(const struct export_view *view, const struct profile_sample *sample)
{
    return sample->event == view->settings.event &&
           sample_filter_passes(&view->settings.wanted, view->profile, sample);
}

/* Groups the samples by thread: count, add up, put in place. */
static int choose_samples(struct export_view *view)
{
    const struct profile *profile = view->profile;
    size_t threads = profile->threads.count, count = profile->samples.count;
    bool *wanted = calloc(count + 1, sizeof *wanted);
    view->first_of_thread = calloc(threads + 2, sizeof *view->first_of_thread);
    view->samples = calloc(count + 1, sizeof *view->samples);
    if (!wanted || !view->first_of_thread || !view->samples) {
        free(wanted);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const struct profile_sample *sample = &profile->samples.items[i];
        wanted[i] = is_wanted(view, sample);
        if (!wanted[i])
            continue;
        if (!view->sample_count++)
            view->first_ns = sample->time_ns;
        view->last_ns = sample->time_ns;
        view->weight += export_weight(view, sample);
        view->first_of_thread[sample->thread + 2]++;
    }
    for (size_t i = 2; i < threads + 2; i++)
        view->first_of_thread[i] += view->first_of_thread[i - 1];
    /* Now [t + 1] is where the samples of t begin; filling moves it to where they end. */
    for (size_t i = 0; i < count; i++)
        if (wanted[i])
            view->samples[view->first_of_thread[profile->samples.items[i].thread + 1]++] =
                (uint32_t)i;
    free(wanted);
    return 0;
}

static enum export_unit unit_of(const struct export_view *view)
{
    if (view->settings.count_samples || view->settings.event >= view->profile->events.count)
        return EXPORT_SAMPLES;
    const struct profile_event *event = &view->profile->events.items[view->settings.event];
    bool is_clock =
        event->type == PERF_TYPE_SOFTWARE &&
        (event->config == PERF_COUNT_SW_CPU_CLOCK || event->config == PERF_COUNT_SW_TASK_CLOCK);
    return is_clock ? EXPORT_NANOSECONDS : EXPORT_EVENTS;
}

int export_view_init(struct export_view *view, const struct profile *profile,
                     const struct export_settings *settings, bool has_lines)
{
    *view = (struct export_view){.profile = profile, .settings = *settings};
    view->unit = unit_of(view);
    int result = names_init(&view->names, profile);
    if (result == 0)
        result = make_nodes(view, has_lines || settings->lines);
    if (result == 0)
        result = choose_samples(view);
    if (result < 0)
        export_view_done(view);
    return result;
}

void export_view_done(struct export_view *view)
{
    names_done(&view->names);
    vector_done(&view->nodes);
    free(view->node_of);
    free(view->samples);
    free(view->first_of_thread);
    if (view->settings.fold)
        fold_done(&view->fold);
    *view = (struct export_view){0};
}

const char *export_event_name(const struct export_view *view)
{
    const struct profile *profile = view->profile;
    return view->settings.event < profile->events.count
               ? profile_text(profile, profile->events.items[view->settings.event].name)
               : "";
}

uint64_t export_wall_ns(const struct export_view *view)
{
    const struct perfdata_info *info = &view->profile->info;
    uint64_t since_ns = info->clock_ns - view->first_ns; /* may be negative: it wraps, twice */
    return info->has_clock ? info->clock_wall_ns - since_ns : 0;
}
