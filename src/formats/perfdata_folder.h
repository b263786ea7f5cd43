/* A recording in a folder: `perf record --threads`. Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_FOLDER_H
#define PITVIPER_FORMATS_PERFDATA_FOLDER_H

#include "base/mapping.h"
#include "base/vector.h"

/* A zeroed one is valid and empty. */
struct perfdata_folder {
    VECTOR(struct mapping) parts; /* data.0, data.1, …; those without content left out */
};

/* Maps the files of a folder: `data` into *ret_main, the others into the folder. 0; -EISDIR when it
 * is a folder of another kind; otherwise a negative errno. On failure there is nothing to release.
 */
int perfdata_folder_open(struct perfdata_folder *folder, const char *path,
                         struct mapping *ret_main);
void perfdata_folder_done(struct perfdata_folder *folder);

#endif
