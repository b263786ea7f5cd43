/* The program's own signal handlers. While its waits are interrupted (-e wall), one of ours stands
 * before each of them and counts it: interpose_waits.c has to know whether one has run. */
#ifndef PITVIPER_INTERP_PROGRAM_HANDLERS_H
#define PITVIPER_INTERP_PROGRAM_HANDLERS_H

typedef void (*program_handler)(int signal);

/* The one that ours stands before, if the kernel has ours for that signal. */
program_handler program_handlers_now(int signal);

/* What the kernel is to have for `handler`, which may be SIG_DFL or SIG_IGN. */
program_handler program_handlers_count(int signal, program_handler handler);

/* What the program is to hear of, for what the kernel had: `before`, of program_handlers_now, for
 * ours. */
program_handler program_handlers_name(program_handler had, program_handler before);

#endif
