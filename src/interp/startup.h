/* What the command line and the environment of an interpreter ask for when it starts. */
#ifndef PITVIPER_INTERP_STARTUP_H
#define PITVIPER_INTERP_STARTUP_H

/* Reads -X options and the environment, puts the functions of sys in their place where this version
 * lacks them, and switches the trampolines on when asked to. What goes wrong is one line on
 * standard error. Needs the GIL; leaves no exception. */
void startup_run(void);

#endif
