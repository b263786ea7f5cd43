/* The folder in which profiled processes put their rings. */
#ifndef PITVIPER_RECORD_RING_FOLDER_H
#define PITVIPER_RECORD_RING_FOLDER_H

#include <limits.h>

struct ring_folder {
    char path[PATH_MAX];
    int fd; /* which holds its lock */
};

/* Makes one, in memory if there is room, and removes what recorders have left behind that were
 * killed. 0 or negative errno. */
int ring_folder_make(struct ring_folder *folder);

/* Removes it with all that is in it. */
void ring_folder_remove(struct ring_folder *folder);

#endif
