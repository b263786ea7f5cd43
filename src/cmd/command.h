/* A command of the program: one row in the table of main.c, one file that owns its options. */
#ifndef PITVIPER_CMD_COMMAND_H
#define PITVIPER_CMD_COMMAND_H

#include "cmd/options.h"

/* Exit statuses: 0 when all went well, 1 when something could not be done or a file is damaged, 2
 * when the command line is wrong. */
enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

struct command {
    const char *name;
    const char *arguments;             /* for the usage line, behind the options */
    const char *summary;               /* one line */
    const char *details;               /* a few lines for `pitviper help NAME`; ends in a newline */
    const struct option_spec *options; /* up to one without a name */
    bool options_first; /* options end at the first other argument: the rest is another command */

    /* argv[0] is the command's name. Returns an exit status. */
    int (*run)(const struct command *self, int argc, char **argv);
};

extern const struct command cmd_doctor;
extern const struct command cmd_export;
extern const struct command cmd_help;
extern const struct command cmd_inject;
extern const struct command cmd_inspect;
extern const struct command cmd_record;
extern const struct command cmd_report;
extern const struct command cmd_run;
extern const struct command cmd_view;

/* All commands, in the order of the help; NULL at the end. */
extern const struct command *const commands[];

/* The command of that name, or NULL after the line that says what is wrong was printed. */
const struct command *command_find(const char *name);

/* Prints one line on stderr, `pitviper NAME: ...`: file names can't make it two. NULL for the
 * program itself. */
void command_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
