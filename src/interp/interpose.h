/* The real functions behind names that interp/interpose.c has taken. */
#ifndef PITVIPER_INTERP_INTERPOSE_H
#define PITVIPER_INTERP_INTERPOSE_H

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

/* A function of ours that stands in front of another one. */
#define INTERPOSE_EXPORT __attribute__((visibility("default")))

/* A function that a name stands for without us, and the pointer for it. */
struct interpose_name {
    const char *name;
    void *place;
};

/* Finds all of them, if the last is not there yet. When we are loaded, since some may be called in
 * signal handlers and after fork, where looking for a function may wait for ever; or at the first
 * call, if another object's start is earlier. One that the C library does not have stays NULL. */
void interpose_find(const struct interpose_name *names, size_t count);

int interpose_sigaction(int signal, const struct sigaction *action, struct sigaction *old);
int interpose_sigmask(int how, const sigset_t *set, sigset_t *old);

int interpose_sigaltstack(const stack_t *stack, stack_t *old);

/* Without our signal. */
int interpose_sigtimedwait(const sigset_t *set, siginfo_t *ret_info,
                           const struct timespec *timeout);

/* Which ends with any signal, and blocks none. */
int interpose_ppoll(struct pollfd *descriptors, nfds_t count, const struct timespec *limit);

#endif
