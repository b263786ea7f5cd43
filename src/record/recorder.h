/* Records every process that puts a ring into a folder, into one perf.data.
 *
 *     recorder_open(&settings, &recorder)          makes folder and file
 *     ... start the program with SAMPLE_RING_FOLDER = recorder_folder(recorder)
 *     while ...: recorder_step(recorder)           every few milliseconds
 *     recorder_finish(recorder, &summary)          completes the file, removes the folder
 *
 * Rings and what is in them may be anything; a process can end at any time, without warning. */
#ifndef PITVIPER_RECORD_RECORDER_H
#define PITVIPER_RECORD_RECORDER_H

#include "record/process.h"
#include "record/recording.h"

enum { RECORDER_TRIGGERS = SAMPLE_TRIGGER_WALL_TIMER + 1 };

/* Processes that could not be sampled, or not as wanted, for the same reason. */
struct recorder_problem {
    char command[64];  /* the first one's */
    char problem[128]; /* as the process says */
    size_t count;
};

/* What has been recorded, up to now. */
struct recorder_summary {
    struct process_counts counts;
    size_t processes; /* programs, so one more after an exec */
    size_t running;   /* of these, the ones that go on */
    size_t absent;    /* more processes: they may not have files as large as a ring */
    size_t by_trigger[RECORDER_TRIGGERS];
    const struct recorder_problem *problems;
    size_t problem_count;
    const struct programs_missing *missing; /* programs that made no ring; after recorder_finish */
    size_t missing_count;
    bool is_short;   /* not all of them are in the file: it could not be written to its end */
    uint64_t bytes;  /* of the file; after recorder_finish */
    int image_error; /* the object file with the Python functions could not be written */
    char image_path[PATH_MAX];
};

struct recorder;

/* 0; -EINVAL: recording_file_refusal tells why; -ENAMETOOLONG; the errno of what failed, and in
 * *ret_failed the path concerned. */
int recorder_open(const struct recording_settings *settings, struct recorder **ret_recorder,
                  const char **ret_failed);

/* Where the rings are to be. Valid until recorder_close. */
const char *recorder_folder(const struct recorder *recorder);

/* To be called when the program runs: the recording that was there gets `.old` behind its name.
 * NULL, or where it is when that was not possible. */
const char *recorder_keep_old(struct recorder *recorder);

/* Writes what has come. How long it is good to wait before the next step, in ms. */
int recorder_step(struct recorder *recorder);

/* 0, or the negative errno of the first failure to write. */
int recorder_error(const struct recorder *recorder);

/* Valid until the next call for this recorder. */
struct recorder_summary recorder_summary(const struct recorder *recorder);

/* Whether a process of that number has been recorded. */
bool recorder_has_seen(const struct recorder *recorder, int32_t pid);

/* Whether there is a process that should be recorded and has not made a ring, perhaps not yet. */
bool recorder_expects_more(const struct recorder *recorder);

/* A last step, and the end. No process is recorded any more. 0, or the negative errno of what
 * failed first; the file is as good as it can be. */
int recorder_finish(struct recorder *recorder);

/* Closes it as if nothing had been recorded: what the file has replaced is back. */
void recorder_discard(struct recorder *recorder);
void recorder_close(struct recorder *recorder); /* NULL is fine */

#endif
