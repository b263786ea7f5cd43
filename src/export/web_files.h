/* The viewer's own files (web/), which tools/embed.py puts into the program at build time. */
#ifndef PITVIPER_EXPORT_WEB_FILES_H
#define PITVIPER_EXPORT_WEB_FILES_H

#include <stddef.h>

struct web_file {
    const char *name; /* "index.html", "main.js"; NULL ends the table */
    const unsigned char *bytes;
    size_t length;
};

/* By name. */
extern const struct web_file web_files[];

#endif
