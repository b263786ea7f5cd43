/* The shared object that is loaded into the programs which pitviper starts. */
#ifndef PITVIPER_CMD_PRELOAD_H
#define PITVIPER_CMD_PRELOAD_H

#include "cmd/command.h"

#include <limits.h>
#include <stdbool.h>

/* Finds it: PITVIPER_LIBRARY, else beside this program or where it was installed. True and the
 * path, or false after the line that says what is missing. */
bool preload_find(const struct command *self, char ret_path[PATH_MAX]);

/* Puts it before whatever is in LD_PRELOAD already. False after the line that says why not. */
bool preload_set(const struct command *self, const char *library);

/* Puts something in front of a list in the environment. False when memory is short. */
bool preload_add(const char *name, const char *part);

#endif
