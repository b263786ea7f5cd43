/* The environment of programs that a recorded one starts: they are recorded, too, even if they get
 * an environment of their own. */
#ifndef PITVIPER_INTERP_EXEC_ENVIRONMENT_H
#define PITVIPER_INTERP_EXEC_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

/* Keeps what this process was started with, for others; and takes out of the environment what the
 * program that started this one had not put there. Before main. */
void exec_environment_init(void);

/* How many bytes exec_environment_complete needs for this environment; 0: it stays as it is, as
 * that of a process that is not recorded does, unless it has what can't be loaded. */
size_t exec_environment_bytes(char *const envp[], bool is_recorded);

/* The environment with what is missing, or without what can't be loaded there, in `room`, for which
 * no memory is allocated: the caller may be the child of a vfork. `envp` itself when `room` is
 * NULL. */
char *const *exec_environment_complete(char *const envp[], void *room);

#endif
