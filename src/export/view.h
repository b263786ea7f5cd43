/* What an export is made from: the samples that are wanted, and their stacks as people read them.
 *
 * A profile tells frames apart by address; most formats show functions, or functions and lines. So
 * stacks are merged into nodes here, once for all formats:
 *
 *     sample --> node --> parent node ... --> 0 (the node without function)
 *                  `----> name (a function; export/names.h), line
 *
 * The sum over all samples stays what it was, whatever is merged or folded away. */
#ifndef PITVIPER_EXPORT_VIEW_H
#define PITVIPER_EXPORT_VIEW_H

#include "export/names.h"
#include "profile/fold.h"
#include "report/sample_filter.h"

struct export_settings {
    bool fold;          /* without the interpreter's own frames: profile/fold.h */
    bool lines;         /* Python functions by line */
    bool count_samples; /* each sample weighs 1, not its period */
    uint16_t event;     /* samples of this one only */
    struct sample_filter wanted;
    const char *source; /* name of the recording, for titles; borrowed */
};

struct export_node {
    uint32_t parent; /* a node before this one; PROFILE_NONE for node 0 */
    uint32_t name;   /* PROFILE_NONE for node 0 */
    uint32_t line;   /* of a Python function, where the view has lines; 0: not known */
    uint32_t depth;  /* 0 for node 0 */
};

enum export_unit { EXPORT_SAMPLES, EXPORT_NANOSECONDS, EXPORT_EVENTS };

struct export_view {
    const struct profile *profile;
    struct export_settings settings;
    struct names names;
    VECTOR(struct export_node) nodes;
    uint32_t *node_of; /* per stack of the profile */
    struct fold fold;  /* where settings.fold */

    /* Numbers of the samples that are wanted, grouped by thread, in the order of time; those of
     * thread t are from first_of_thread[t] up to first_of_thread[t + 1]. */
    uint32_t *samples;
    uint32_t *first_of_thread;
    uint32_t sample_count;
    uint64_t weight;   /* of all of them, as export_weight counts */
    uint64_t first_ns; /* times of the first and the last of them */
    uint64_t last_ns;
    enum export_unit unit; /* of weights */
};

/* 0 or -ENOMEM; on failure there is nothing to release. The profile must outlive the view.
 * `has_lines`: the format tells lines apart whatever the settings say. */
int export_view_init(struct export_view *view, const struct profile *profile,
                     const struct export_settings *settings, bool has_lines);
void export_view_done(struct export_view *view);

/* What a sample counts. */
static inline uint64_t export_weight(const struct export_view *view,
                                     const struct profile_sample *sample)
{
    return view->settings.count_samples ? 1 : sample->period;
}

/* The stack of a sample in the profile's terms, for formats that show addresses: its frames are in
 * *ret_stacks, the profile's table or the folded one. */
static inline uint32_t export_stack(const struct export_view *view,
                                    const struct profile_sample *sample,
                                    const struct profile_stack **ret_stacks)
{
    bool fold = view->settings.fold;
    *ret_stacks = fold ? view->fold.stacks.items : view->profile->stacks.items;
    return fold ? view->fold.stack_of[sample->stack] : sample->stack;
}

/* The time of the first sample as CLOCK_REALTIME, in nanoseconds; 0 when the recording has no
 * clocks to compare. */
uint64_t export_wall_ns(const struct export_view *view);

/* "cpu-clock:u", … */
const char *export_event_name(const struct export_view *view);

#endif
