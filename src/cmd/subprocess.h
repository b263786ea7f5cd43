/* Running another program to ask it something. */
#ifndef PITVIPER_CMD_SUBPROCESS_H
#define PITVIPER_CMD_SUBPROCESS_H

#include <stddef.h>

struct subprocess_output {
    char *text;    /* what it printed, NUL-terminated; release with free() */
    size_t length; /* without the NUL */
    int status;    /* its exit status, or 128 + the signal that ended it */
};

/* Runs argv[0], looked up in PATH, without input; collects its standard output, drops what it says
 * on standard error. 0, or -ENOENT and the like when it could not be started. */
int subprocess_ask(char *const argv[], struct subprocess_output *ret_output);

#endif
