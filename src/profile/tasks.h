/* The processes and threads of a recording as they come, change their names, and go. */
#ifndef PITVIPER_PROFILE_TASKS_H
#define PITVIPER_PROFILE_TASKS_H

#include "base/hashtable.h"
#include "profile/profile.h"
#include "profile/regions.h"
#include "symbol/jit_file.h"
#include "unwind/unwind.h"

/* What is known of a process only while the profile is loaded. */
struct task {
    uint32_t process; /* its number in the profile, and here */
    uint32_t live_threads;
    struct regions *regions; /* never NULL; may be shared, see tasks_change */

    /* A number for what stands at which address: it changes when the answers do, so that (number,
     * address) may be remembered for good. */
    uint32_t space;

    VECTOR(struct jit_dump *) dumps; /* newest last; borrowed */
    uint32_t map_module;             /* its perf map as a module; PROFILE_NONE: not known yet */
    struct unwinder *unwinder;       /* owned; NULL: not needed so far */
    void *unwind_context;            /* owned; of the unwinder's finder */
};

struct tasks {
    struct profile *profile;         /* borrowed: has the tables */
    VECTOR(struct task *) tasks;     /* per process of the profile; owned */
    VECTOR(struct regions *) shared; /* had by several processes once; owned */
    struct hashtable by_pid;         /* -> process, the newest of that pid */
    struct hashtable by_tid;         /* -> thread, likewise */
    uint32_t next_space;
    size_t copied_regions; /* by forks; limited, since files can claim any number of them */
};

void tasks_init(struct tasks *tasks, struct profile *profile);
void tasks_done(struct tasks *tasks);

/* The thread; made when no record has named it, as perf does: ":TID". 0 or -ENOMEM. */
int tasks_find(struct tasks *tasks, int32_t pid, int32_t tid, uint32_t *ret_thread);

/* COMM, FORK and EXIT. 0 or -ENOMEM. */
int tasks_comm(struct tasks *tasks, const struct perfdata_record *record);
int tasks_fork(struct tasks *tasks, const struct perfdata_record *record);
int tasks_exit(struct tasks *tasks, const struct perfdata_record *record);

/* The task of a pid; made if need be. 0 or -ENOMEM. */
int tasks_of_pid(struct tasks *tasks, int32_t pid, struct task **ret_task);

static inline struct task *tasks_of_thread(const struct tasks *tasks, uint32_t thread)
{
    return tasks->tasks.items[tasks->profile->threads.items[thread].process];
}

/* Makes the regions of a task its own, to be changed. 0 or -ENOMEM. */
int tasks_change(struct tasks *tasks, struct task *task);

/* Says that other things stand at known addresses now. */
void tasks_renew(struct tasks *tasks, struct task *task);

#endif
