/* What a thread waits for, by the C functions that it is in: for recordings of wall-clock time. */
#ifndef PITVIPER_REPORT_WAITS_H
#define PITVIPER_REPORT_WAITS_H

#include "profile/profile.h"

enum wait_kind {
    WAIT_OTHER, /* not known; also what is no function that waits */
    WAIT_CPU,   /* it could run, but others do */
    WAIT_SLEEP,
    WAIT_LOCK,
    WAIT_GIL,
    WAIT_READY, /* select, poll, epoll: until something can be read or written */
    WAIT_NETWORK,
    WAIT_FILE,    /* files, pipes, terminals */
    WAIT_PROCESS, /* the end of another one */
    WAIT_KINDS
};

/* What a function waits for that is called by `caller` (NULL: nobody), in which the thread waits
 * for `outer`. */
enum wait_kind waits_in(const struct profile *profile, const struct profile_function *function,
                        const struct profile_function *caller, enum wait_kind outer);

/* Whether the signal that takes a sample can end such a wait: Python then repeats it, and needs the
 * GIL before it does. */
bool waits_end_by_signal(enum wait_kind kind);

/* Words for a kind: for people, and for programs. */
const char *waits_label(enum wait_kind kind);
const char *waits_word(enum wait_kind kind);

#endif
