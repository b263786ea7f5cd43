/* A whole file, mapped instead of copied: for files that may be larger than memory.
 *
 * The length is that at mapping_open. If somebody truncates the file afterwards, reading what is
 * gone ends in SIGBUS: use it only for files whose writers do not do that, otherwise file_read. */
#ifndef PITVIPER_BASE_MAPPING_H
#define PITVIPER_BASE_MAPPING_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed one is valid and empty. */
struct mapping {
    const uint8_t *data; /* never NULL after a successful mapping_open */
    size_t length;
};

/* Maps a regular file. A pipe is read to its end into an unlinked temporary file, which is mapped
 * then; "-" is standard input. 0; -EISDIR for a folder; -ENODEV for other things that are not
 * files; otherwise the negative errno. */
int mapping_open(const char *path, struct mapping *ret_mapping);

/* Gives back the memory that the file's pages take. What is touched again is read again. */
void mapping_forget(const struct mapping *mapping);

void mapping_done(struct mapping *mapping);

#endif
