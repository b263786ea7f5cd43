/* The real functions behind names that interp/interpose.c has taken. */
#ifndef PITVIPER_INTERP_INTERPOSE_H
#define PITVIPER_INTERP_INTERPOSE_H

#include <signal.h>

/* Finds them; later calls do nothing. Before anything else, since some of the functions may be
 * called in signal handlers and after fork, where nothing can be looked for. */
void interpose_find(void);

int interpose_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int interpose_sigmask(int how, const sigset_t *set, sigset_t *old);

#endif
