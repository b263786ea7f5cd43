/* The file that a recording is written to, and what was there before.
 *
 *     recording_file_open(&file, "perf.data")   makes it
 *     recording_file_keep_old(&file)            what was there is perf.data.old now
 *  or recording_file_remove(&file)              ... and perf.data again
 *
 * A link to a file stays: what it leads to is replaced, and the old one is kept beside that. */
#ifndef PITVIPER_RECORD_RECORDING_FILE_H
#define PITVIPER_RECORD_RECORDING_FILE_H

#include <limits.h>

struct recording_file {
    char path[PATH_MAX];  /* of the file itself, behind all links */
    char aside[PATH_MAX]; /* where the old one is; empty: there was none, or it has its name */
    int fd;
};

/* NULL, or a static text: why a recording can't be there, and what to do. Changes nothing. */
const char *recording_file_refusal(const char *path);

/* Creates the file; one that is there is set aside. 0 or a negative errno; then nothing has
 * changed. -EINVAL: recording_file_refusal tells why. */
int recording_file_open(struct recording_file *file, const char *path);

/* Gives the old one its name, with `.old` behind it, as perf does. 0, or a negative errno; then it
 * stays where it is. */
int recording_file_keep_old(struct recording_file *file);

/* 0, or the negative errno of what could not be written. */
int recording_file_close(struct recording_file *file);

/* Removes the file, open or closed. The old one is where it was, if it has no other name yet. */
void recording_file_remove(struct recording_file *file);

#endif
