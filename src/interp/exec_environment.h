/* The environment of programs that a recorded one starts: they are recorded, too, even if they get
 * an environment of their own. */
#ifndef PITVIPER_INTERP_EXEC_ENVIRONMENT_H
#define PITVIPER_INTERP_EXEC_ENVIRONMENT_H

#include <stddef.h>

/* Keeps what this process was started with, for others; and takes out of the environment what the
 * program that started this one had not put there. Before main. */
void exec_environment_init(void);

/* How many bytes exec_environment_complete needs for this environment; 0: nothing is missing, or it
 * can't be added. */
size_t exec_environment_bytes(char *const envp[]);

/* The environment with what is missing, in `room`, for which no memory is allocated: the caller may
 * be the child of a vfork. `envp` itself when `room` is NULL. */
char *const *exec_environment_complete(char *const envp[], void *room);

#endif
