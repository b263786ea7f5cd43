/* The viewer as one HTML file: its program, one or two profiles, nothing that has to be loaded from
 * anywhere. */
#ifndef PITVIPER_EXPORT_VIEWER_PAGE_H
#define PITVIPER_EXPORT_VIEWER_PAGE_H

#include "export/viewer_data.h"

#include <stdio.h>

struct viewer_page {
    const char *title;             /* any bytes */
    const struct profile *profile; /* what is shown … */
    const struct profile *base;    /* … and what it is compared with; may be NULL */
    bool sources;                  /* with the source text of Python files */
    viewer_progress *progress;     /* may be NULL */
};

/* The title for recordings of these paths; `base` may be NULL. For free(); NULL: memory is short.
 */
char *viewer_page_title(const char *path, const char *base);

/* 0; -ENOMEM; the negative errno of a failed write, such as -ENOSPC. */
int viewer_page_write(FILE *out, const struct viewer_page *page);

#endif
