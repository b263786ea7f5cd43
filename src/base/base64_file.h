/* A FILE that writes what is written to it as text of 64 characters (base64) into another one. */
#ifndef PITVIPER_BASE_BASE64_FILE_H
#define PITVIPER_BASE_BASE64_FILE_H

#include <stdio.h>

/* NULL when memory is short. fclose writes the end; `out` stays open, the caller's, and knows of
 * write errors (ferror). */
FILE *base64_file_open(FILE *out);

#endif
