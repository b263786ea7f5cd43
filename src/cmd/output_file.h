/* The file that a command writes: all of it, or none under its name, whatever happens meanwhile. */
#ifndef PITVIPER_CMD_OUTPUT_FILE_H
#define PITVIPER_CMD_OUTPUT_FILE_H

#include <stdio.h>

/* Writes `what` into `out`; 0 or a negative errno. */
typedef int output_file_content(FILE *out, const void *what);

/* A new file with that content, in the place of an old one; "-" is standard output. A program that
 * is interrupted meanwhile leaves nothing behind (call terminal_begin before). 0 or a negative
 * errno, the content's or that of the file: -ENOSPC, -EACCES, … */
int output_file_write(const char *path, output_file_content *content, const void *what);

#endif
