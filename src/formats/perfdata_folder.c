/* With --threads each thread of perf writes a file of its own:
 *
 *     perf.data/data      header, events, features, and what perf found running
 *     perf.data/data.0    records of the first thread, without any header
 *     perf.data/data.1    …
 *
 * There are no rounds: all of it has to be read before the first record is complete. */
#include "formats/perfdata_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

/* More processors than any machine has. */
enum { MOST_PARTS = 1 << 16 };

static int open_parts(struct perfdata_folder *folder, const char *path)
{
    char name[PATH_MAX];
    for (int i = 0; i < MOST_PARTS; i++) {
        struct mapping part;
        if (snprintf(name, sizeof name, "%s/data.%d", path, i) >= (int)sizeof name)
            return -ENAMETOOLONG;
        int error = mapping_open(name, &part);
        if (error < 0)
            return error == -ENOENT ? 0 : error;
        if (!part.length) {
            mapping_done(&part);
            continue;
        }
        if (vector_push(&folder->parts, part) < 0) {
            mapping_done(&part);
            return -ENOMEM;
        }
    }
    return 0;
}

int perfdata_folder_open(struct perfdata_folder *folder, const char *path, struct mapping *ret_main)
{
    char name[PATH_MAX];
    *folder = (struct perfdata_folder){0};
    if (snprintf(name, sizeof name, "%s/data", path) >= (int)sizeof name)
        return -ENAMETOOLONG;
    int error = mapping_open(name, ret_main);
    if (error < 0)
        return error == -ENOENT ? -EISDIR : error;
    error = open_parts(folder, path);
    if (error < 0) {
        perfdata_folder_done(folder);
        mapping_done(ret_main);
    }
    return error;
}

void perfdata_folder_done(struct perfdata_folder *folder)
{
    for (size_t i = 0; i < folder->parts.count; i++)
        mapping_done(&folder->parts.items[i]);
    vector_done(&folder->parts);
}
