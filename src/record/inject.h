/* pitviper inject: a recording in which generated code has become files.
 *
 * For each process of the recording that wrote a jitdump, ELF images of its code are written beside
 * the new recording, and records that map them are added to it; everything else is copied as it
 * stands. Any program that reads recordings of perf then shows the code by name. */
#ifndef PITVIPER_RECORD_INJECT_H
#define PITVIPER_RECORD_INJECT_H

#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct inject_request {
    const char *input;  /* path, or "-" for standard input */
    const char *output; /* path, or "-" for standard output: images go to the current folder */
    bool per_function;  /* an image for each function, named as perf does: jitted-PID-N.so */
};

/* Something that is not as it should be; what could be done without it was done. */
struct inject_note {
    char *path;          /* of the file that is meant; owned */
    const char *problem; /* static; for "PATH: PROBLEM" */
    int error;           /* negative errno that adds to it, or 0 */
    size_t count;        /* of what the problem speaks of, or 0 */
};

struct inject_result {
    size_t markers; /* processes that said they write a dump */
    size_t dumps;   /* that could be read */
    size_t functions;
    size_t images;
    size_t mappings; /* records added */
    VECTOR(struct inject_note) notes;

    /* Valid after a negative result. */
    const char *failed_path; /* of the request, or owned by the last note */
    const char *problem;     /* static; as in a note */
};

/* 0 when the output was written, whatever there is in `notes`; otherwise a negative errno, and
 * there is no output. Call inject_result_done in either case. */
int inject_run(const struct inject_request *request, struct inject_result *ret_result);
void inject_result_done(struct inject_result *result);

#endif
