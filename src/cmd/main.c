/* pitviper: the command line. A command is a row of the table below, a file cmd_NAME.c that owns
 * its options, a manual page docs/man/pitviper-NAME.1.scd and a test. Only this layer prints errors
 * or decides on exit statuses. */
#include "base/text.h"
#include "cmd/command.h"

#include <errno.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct command *const commands[] = {&cmd_record, &cmd_report, &cmd_view,   &cmd_export,
                                          &cmd_run,    &cmd_doctor, &cmd_inject, &cmd_inspect,
                                          &cmd_help,   NULL};

void command_error(const struct command *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *message;
    int length = vasprintf(&message, format, arguments);
    va_end(arguments);
    fprintf(stderr, "pitviper%s%s: ", command ? " " : "", command ? command->name : "");
    if (length >= 0) {
        text_print(stderr, message, (size_t)length, 0);
        free(message);
    }
    fputc('\n', stderr);
}

const struct command *command_find(const char *name)
{
    enum { MOST_COMMANDS = sizeof commands / sizeof *commands };
    static const char *const global_options[] = {"--help", "--version"};
    const char *names[MOST_COMMANDS];
    size_t count = 0;
    for (; commands[count]; count++) {
        names[count] = commands[count]->name;
        if (strcmp(name, names[count]) == 0)
            return commands[count];
    }
    bool is_option = name[0] == '-';
    const char *kind = is_option ? "option" : "command";
    const char *nearest =
        is_option ? text_nearest(name, global_options, 2) : text_nearest(name, names, count);
    if (nearest)
        command_error(NULL, "unknown %s '%s'; did you mean 'pitviper %s'?", kind, name, nearest);
    else
        command_error(NULL, "unknown %s '%s'; 'pitviper help' lists the commands", kind, name);
    return NULL;
}

/* Output that could not be written is an error even when everything else went well. */
static int flush_output(int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    command_error(NULL, "the output could not be written: %s", strerror(errno));
    return STATUS_FAILED;
}

/* Tables grow by being made anew, twice as large. What they leave is used for the next one: getting
 * memory from the kernel page by page would be a fifth of the time of a report. */
static void keep_memory(void)
{
    mallopt(M_MMAP_THRESHOLD, 4 << 20);
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
    mallopt(M_TOP_PAD, 1 << 20);
}

int main(int argc, char **argv)
{
    keep_memory();
    if (argc < 2) {
        command_error(NULL, "which command? 'pitviper help' lists them");
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        puts("pitviper " PITVIPER_VERSION);
        return flush_output(STATUS_OK);
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    const struct command *command = command_find(name);
    if (!command)
        return STATUS_USAGE;
    return flush_output(command->run(command, argc - 1, argv + 1));
}
