/* A profile in the viewer's own format (docs/viewer-format.md), gzip and base64, for a page. */
#ifndef PITVIPER_EXPORT_VIEWER_DATA_H
#define PITVIPER_EXPORT_VIEWER_DATA_H

#include "export/viewer_tables.h"

#include <stdio.h>

/* Writes `tables`, which were made from `profile`; the profile has what is said about the recording
 * as a whole. 0; -ENOMEM; the negative errno of a failed write. */
int viewer_data_write(FILE *out, const struct profile *profile, const struct viewer_tables *tables);

#endif
