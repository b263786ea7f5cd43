/* A profile in the viewer's own format (docs/viewer-format.md), gzip and base64, for a page. */
#ifndef PITVIPER_EXPORT_VIEWER_DATA_H
#define PITVIPER_EXPORT_VIEWER_DATA_H

#include "export/viewer_tables.h"

#include <stdio.h>

/* Called with the bytes that are written, of how many; before compression. */
typedef bool viewer_progress(void *context, uint64_t done, uint64_t total);

/* Writes `tables`, which were made from `profile`; the profile has what is said about the recording
 * as a whole. `progress` may be NULL; its
 * context is, and its result does not matter. 0 or -ENOMEM; write errors stay in the
 * FILE. */
int viewer_data_write(FILE *out, const struct profile *profile, const struct viewer_tables *tables,
                      viewer_progress *progress);

#endif
