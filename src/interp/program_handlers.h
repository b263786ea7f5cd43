/* The program's own signal handlers. While its waits are interrupted (-e wall), one of ours stands
 * before each of them and counts it: wait.c has to know whether one has run. */
#ifndef PITVIPER_INTERP_PROGRAM_HANDLERS_H
#define PITVIPER_INTERP_PROGRAM_HANDLERS_H

#include <stdbool.h>

typedef void (*program_handler)(int signal);

/* Those that ours stand before, if the kernel has ours for that signal. */
struct program_handlers {
    program_handler plain, with_info;
};

struct program_handlers program_handlers_now(int signal);

/* What the kernel is to have for `handler`, which may be SIG_DFL or SIG_IGN. */
program_handler program_handlers_count(int signal, program_handler handler, bool has_info);

/* What the program is to hear of, for what the kernel had: one of those before, for ours. */
program_handler program_handlers_name(program_handler had, struct program_handlers before);

#endif
