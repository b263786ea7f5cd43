/* getopt_long does the parsing; its messages are replaced by ours: one line that names the nearest
 * option. */
#include "cmd/options.h"

#include "base/text.h"
#include "cmd/command.h"

#include <getopt.h>
#include <string.h>

void options_init(struct options *options, const struct command *command, int argc, char **argv)
{
    *options = (struct options){.command = command, .argc = argc, .argv = argv};
    optind = 0; /* glibc: start afresh */
    opterr = 0;
}

/* The name part of a long option as it was typed: between the dashes and a '='. */
static void print_unknown(const struct command *command, const char *typed)
{
    if (typed[0] != '-' || typed[1] != '-') {
        command_error(command, "unknown option '-%c'; see 'pitviper help %s'", optopt,
                      command->name);
        return;
    }
    const char *names[OPTIONS_MOST + 1];
    size_t count = 0;
    for (const struct option_spec *spec = command->options; spec->name; spec++)
        names[count++] = spec->name;
    names[count++] = "help";
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(typed + 2, "="), typed + 2);
    const char *nearest = text_nearest(name, names, count);
    if (nearest)
        command_error(command, "unknown option '--%s'; did you mean '--%s'?", name, nearest);
    else
        command_error(command, "unknown option '--%s'; see 'pitviper help %s'", name,
                      command->name);
}

static int argument_kind(const struct option_spec *spec)
{
    if (!spec->argument)
        return no_argument;
    return spec->argument[0] == '[' ? optional_argument : required_argument;
}

/* getopt takes optional arguments only where no space is before them; people put one there. */
static const char *optional_value(const struct options *options, int letter)
{
    if (optarg)
        return optarg;
    for (const struct option_spec *spec = options->command->options; spec->name; spec++)
        if (spec->letter == letter && argument_kind(spec) == optional_argument &&
            optind < options->argc && options->argv[optind][0] != '-')
            return options->argv[optind++];
    return NULL;
}

int options_next(struct options *options)
{
    struct option long_options[OPTIONS_MOST + 2] = {{0}};
    /* getopt stops at the first argument that is no option when the letters start with a plus. */
    char letters[4 * OPTIONS_MOST + 5] = "";
    snprintf(letters, sizeof letters, "%s", options->command->options_first ? "+:h" : ":h");
    size_t count = 0, used = strlen(letters);
    for (const struct option_spec *spec = options->command->options; spec->name; spec++) {
        int has_argument = argument_kind(spec);
        long_options[count++] =
            (struct option){.name = spec->name, .has_arg = has_argument, .val = spec->letter};
        if (spec->letter < OPTION_LONG_ONLY) {
            letters[used++] = (char)spec->letter;
            for (int colons = has_argument; colons > 0; colons--)
                letters[used++] = ':';
        }
    }
    long_options[count] = (struct option){.name = "help", .val = 'h'};

    int at = optind ? optind : 1;
    int letter = getopt_long(options->argc, options->argv, letters, long_options, NULL);
    options->value = optional_value(options, letter);
    switch (letter) {
    case 'h':
        options_help(stdout, options->command);
        return OPTIONS_HELP;
    case ':':
        command_error(options->command, "option '%s' needs an argument; see 'pitviper help %s'",
                      options->argv[optind - 1], options->command->name);
        return OPTIONS_WRONG;
    case '?':
        print_unknown(options->command, options->argv[optind > at ? optind - 1 : at]);
        return OPTIONS_WRONG;
    default:
        return letter;
    }
}

int options_rest(const struct options *options, char ***ret_arguments)
{
    *ret_arguments = options->argv + optind;
    return options->argc - optind;
}

void options_help(FILE *out, const struct command *command)
{
    fprintf(out, "usage: pitviper %s%s%s%s\n\n%s", command->name,
            command->options->name ? " [options]" : "", *command->arguments ? " " : "",
            command->arguments, command->details);
    fputs("\noptions:\n", out);
    for (const struct option_spec *spec = command->options; spec->name; spec++) {
        char form[64];
        char letter[8] = "    ";
        if (spec->letter < OPTION_LONG_ONLY)
            snprintf(letter, sizeof letter, "-%c, ", spec->letter);
        snprintf(form, sizeof form, "%s--%s%s%s", letter, spec->name, spec->argument ? " " : "",
                 spec->argument ? spec->argument : "");
        fprintf(out, "  %-24s %s\n", form, spec->help);
    }
    fprintf(out, "  %-24s %s\n", "-h, --help", "show this text");
}
