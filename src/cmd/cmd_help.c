/* pitviper help [COMMAND] */
#include "cmd/command.h"

#include <stdio.h>

static void print_overview(void)
{
    puts("pitviper shows where a Python program spends its time: Python functions and lines,\n"
         "C code and the kernel in one stack.\n\n"
         "usage: pitviper COMMAND [options] [arguments]\n\n"
         "commands:");
    for (const struct command *const *command = commands; *command; command++)
        printf("  %-10s %s\n", (*command)->name, (*command)->summary);
    puts("\n'pitviper help COMMAND' explains one; 'pitviper --version' prints the version.");
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options;
    options_init(&options, self, argc, argv);
    int option = options_next(&options);
    if (option != OPTIONS_END)
        return option == OPTIONS_HELP ? STATUS_OK : STATUS_USAGE;
    char **names;
    int count = options_rest(&options, &names);
    if (count > 1) {
        command_error(self, "takes one command at most");
        return STATUS_USAGE;
    }
    if (!count) {
        print_overview();
        return STATUS_OK;
    }
    const struct command *command = command_find(names[0]);
    if (!command)
        return STATUS_USAGE;
    options_help(stdout, command);
    return STATUS_OK;
}

const struct command cmd_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "explain a command, or list them all",
    .details = "Explains COMMAND, or lists all commands.\n",
    .options = (const struct option_spec[]){{0}},
    .run = run,
};
