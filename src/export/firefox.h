/* What the two files of the Firefox Profiler's format share: firefox.c writes the file as a whole,
 * firefox_thread.c the tables of each thread. */
#ifndef PITVIPER_EXPORT_FIREFOX_H
#define PITVIPER_EXPORT_FIREFOX_H

#include "base/json.h"
#include "export/frames.h"

/* Categories of frames, by number; the format has few colours. */
enum firefox_category {
    FIREFOX_OTHER,
    FIREFOX_PYTHON,
    FIREFOX_INTERPRETER,
    FIREFOX_NATIVE,
    FIREFOX_KERNEL,
    FIREFOX_GC,
    FIREFOX_CATEGORIES
};

/* A table of one thread: which of all things it has, and the number of each there. `number_of` is
 * valid where `owner` is the thread's. */
struct firefox_table {
    VECTOR(uint32_t) items;
    uint32_t *number_of;
    uint32_t *owner; /* thread + 1 */
};

struct firefox {
    const struct export_view *view;
    struct json json;
    uint32_t thread;
    struct firefox_table nodes, frames, names, modules;
    struct export_frames all_frames;
    uint32_t *lib_of;       /* per module: number in `libs` */
    struct strings strings; /* of the thread */
};

/* 0 or -ENOMEM; release it in any case. `out` is where the file goes. */
int firefox_init(struct firefox *firefox, const struct export_view *view, FILE *out);
void firefox_done(struct firefox *firefox);

/* Writes the object of a thread that has samples. 0 or -ENOMEM. */
int firefox_write_thread(struct firefox *firefox, uint32_t thread);

#endif
