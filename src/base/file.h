/* A whole file in memory. */
#ifndef PITVIPER_BASE_FILE_H
#define PITVIPER_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct file {
    uint8_t *data; /* owned; never NULL after a successful file_read */
    size_t length;
};

/* Reads a regular file or a pipe to its end; what a file grows by meanwhile may or may not be
 * there. 0; -EISDIR for a folder; -ENODEV for other things that are not files, such as /dev/zero;
 * otherwise the negative errno. Copies instead of mapping: another process may cut the file short
 * at any time, and a mapping would then kill this one. */
int file_read(const char *path, struct file *ret_file);

/* The same for places where anybody may have put anything (/tmp): only a regular file is read,
 * others are -ENOENT. Never waits for the other end of a pipe. */
int file_read_regular(const char *path, struct file *ret_file);

void file_done(struct file *file);

#endif
