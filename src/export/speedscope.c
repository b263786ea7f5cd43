/* speedscope's own format (https://www.speedscope.app/file-format-schema.json): a table of frames,
 * and a profile per thread with a stack and a weight for each sample:
 *
 *     {"shared": {"frames": [{"name": "main", "file": "app.py", "line": 3}, …]},
 *      "profiles": [{"type": "sampled", "samples": [[0, 4, 7], …], "weights": [1001001, …]}, …]}
 *
 * Samples that follow each other in a thread with the same stack are written as one, which is what
 * speedscope draws anyway. A frame is a function or, with --lines, a line of it. */
#include "base/json.h"
#include "export/export.h"
#include "export/frames.h"

#include <inttypes.h>

struct speedscope {
    const struct export_view *view;
    struct json json;
    struct export_frames frames;
    VECTOR(uint32_t) path;
};

static void write_frames(struct speedscope *scope)
{
    struct json *json = &scope->json;
    json_begin_array(json, "frames");
    for (size_t i = 0; i < scope->frames.items.count; i++) {
        const struct export_frame *frame = &scope->frames.items.items[i];
        const struct export_name *name = &scope->view->names.items.items[frame->name];
        uint32_t line = frame->line ? frame->line : name->line;
        json_begin_object(json, NULL);
        json_string(json, "name", name->name.bytes, name->name.length);
        if (name->file.length)
            json_string(json, "file", name->file.bytes, name->file.length);
        if (line)
            json_number(json, "line", line);
        json_end_object(json);
    }
    json_end_array(json);
}

static int write_stack(struct speedscope *scope, uint32_t node)
{
    scope->path.count = 0;
    for (; node; node = scope->view->nodes.items[node].parent)
        if (vector_push(&scope->path, scope->frames.of_node[node]) < 0)
            return -ENOMEM;
    json_begin_array(&scope->json, NULL);
    for (size_t i = scope->path.count; i-- > 0;)
        json_number(&scope->json, NULL, scope->path.items[i]);
    json_end_array(&scope->json);
    return 0;
}

static const struct profile_sample *sample_at(const struct export_view *view, uint32_t i)
{
    return &view->profile->samples.items[view->samples[i]];
}

/* Where the run of samples with the same stack ends that begins at `i`, and what it weighs. */
static uint32_t run_end(const struct export_view *view, uint32_t i, uint32_t end,
                        uint64_t *ret_weight)
{
    uint32_t node = view->node_of[sample_at(view, i)->stack];
    *ret_weight = 0;
    for (; i < end && view->node_of[sample_at(view, i)->stack] == node; i++)
        *ret_weight += export_weight(view, sample_at(view, i));
    return i;
}

static void write_thread_name(struct speedscope *scope, uint32_t number)
{
    const struct profile *profile = scope->view->profile;
    const struct profile_thread *thread = &profile->threads.items[number];
    char *name;
    if (asprintf(&name, "%s (pid %d, tid %d)", profile_text(profile, thread->comm),
                 profile->processes.items[thread->process].pid, thread->tid) < 0)
        name = NULL;
    json_text(&scope->json, "name", name ? name : "");
    free(name);
}

static int write_thread(struct speedscope *scope, uint32_t number)
{
    const struct export_view *view = scope->view;
    struct json *json = &scope->json;
    uint32_t begin = view->first_of_thread[number], end = view->first_of_thread[number + 1];
    uint64_t weight, total = 0;
    for (uint32_t i = begin; i < end; i++)
        total += export_weight(view, sample_at(view, i));
    json_begin_object(json, NULL);
    json_text(json, "type", "sampled");
    write_thread_name(scope, number);
    json_text(json, "unit", view->unit == EXPORT_NANOSECONDS ? "nanoseconds" : "none");
    json_number(json, "startValue", 0);
    json_number(json, "endValue", total);
    json_begin_array(json, "samples");
    for (uint32_t i = begin; i < end; i = run_end(view, i, end, &weight))
        if (write_stack(scope, view->node_of[sample_at(view, i)->stack]) < 0)
            return -ENOMEM;
    json_end_array(json);
    json_begin_array(json, "weights");
    for (uint32_t i = begin; i < end;) {
        i = run_end(view, i, end, &weight);
        json_number(json, NULL, weight);
    }
    json_end_array(json);
    json_end_object(json);
    return 0;
}

/* The busiest thread is shown first. */
static uint64_t busiest_profile(const struct export_view *view)
{
    uint64_t number = 0, busiest = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < view->profile->threads.count; i++) {
        uint32_t count = view->first_of_thread[i + 1] - view->first_of_thread[i];
        if (count > most) {
            most = count;
            busiest = number;
        }
        number += count > 0;
    }
    return busiest;
}

static int write_file(struct speedscope *scope)
{
    const struct export_view *view = scope->view;
    struct json *json = &scope->json;
    json_begin_object(json, NULL);
    json_text(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_text(json, "exporter", "pitviper " PITVIPER_VERSION);
    json_text(json, "name", view->settings.source);
    json_number(json, "activeProfileIndex", busiest_profile(view));
    json_begin_object(json, "shared");
    write_frames(scope);
    json_end_object(json);
    json_begin_array(json, "profiles");
    int result = 0;
    for (uint32_t i = 0; i < view->profile->threads.count && result == 0; i++)
        if (view->first_of_thread[i] != view->first_of_thread[i + 1])
            result = write_thread(scope, i);
    json_end_array(json);
    json_end_object(json);
    return result;
}

int export_speedscope(const struct export_view *view, FILE *out)
{
    struct speedscope scope = {.view = view};
    json_init_compact(&scope.json, out);
    int result = export_frames_init(&scope.frames, view);
    if (result == 0)
        result = write_file(&scope);
    export_frames_done(&scope.frames);
    vector_done(&scope.path);
    return result;
}
