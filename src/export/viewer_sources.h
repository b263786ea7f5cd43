/* The source text of the Python files that a profile is about, for the viewer's source view. */
#ifndef PITVIPER_EXPORT_VIEWER_SOURCES_H
#define PITVIPER_EXPORT_VIEWER_SOURCES_H

#include "export/viewer_tables.h"

/* Fills tables->sources with those that can be read now. Files that can't, are too large, or are no
 * Python source by the looks of them are left out. 0 or -ENOMEM. */
int viewer_sources_add(struct viewer_tables *tables);

#endif
