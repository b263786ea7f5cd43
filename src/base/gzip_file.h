/* A FILE that packs what is written to it (gzip) into another one, as it goes. */
#ifndef PITVIPER_BASE_GZIP_FILE_H
#define PITVIPER_BASE_GZIP_FILE_H

#include <stdio.h>

/* NULL when memory is short. fclose writes the end; `out` stays open, the caller's, and knows of
 * write errors (ferror). */
FILE *gzip_file_open(FILE *out);

#endif
