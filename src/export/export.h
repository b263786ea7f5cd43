/* A profile in the formats of other tools.
 *
 *     const struct export_format *format = export_format_find("folded");
 *     struct export_view view;
 *     export_view_init(&view, profile, &settings, format->has_lines);
 *     format->write(&view, out);
 *     export_view_done(&view);
 *
 * A format is a row of the table in export.c and a file of its own with one function. All write as
 * they go, into a FILE that takes care of compression and of the place; write errors stay in the
 * FILE (ferror), as with base/json.h. */
#ifndef PITVIPER_EXPORT_EXPORT_H
#define PITVIPER_EXPORT_EXPORT_H

#include "export/view.h"

#include <stdio.h>

struct export_format {
    const char *name;
    const char *summary;     /* one line */
    const char *output;      /* where it goes when nobody says; "-" is standard output */
    bool is_packed;          /* always gzip; others only under a name that ends in .gz */
    bool is_whole;           /* always all of the recording, whatever the settings say */
    bool has_lines;          /* tells lines of Python functions apart without being asked */
    bool can_choose_weights; /* has one weight per stack: settings.count_samples counts */

    /* 0 or -ENOMEM. */
    int (*write)(const struct export_view *view, FILE *out);
};

extern const struct export_format export_formats[]; /* up to one without a name */

/* NULL when there is none of that name. */
const struct export_format *export_format_find(const char *name);

int export_folded(const struct export_view *view, FILE *out);
int export_speedscope(const struct export_view *view, FILE *out);
int export_firefox(const struct export_view *view, FILE *out);
int export_pprof(const struct export_view *view, FILE *out);
int export_svg(const struct export_view *view, FILE *out);
int export_callgrind(const struct export_view *view, FILE *out);
int export_html(const struct export_view *view, FILE *out);

#endif
