/* Lines of source files, to be shown beside their numbers. */
#ifndef PITVIPER_REPORT_SOURCE_FILE_H
#define PITVIPER_REPORT_SOURCE_FILE_H

#include "base/file.h"

#include <stdint.h>

/* A zeroed one is valid and has no lines. */
struct source_file {
    struct file file;
};

struct source_line {
    const char *bytes; /* without indentation and end of line; borrowed */
    size_t length;     /* 0 when there is no such line */
};

/* A file that can't be read has no lines. */
void source_file_open(struct source_file *source, const char *path);
void source_file_done(struct source_file *source);

/* Numbers start at 1. */
struct source_line source_file_line(const struct source_file *source, uint32_t number);

#endif
