/* A file that appears under its name only when it is whole.
 *
 *     new_file_open(&file, path)
 *     new_file_write(&file, bytes, length) ...
 *     new_file_commit(&file)                   now it is there, in the place of an old one
 *     new_file_done(&file)                     without the commit: as if nothing had been
 *
 * Until then the bytes are in a file of another name in the same folder. A path that is there and
 * no regular file (a pipe, /dev/null) is written to directly, and so is "-", standard output. */
#ifndef PITVIPER_BASE_NEW_FILE_H
#define PITVIPER_BASE_NEW_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct new_file {
    int fd;          /* -1 when closed */
    char *path;      /* owned */
    char *temporary; /* owned; NULL when it is written directly */
};

/* 0 or a negative errno; on failure there is nothing to release. `mode` as for open. */
int new_file_open(struct new_file *file, const char *path, mode_t mode);

/* All of it, or a negative errno: -ENOSPC, ... */
int new_file_write(struct new_file *file, const void *bytes, size_t length);

/* Leaves so many zero bytes out, which takes no room on the disk. Not at the end of the file, and
 * only where it is not written directly. */
int new_file_skip(struct new_file *file, off_t length);

int new_file_commit(struct new_file *file);
void new_file_done(struct new_file *file);

#endif
