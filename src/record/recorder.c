/* Processes put their rings into a folder (ring_folder.h). A ring's file is removed from there as
 * soon as it is mapped, so the folder is empty most of the time. */
#include "record/recorder.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "elf/elf_debug.h"
#include "record/lost_pages.h"
#include "record/proc_search.h"
#include "record/ring_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    IDLE_MS = 5,
    BUSY_MS = 1,
    BUSY_FILL = 48,       /* of 256: a ring that was so full fills quickly */
    MOST_PROBLEMS = 1000, /* different ones */
};

static const uint64_t CHECK_NS = 20000000; /* how often processes are looked after */

struct recorder {
    struct ring_folder folder;
    char cache[PATH_MAX]; /* perf's folder for object files */
    struct recording recording;
    struct code_files files;
    struct process_context context;
    VECTOR(struct process *) processes;
    VECTOR(struct recorder_problem) problems;
    struct hashtable commands; /* pid -> hash of the last command: who was there before */
    size_t process_count, absent;
    size_t by_trigger[RECORDER_TRIGGERS];
    uint64_t check_ns;
    uint64_t bytes;
    int image_error;
    char image_path[PATH_MAX];
    bool is_finished;
};

/* --- open and close --------------------------------------------------------------------------- */

int recorder_open(const struct recording_settings *settings, struct recorder **ret_recorder,
                  const char **ret_failed)
{
    struct recorder *recorder = calloc(1, sizeof *recorder);
    *ret_failed = settings->path;
    if (!recorder)
        return -ENOMEM;
    struct recording_settings used = *settings;
    if (!used.cache && elf_debug_default_cache(recorder->cache, sizeof recorder->cache))
        used.cache = recorder->cache;
    int error = process_room_init(&recorder->context.room);
    if (error == 0) {
        *ret_failed = "a folder for shared memory";
        error = ring_folder_make(&recorder->folder);
    }
    if (error == 0) {
        *ret_failed = settings->path;
        error = recording_open(&recorder->recording, &used);
        if (error < 0)
            ring_folder_remove(&recorder->folder);
    }
    if (error < 0) {
        process_room_done(&recorder->context.room);
        free(recorder);
        return error;
    }
    lost_pages_are_zeros();
    code_files_init(&recorder->files, used.cache);
    recorder->context.recording = &recorder->recording;
    recorder->context.files = &recorder->files;
    *ret_recorder = recorder;
    return 0;
}

void recorder_discard(struct recorder *recorder)
{
    recorder_finish(recorder);
    recording_file_remove(&recorder->recording.file);
    recorder_close(recorder);
}

void recorder_close(struct recorder *recorder)
{
    if (!recorder)
        return;
    if (!recorder->is_finished)
        recorder_finish(recorder);
    process_room_done(&recorder->context.room);
    programs_done(&recorder->context.programs);
    code_files_done(&recorder->files);
    vector_done(&recorder->processes);
    vector_done(&recorder->problems);
    hashtable_done(&recorder->commands);
    free(recorder);
}

const char *recorder_folder(const struct recorder *recorder)
{
    return recorder->folder.path;
}

const char *recorder_keep_old(struct recorder *recorder)
{
    struct recording_file *file = &recorder->recording.file;
    return recording_file_keep_old(file) < 0 ? file->aside : NULL;
}

int recorder_error(const struct recorder *recorder)
{
    return recorder->recording.error;
}

/* --- processes come --------------------------------------------------------------------------- */

static uint64_t command_key(const char *command)
{
    return hash_bytes(command, strlen(command)) >> 1;
}

/* Tells readers of a process: where it comes from, and what it is. */
static void announce(struct recorder *recorder, struct process *process)
{
    struct recording_task task = {
        .pid = process->pid, .tid = process->pid, .time_ns = process->ring.header->start_ns};
    uint64_t key = command_key(process->command), before, parent;
    bool was_there = hashtable_get(&recorder->commands, hash_u64((uint32_t)process->pid), &before);
    bool has_parent =
        hashtable_get(&recorder->commands, hash_u64((uint32_t)process->parent_pid), &parent);
    if (!was_there && has_parent)
        recording_fork(&recorder->recording, task, process->parent_pid);
    recording_comm(&recorder->recording, task, process->command,
                   was_there || (has_parent && parent != key));
    hashtable_set(&recorder->commands, hash_u64((uint32_t)process->pid), key);
}

/* A process has been other programs before, or another one since: their rings are found in any
 * order, since the number of one that was found is free again. */
static void note_succession(struct recorder *recorder, struct process *process)
{
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct process *other = recorder->processes.items[i];
        if (other->pid != process->pid)
            continue;
        bool is_later = process->ring.header->start_ns >= other->ring.header->start_ns;
        (is_later ? other : process)->has_successor = true;
    }
}

static int add_process(struct recorder *recorder, const struct sample_ring *ring)
{
    struct process *process = NULL;
    if (vector_reserve(&recorder->processes, recorder->processes.count + 1) < 0 ||
        process_open(&recorder->context, ring, &process) < 0 || !process)
        return -ENOMEM;
    note_succession(recorder, process);
    announce(recorder, process);
    recorder->process_count++;
    return vector_push(&recorder->processes, process);
}

static bool ends_in(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length > suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static bool is_absent_ring(const char *name)
{
    return ends_in(name, SAMPLE_RING_ABSENT_SUFFIX);
}

/* Rings of one process come in the order of their numbers, which is that of its programs, mostly.
 */
static int by_number(const struct dirent **left, const struct dirent **right)
{
    return strverscmp((*left)->d_name, (*right)->d_name);
}

static int only_rings(const struct dirent *entry)
{
    return ends_in(entry->d_name, SAMPLE_RING_SUFFIX) || is_absent_ring(entry->d_name);
}

/* Whether it can be tried again: it is not ready, or there are too many open files. */
static bool is_passing(int error)
{
    return error == -EAGAIN || error == -EMFILE || error == -ENFILE;
}

/* 0, or a negative errno. */
static int take_ring(struct recorder *recorder, const char *path)
{
    struct sample_ring ring;
    if (is_absent_ring(path)) {
        recorder->absent++;
        return 0;
    }
    int error = sample_ring_open(&ring, path);
    if (error == 0 && add_process(recorder, &ring) < 0)
        sample_ring_close(&ring);
    return error;
}

static void find_rings(struct recorder *recorder)
{
    struct dirent **entries;
    int count = scandir(recorder->folder.path, &entries, only_rings, by_number);
    for (int i = 0; i < count; i++) {
        char path[PATH_MAX];
        int written =
            snprintf(path, sizeof path, "%s/%s", recorder->folder.path, entries[i]->d_name);
        free(entries[i]);
        if (written < (int)sizeof path && !is_passing(take_ring(recorder, path)))
            unlink(path);
    }
    if (count >= 0)
        free(entries);
}

/* --- processes go ----------------------------------------------------------------------------- */

static void note_problem(struct recorder *recorder, const struct process *process)
{
    struct recorder_problem problem = {.count = 1};
    memcpy(problem.problem, process->ring.header->problem, sizeof problem.problem - 1);
    memcpy(problem.command, process->command, sizeof problem.command - 1);
    if (!problem.problem[0])
        return;
    for (size_t i = 0; i < recorder->problems.count; i++) {
        struct recorder_problem *known = &recorder->problems.items[i];
        if (strcmp(known->problem, problem.problem) == 0) {
            known->count++;
            return;
        }
    }
    if (recorder->problems.count < MOST_PROBLEMS)
        (void)vector_push(&recorder->problems, problem);
}

static uint32_t trigger_of(const struct process *process)
{
    uint32_t trigger = process->ring.header->trigger;
    return trigger < RECORDER_TRIGGERS ? trigger : SAMPLE_TRIGGER_NONE;
}

static void end_process(struct recorder *recorder, struct process *process, bool is_gone)
{
    struct recording_task task = {
        .pid = process->pid, .tid = process->pid, .time_ns = process->newest_ns + 1};
    recorder->by_trigger[trigger_of(process)]++;
    note_problem(recorder, process);
    if (process->lost)
        recording_lost(&recorder->recording, task, process->lost);
    if (is_gone && !process->has_successor)
        recording_exit(&recorder->recording, task);
    if (!is_gone)
        atomic_store(&process->ring.header->is_closed, 1);
    process_close(process);
}

static void look_after_processes(struct recorder *recorder)
{
    size_t kept = 0;
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct process *process = recorder->processes.items[i];
        if (process_has_ended(process))
            end_process(recorder, process, true);
        else
            recorder->processes.items[kept++] = process;
    }
    recorder->processes.count = kept;
}

int recorder_step(struct recorder *recorder)
{
    uint64_t now = recorder->context.now_ns = clock_ns(CLOCK_MONOTONIC);
    unsigned fill = 0;
    find_rings(recorder);
    for (size_t i = 0; i < recorder->processes.count; i++) {
        struct process *process = recorder->processes.items[i];
        unsigned each = process_drain(process);
        fill = each > fill ? each : fill;
        recorder->recording.triggers |= 1u << trigger_of(process);
    }
    if (now - recorder->check_ns >= CHECK_NS) {
        recorder->check_ns = now;
        look_after_processes(recorder);
    }
    recording_tick(&recorder->recording, now);
    return fill >= BUSY_FILL ? BUSY_MS : IDLE_MS;
}

struct recorder_summary recorder_summary(const struct recorder *recorder)
{
    struct recorder_summary summary = {.counts = recorder->context.counts,
                                       .processes = recorder->process_count,
                                       .running = recorder->processes.count,
                                       .absent = recorder->absent,
                                       .problems = recorder->problems.items,
                                       .problem_count = recorder->problems.count,
                                       .missing = recorder->context.programs.missing.items,
                                       .missing_count = recorder->context.programs.missing.count,
                                       .is_short = recorder->recording.error != 0,
                                       .bytes = recorder->bytes,
                                       .image_error = recorder->image_error};
    memcpy(summary.by_trigger, recorder->by_trigger, sizeof summary.by_trigger);
    memcpy(summary.image_path, recorder->image_path, sizeof summary.image_path);
    return summary;
}

static bool is_unseen(void *context, int32_t pid)
{
    return !recorder_has_seen(context, pid);
}

bool recorder_expects_more(const struct recorder *recorder)
{
    char entry[PATH_MAX + sizeof SAMPLE_RING_FOLDER];
    snprintf(entry, sizeof entry, SAMPLE_RING_FOLDER "=%s", recorder->folder.path);
    return proc_search_environment(entry, is_unseen, (void *)recorder);
}

bool recorder_has_seen(const struct recorder *recorder, int32_t pid)
{
    uint64_t command;
    return hashtable_get(&recorder->commands, hash_u64((uint32_t)pid), &command);
}

int recorder_finish(struct recorder *recorder)
{
    recorder_step(recorder);
    look_after_processes(recorder);
    for (size_t i = 0; i < recorder->processes.count; i++)
        end_process(recorder, recorder->processes.items[i], false);
    recorder->processes.count = 0;
    recorder->is_finished = true;
    programs_finish(&recorder->context.programs);
    memcpy(recorder->image_path, recorder->recording.functions.path, sizeof recorder->image_path);
    ring_folder_remove(&recorder->folder);
    return recording_finish(&recorder->recording, &recorder->bytes, &recorder->image_error);
}
