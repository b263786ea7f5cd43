/* The real functions behind names that interp/interpose.c has taken. */
#ifndef PITVIPER_INTERP_INTERPOSE_H
#define PITVIPER_INTERP_INTERPOSE_H

#include <signal.h>

int interpose_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int interpose_sigmask(int how, const sigset_t *set, sigset_t *old);

#endif
