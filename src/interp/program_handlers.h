/* The program's own signal handlers. One of ours stands before each of them, since our signal gets
 * in the way of others. */
#ifndef PITVIPER_INTERP_PROGRAM_HANDLERS_H
#define PITVIPER_INTERP_PROGRAM_HANDLERS_H

#include <signal.h>

typedef void (*program_handler)(int signal);

/* Those that ours stand before, if the kernel has ours for that signal. */
struct program_handlers {
    program_handler plain, with_info;
};

struct program_handlers program_handlers_now(int signal);

/* Makes of what the program wants what the kernel is to have. */
void program_handlers_put(int signal, struct sigaction *action);

/* Makes of what the kernel had what the program is to hear of: one of those before, for ours. */
void program_handlers_name(struct sigaction *had, struct program_handlers before);

#endif
