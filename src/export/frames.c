#include "export/frames.h"

#include "profile/pairmap.h"

static int add(struct export_frames *frames, struct pairmap *known, struct export_frame frame,
               uint32_t *ret_number)
{
    if (pairmap_get(known, frame.name, frame.line, ret_number))
        return 0;
    *ret_number = (uint32_t)frames->items.count;
    if (vector_push(&frames->items, frame) < 0)
        return -ENOMEM;
    return pairmap_set(known, frame.name, frame.line, *ret_number);
}

int export_frames_init(struct export_frames *frames, const struct export_view *view)
{
    *frames =
        (struct export_frames){.of_node = calloc(view->nodes.count + 1, sizeof *frames->of_node)};
    struct pairmap known = {0};
    int result = frames->of_node ? 0 : -ENOMEM;
    for (size_t i = 1; i < view->nodes.count && result == 0; i++) {
        struct export_frame frame = {view->nodes.items[i].name, view->nodes.items[i].line};
        result = add(frames, &known, frame, &frames->of_node[i]);
    }
    pairmap_done(&known);
    if (result < 0)
        export_frames_done(frames);
    return result;
}

void export_frames_done(struct export_frames *frames)
{
    vector_done(&frames->items);
    free(frames->of_node);
    *frames = (struct export_frames){0};
}
