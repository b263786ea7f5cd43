/* profile_dump FILE [OPTION …]: prints every sample of a recording with its resolved stack, in the
 * form of `perf script -F comm,pid,tid,time,ip,sym,dso`, so that the two can be compared.
 *
 *     --quality       one line: samples, complete, truncated, broken, frames, unresolved
 *     --fold          the stacks as profile/fold.h makes them
 *     --buildid-dir DIR
 *     --inline        inlined functions too
 *     --lines         a line FILE:LINE behind each frame that has one
 *     --offsets       the place in the function, as -F symoff has it
 *     --whole         stacks of any depth */
#include "profile/fold.h"
#include "profile/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct view {
    const struct profile *profile;
    const struct profile_stack *stacks;
    const uint32_t *stack_of; /* NULL: as they are */
    bool lines, offsets;
};

static void print_frame(const struct view *view, uint32_t number)
{
    const struct profile *profile = view->profile;
    const struct profile_frame *frame = &profile->frames.items[number];
    const struct profile_function *function = &profile->functions.items[frame->function];
    const struct profile_module *module = &profile->modules.items[function->module];
    const char *name = profile_text(profile, function->name);
    char offset[16] = "";
    if (view->offsets && *name)
        snprintf(offset, sizeof offset, "+0x%" PRIx32, frame->offset);
    printf("\t%16" PRIx64 " %s%s (%s)\n", frame->ip_avma, *name ? name : "[unknown]", offset,
           frame->is_inlined ? "inlined" : profile_text(profile, module->path));
    if (view->lines && frame->line)
        printf("  %s:%" PRIu32 "\n", profile_text(profile, frame->file), frame->line);
}

static void print_sample(const struct view *view, const struct profile_sample *sample)
{
    const struct profile *profile = view->profile;
    const struct profile_thread *thread = &profile->threads.items[sample->thread];
    uint64_t microseconds = sample->time_ns / 1000;
    printf("%s %" PRId32 "/%" PRId32 " %" PRIu64 ".%06" PRIu64 ": \n",
           profile_text(profile, sample->comm), profile->processes.items[thread->process].pid,
           thread->tid, microseconds / 1000000, microseconds % 1000000);
    uint32_t stack = view->stack_of ? view->stack_of[sample->stack] : sample->stack;
    for (; stack != PROFILE_ROOT; stack = view->stacks[stack].parent)
        print_frame(view, view->stacks[stack].frame);
    putchar('\n');
}

static void print_quality(const struct profile *profile)
{
    const struct profile_losses *losses = &profile->losses;
    printf("samples %" PRIu64 " complete %" PRIu64 " truncated %" PRIu64 " broken %" PRIu64
           " frames %" PRIu64 " unresolved %" PRIu64 " lost %" PRIu64 "\n",
           losses->samples, losses->complete, losses->truncated, losses->broken, losses->frames,
           losses->unresolved_frames, losses->lost_samples);
    printf("stacks %zu frames %zu functions %zu modules %zu strings %zu threads %zu\n",
           profile->stacks.count, profile->frames.count, profile->functions.count,
           profile->modules.count, profile->strings.texts.count, profile->threads.count);
}

int main(int count, char **arguments)
{
    struct profile_options options = profile_options_default();
    bool quality = false, folded = false;
    struct view view = {0};
    for (int i = 2; i < count; i++) {
        quality |= strcmp(arguments[i], "--quality") == 0;
        folded |= strcmp(arguments[i], "--fold") == 0;
        if (strcmp(arguments[i], "--inline") == 0)
            options.inlines = PROFILE_INLINES_ALL;
        if (strcmp(arguments[i], "--whole") == 0)
            options.max_stack = 1 << 16;
        view.lines |= strcmp(arguments[i], "--lines") == 0;
        view.offsets |= strcmp(arguments[i], "--offsets") == 0;
        if (strcmp(arguments[i], "--buildid-dir") == 0 && i + 1 < count)
            options.buildid_dir = arguments[++i];
    }
    options.lines = view.lines;
    struct profile *profile;
    const char *problem = "usage: profile_dump FILE [OPTION ...]";
    if (count < 2 || profile_load(arguments[1], &options, &problem, &profile) < 0) {
        fprintf(stderr, "profile_dump: %s\n", problem);
        return 1;
    }
    view.profile = profile;
    view.stacks = profile->stacks.items;
    struct fold fold = {0};
    if (folded && fold_init(&fold, profile) == 0) {
        view.stacks = fold.stacks.items;
        view.stack_of = fold.stack_of;
    }
    if (quality)
        print_quality(profile);
    for (size_t i = 0; !quality && i < profile->samples.count; i++)
        print_sample(&view, &profile->samples.items[i]);
    fold_done(&fold);
    profile_free(profile);
    return 0;
}
