/* A recording read for people: the progress line, and the lines about what is wrong with it. What
 * report, export and view have in common. */
#ifndef PITVIPER_CMD_LOAD_PROFILE_H
#define PITVIPER_CMD_LOAD_PROFILE_H

#include "cmd/command.h"
#include "cmd/options.h"
#include "profile/profile.h"

/* For views of whole stacks: with the lines of Python functions, and no limit of frames that
 * anybody meets (perf's 127 is for its table). */
struct profile_options load_profile_options(void);

/* Which recording: that of -i, which is in *path or NULL, or the one argument, or perf.data.
 * STATUS_OK, or STATUS_USAGE after the line that says what is wrong. */
int load_profile_choose(const struct options *options, const char **path);

/* Reads it, with a line of progress (call terminal_begin before). STATUS_OK, or STATUS_FAILED after
 * the line that says why was printed. */
int load_profile(const struct command *self, const char *path,
                 const struct profile_options *options, struct profile **ret_profile);

/* The line about what is damaged or missing in the recording, if anything, and the exit status that
 * follows. `done` is what happened to the rest: "reported", "exported". */
int load_profile_judge(const struct command *self, const char *path, const struct profile *profile,
                       const char *done);

/* The line for an error of reading, or of working with what was read. */
void load_profile_error(const struct command *self, const char *path, int error,
                        const char *problem);

#endif
