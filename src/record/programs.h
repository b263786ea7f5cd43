/* Which programs were started by recorded ones, and which of them made no ring: static programs,
 * those of musl, setuid ones, and whatever else does not load what it is told to. */
#ifndef PITVIPER_RECORD_PROGRAMS_H
#define PITVIPER_RECORD_PROGRAMS_H

#include "base/arena.h"
#include "base/hashtable.h"
#include "base/vector.h"

/* A process: its number as it sees itself, which is that of its PID namespace. */
struct programs_process {
    uint32_t pid_namespace;
    int32_t pid;
};

/* Programs of one name. */
struct programs_missing {
    const char *name; /* owned by the arena */
    size_t count;
};

/* The last program of a process. */
struct programs_last {
    const char *name;     /* NULL: none was started, or it could not be */
    uint64_t started_ns;  /* that one */
    uint64_t recorded_ns; /* the last ring */
};

/* A zeroed one is valid and empty. */
struct programs {
    struct arena arena;
    struct hashtable index; /* of a process -> number in `last` */
    VECTOR(struct programs_last) last;
    VECTOR(struct programs_missing) missing;
};

void programs_done(struct programs *programs);

/* A process was about to become this program; without a name, it could not. */
void programs_start(struct programs *programs, struct programs_process process, uint64_t time_ns,
                    const char *name, size_t length);

/* A process has made a ring. */
void programs_record(struct programs *programs, struct programs_process process, uint64_t time_ns);

/* Fills `missing`, when all is over. */
void programs_finish(struct programs *programs);

#endif
