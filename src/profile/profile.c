/* Life and death of a profile; load.c fills it. Sums over samples are made at the end, by stack
 * instead of by frame: parents come before their children, so one walk over the tree gives the
 * number of frames without a name of every stack. */
#include "profile/profile.h"

#include "profile/finish.h"

#include <stdio.h>
#include <string.h>

enum { PERF_MAX_STACK = 127 };

struct profile_options profile_options_default(void)
{
    return (struct profile_options){.max_stack = PERF_MAX_STACK, .demangle = true};
}

void profile_free(struct profile *profile)
{
    if (!profile)
        return;
    strings_done(&profile->strings);
    vector_done(&profile->events);
    vector_done(&profile->modules);
    vector_done(&profile->functions);
    vector_done(&profile->frames);
    vector_done(&profile->stacks);
    vector_done(&profile->processes);
    vector_done(&profile->threads);
    vector_done(&profile->samples);
    arena_done(&profile->arena);
    free(profile);
}

void profile_damage(const struct profile *profile, char *text, size_t bytes)
{
    const struct damage *damage = &profile->damage;
    text[0] = '\0';
    if (damage->count)
        snprintf(text, bytes, "damaged in %zu %s, the first at offset %zu: %s", damage->count,
                 damage->count == 1 ? "place" : "places", damage->places[0].offset,
                 damage->places[0].problem);
    else if (damage->truncated)
        snprintf(text, bytes, "ends inside its last record, at offset %zu",
                 damage->truncated_offset);
}

const char *profile_trigger(const struct profile *profile)
{
    static const char before[] = ", by ";
    const struct perfdata_info *info = &profile->info;
    const char *found = perfdata_is_own(info) ? strstr(info->perf_version, before) : NULL;
    return found ? found + sizeof before - 1 : "";
}

static int count_losses(struct profile *profile)
{
    struct profile_losses *losses = &profile->losses;
    uint32_t *unresolved = calloc(profile->stacks.count + 1, sizeof *unresolved);
    if (!unresolved)
        return -ENOMEM;
    for (uint32_t i = 1; i < profile->stacks.count; i++)
        unresolved[i] = unresolved[profile->stacks.items[i].parent] +
                        (profile_function_of(profile, i)->kind == PROFILE_FUNCTION_UNRESOLVED);
    losses->samples = profile->samples.count;
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct profile_sample *sample = &profile->samples.items[i];
        losses->frames += profile->stacks.items[sample->stack].depth;
        losses->unresolved_frames += unresolved[sample->stack];
        losses->complete += sample->end == PROFILE_STACK_COMPLETE;
        losses->truncated += sample->end == PROFILE_STACK_TRUNCATED;
        losses->broken += sample->end == PROFILE_STACK_BROKEN;
        losses->without_stack += sample->end == PROFILE_STACK_NONE;
        losses->no_process += profile_text(profile, sample->comm)[0] == ':';
    }
    free(unresolved);
    return 0;
}

static bool copy_text(struct profile *profile, const char **text)
{
    if (*text)
        *text = arena_copy(&profile->arena, *text, strlen(*text));
    return *text != NULL;
}

/* Copies all that the description of the recording points to, since the reader goes. */
static int copy_info(struct profile *profile, const struct perfdata_info *from)
{
    struct perfdata_info *info = &profile->info;
    *info = *from;
    info->build_ids = NULL;
    info->build_id_count = 0;
    info->private_data = NULL;
    info->private_length = 0;
    const char **texts[] = {&info->source,       &info->hostname, &info->os_release,
                            &info->perf_version, &info->arch,     &info->cpu_description,
                            &info->cpu_id};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (*texts[i] && !copy_text(profile, texts[i]))
            return -ENOMEM;

    const char **arguments =
        arena_alloc(&profile->arena, (from->argument_count + 1) * sizeof *arguments);
    struct perfdata_event *events =
        arena_alloc(&profile->arena, (from->event_count + 1) * sizeof *events);
    if (!arguments || !events)
        return -ENOMEM;
    for (size_t i = 0; i < from->argument_count; i++) {
        arguments[i] = from->arguments[i];
        if (!copy_text(profile, &arguments[i]))
            return -ENOMEM;
    }
    for (size_t i = 0; i < from->event_count; i++) {
        events[i] = from->events[i];
        events[i].ids = NULL;
        events[i].id_count = 0;
        if (!copy_text(profile, &events[i].name))
            return -ENOMEM;
    }
    info->arguments = arguments;
    info->events = events;
    return 0;
}

int finish(struct profile *profile, const struct perfdata_reader *reader)
{
    profile->damage = *perfdata_damage(reader);
    profile->stats = *perfdata_stats(reader);
    int error = copy_info(profile, perfdata_info(reader));
    return error < 0 ? error : count_losses(profile);
}
