/* The frames of a view: the different functions, or functions and lines, that its nodes have. For
 * formats with a table of them. */
#ifndef PITVIPER_EXPORT_FRAMES_H
#define PITVIPER_EXPORT_FRAMES_H

#include "export/view.h"

struct export_frame {
    uint32_t name;
    uint32_t line; /* as in struct export_node */
};

struct export_frames {
    VECTOR(struct export_frame) items;
    uint32_t *of_node; /* per node but 0 */
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int export_frames_init(struct export_frames *frames, const struct export_view *view);
void export_frames_done(struct export_frames *frames);

#endif
