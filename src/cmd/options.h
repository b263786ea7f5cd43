/* The options of a command, from a table that serves the parser and the help alike. */
#ifndef PITVIPER_CMD_OPTIONS_H
#define PITVIPER_CMD_OPTIONS_H

#include <stdbool.h>
#include <stdio.h>

struct command;

struct option_spec {
    const char *name;     /* without the dashes; NULL ends the table */
    int letter;           /* the short form, or a number above 255 when there is none */
    const char *argument; /* what the help calls its argument; NULL when it takes none. In brackets
                             it may be missing: then the next word is it unless it has a dash */
    const char *help;
};

enum { OPTION_LONG_ONLY = 256, OPTIONS_MOST = 32 };

struct options {
    const struct command *command;
    int argc;
    char **argv;
    const char *value; /* of the option last returned; NULL when it takes none */
};

/* What options_next returns beside letters. */
enum { OPTIONS_END = -1, OPTIONS_WRONG = -2, OPTIONS_HELP = -3 };

/* Options end at `--`; before that they may stand before and behind the other arguments, unless the
 * command says `options_first`. */
void options_init(struct options *options, const struct command *command, int argc, char **argv);

/* The next option's letter, or OPTIONS_END; OPTIONS_WRONG after the line that says what is wrong
 * was printed; OPTIONS_HELP after --help or -h printed the help. */
int options_next(struct options *options);

/* The arguments that are no options; valid after OPTIONS_END. */
int options_rest(const struct options *options, char ***ret_arguments);

/* The usage line, the details and the table. */
void options_help(FILE *out, const struct command *command);

#endif
