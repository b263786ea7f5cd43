/* Records come in the order of time, so the state is that of the moment and a sample takes from it
 * what it needs: perf does the same.
 *
 *     FORK    a thread shares the process; a process starts with the regions and the name of its
 *             parent. Most children exec at once, so the regions are shared until one of the two
 *             changes them. (perf marks the forks that it made up for running processes as
 *             FORK_EXEC: their regions follow as records.)
 *     COMM    a new name; with exec the code that was generated is gone. The regions stay until
 *             others are mapped over them, as in perf: while the kernel sets up the new program,
 * the registers it samples are still those of the call to execve, in the old one EXIT    the tid is
 * free, and with the last thread the regions. Samples that still come belong to a thread without a
 * name
 *
 * Regions that were shared once stay until the end: who else has them is not counted. */
#include "profile/tasks.h"

#include <stdio.h>
#include <string.h>

#ifndef PERF_RECORD_MISC_FORK_EXEC
#define PERF_RECORD_MISC_FORK_EXEC (1 << 13)
#endif

/* More than any system has; then children start without regions. */
enum { COPIED_REGIONS_MOST = 1 << 24 };

void tasks_init(struct tasks *tasks, struct profile *profile)
{
    *tasks = (struct tasks){.profile = profile};
}

static void release_regions(struct regions *regions)
{
    if (!regions || regions->is_shared)
        return;
    regions_done(regions);
    free(regions);
}

static void release_unwinder(struct task *task)
{
    if (task->unwinder)
        unwinder_close(task->unwinder);
    free(task->unwind_context);
    task->unwinder = NULL;
    task->unwind_context = NULL;
}

void tasks_done(struct tasks *tasks)
{
    for (size_t i = 0; i < tasks->tasks.count; i++) {
        struct task *task = tasks->tasks.items[i];
        release_unwinder(task);
        release_regions(task->regions);
        vector_done(&task->dumps);
        free(task);
    }
    for (size_t i = 0; i < tasks->shared.count; i++) {
        tasks->shared.items[i]->is_shared = false;
        release_regions(tasks->shared.items[i]);
    }
    vector_done(&tasks->tasks);
    vector_done(&tasks->shared);
    hashtable_done(&tasks->by_pid);
    hashtable_done(&tasks->by_tid);
}

void tasks_renew(struct tasks *tasks, struct task *task)
{
    task->space = tasks->next_space++;
    if (task->unwinder)
        unwinder_forget(task->unwinder);
}

static int set_comm(struct tasks *tasks, uint32_t thread, uint32_t comm)
{
    struct profile_thread *entry = &tasks->profile->threads.items[thread];
    struct profile_process *process = &tasks->profile->processes.items[entry->process];
    entry->comm = comm;
    if (entry->tid == process->pid || !process->comm)
        process->comm = comm;
    return 0;
}

static int new_process(struct tasks *tasks, int32_t pid, uint64_t time_ns, struct task **ret_task)
{
    struct profile *profile = tasks->profile;
    struct profile_process process = {.pid = pid, .parent = PROFILE_NONE, .start_ns = time_ns};
    struct task *task = calloc(1, sizeof *task);
    if (!task)
        return -ENOMEM;
    task->regions = calloc(1, sizeof *task->regions);
    task->process = (uint32_t)profile->processes.count;
    task->map_module = PROFILE_NONE;
    tasks_renew(tasks, task);
    if (!task->regions || vector_reserve(&tasks->tasks, tasks->tasks.count + 1) < 0 ||
        hashtable_set(&tasks->by_pid, hash_u64((uint32_t)pid), task->process) < 0 ||
        vector_push(&profile->processes, process) < 0) {
        free(task->regions);
        free(task);
        return -ENOMEM;
    }
    vector_push(&tasks->tasks, task);
    *ret_task = task;
    return 0;
}

int tasks_of_pid(struct tasks *tasks, int32_t pid, struct task **ret_task)
{
    uint64_t process;
    if (!hashtable_get(&tasks->by_pid, hash_u64((uint32_t)pid), &process) ||
        process >= tasks->tasks.count)
        return new_process(tasks, pid, 0, ret_task);
    *ret_task = tasks->tasks.items[process];
    return 0;
}

static int new_thread(struct tasks *tasks, struct task *task, int32_t tid, uint64_t time_ns,
                      uint32_t *ret_thread)
{
    struct profile *profile = tasks->profile;
    struct profile_thread thread = {.tid = tid, .process = task->process, .start_ns = time_ns};
    if (profile->threads.count >= UINT32_MAX - 1 || vector_push(&profile->threads, thread) < 0)
        return -ENOMEM;
    *ret_thread = (uint32_t)(profile->threads.count - 1);
    task->live_threads++;
    return hashtable_set(&tasks->by_tid, hash_u64((uint32_t)tid), *ret_thread);
}

/* The thread, without a name if it is new. */
static int find_thread(struct tasks *tasks, int32_t pid, int32_t tid, uint32_t *ret_thread)
{
    uint64_t thread;
    if (hashtable_get(&tasks->by_tid, hash_u64((uint32_t)tid), &thread) &&
        thread < tasks->profile->threads.count) {
        uint32_t process = tasks->profile->threads.items[thread].process;
        *ret_thread = (uint32_t)thread;
        if (pid == -1 || tasks->profile->processes.items[process].pid == pid)
            return 0;
    }
    struct task *task;
    int error = tasks_of_pid(tasks, pid == -1 ? tid : pid, &task);
    return error < 0 ? error : new_thread(tasks, task, tid, 0, ret_thread);
}

int tasks_find(struct tasks *tasks, int32_t pid, int32_t tid, uint32_t *ret_thread)
{
    int error = find_thread(tasks, pid, tid, ret_thread);
    if (error < 0 || tasks->profile->threads.items[*ret_thread].comm)
        return error;
    char name[16];
    if (tid == 0)
        memcpy(name, "swapper", sizeof "swapper");
    else
        snprintf(name, sizeof name, ":%d", tid);
    uint32_t comm;
    error = strings_intern(&tasks->profile->strings, name, strlen(name), &comm);
    return error < 0 ? error : set_comm(tasks, *ret_thread, comm);
}

static int clear_regions(struct tasks *tasks, struct task *task)
{
    struct regions *empty = calloc(1, sizeof *empty);
    if (!empty)
        return -ENOMEM;
    release_regions(task->regions);
    task->regions = empty;
    task->dumps.count = 0;
    tasks_renew(tasks, task);
    return 0;
}

int tasks_comm(struct tasks *tasks, const struct perfdata_record *record)
{
    uint32_t thread, comm;
    int error = find_thread(tasks, record->comm.pid, record->comm.tid, &thread);
    if (error == 0)
        error = strings_intern(&tasks->profile->strings, record->comm.name,
                               record->comm.name_length, &comm);
    if (error == 0)
        error = set_comm(tasks, thread, comm);
    if (error == 0 && record->comm.is_exec) {
        struct task *task = tasks_of_thread(tasks, thread);
        task->dumps.count = 0;
        tasks_renew(tasks, task);
    }
    return error;
}

int tasks_change(struct tasks *tasks, struct task *task)
{
    if (!task->regions->is_shared)
        return 0;
    struct regions *own = calloc(1, sizeof *own);
    if (!own)
        return -ENOMEM;
    size_t count = task->regions->items.count;
    if (tasks->copied_regions + count <= COPIED_REGIONS_MOST &&
        regions_copy(own, task->regions) < 0) {
        free(own);
        return -ENOMEM;
    }
    tasks->copied_regions += own->items.count;
    task->regions = own;
    return 0;
}

/* The child starts with what the parent has. */
static int inherit(struct tasks *tasks, struct task *parent, struct task *child)
{
    if (!parent->regions->is_shared) {
        if (vector_push(&tasks->shared, parent->regions) < 0)
            return -ENOMEM;
        parent->regions->is_shared = true;
    }
    release_regions(child->regions);
    child->regions = parent->regions;
    child->dumps.count = 0;
    for (size_t i = 0; i < parent->dumps.count; i++)
        if (vector_push(&child->dumps, parent->dumps.items[i]) < 0)
            return -ENOMEM;
    return 0;
}

int tasks_fork(struct tasks *tasks, const struct perfdata_record *record)
{
    const struct perfdata_task *fork = &record->task;
    uint32_t parent_thread = 0, thread = 0;
    int error = find_thread(tasks, fork->parent_pid, fork->parent_tid, &parent_thread);
    if (error < 0)
        return error;
    struct task *parent = tasks_of_thread(tasks, parent_thread), *task = parent;
    if (fork->pid != fork->parent_pid) {
        error = new_process(tasks, fork->pid, record->time_ns, &task);
        if (error == 0)
            tasks->profile->processes.items[task->process].parent = parent->process;
        if (error == 0 && !(record->misc & PERF_RECORD_MISC_FORK_EXEC))
            error = inherit(tasks, parent, task);
    }
    if (error == 0)
        error = new_thread(tasks, task, fork->tid, record->time_ns, &thread);
    if (error != 0)
        return error;
    uint32_t comm = tasks->profile->threads.items[parent_thread].comm;
    return comm ? set_comm(tasks, thread, comm) : 0;
}

int tasks_exit(struct tasks *tasks, const struct perfdata_record *record)
{
    uint64_t number;
    if (!hashtable_get(&tasks->by_tid, hash_u64((uint32_t)record->task.tid), &number) ||
        number >= tasks->profile->threads.count)
        return 0;
    struct profile_thread *thread = &tasks->profile->threads.items[number];
    struct profile_process *process = &tasks->profile->processes.items[thread->process];
    if (process->pid != record->task.pid)
        return 0;
    thread->end_ns = record->time_ns;
    int error = hashtable_set(&tasks->by_tid, hash_u64((uint32_t)record->task.tid), PROFILE_NONE);
    struct task *task = tasks->tasks.items[thread->process];
    if (error < 0 || --task->live_threads)
        return error;
    process->end_ns = record->time_ns;
    release_unwinder(task);
    return clear_regions(tasks, task);
}
