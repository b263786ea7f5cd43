/* What `pitviper doctor` finds out, and how it says it. */
#ifndef PITVIPER_CMD_DOCTOR_H
#define PITVIPER_CMD_DOCTOR_H

#include "base/strings.h"
#include "cmd/perf_version.h"

#include <stdbool.h>

/* An interpreter, as it describes itself and as its binary shows. Texts are owned by the arena. */
struct doctor_python {
    const char *executable;     /* the real path of the running program */
    const char *binary;         /* the file with the evaluator: libpython or the program */
    const char *implementation; /* cpython, pypy, ... */
    const char *version;        /* 3.13.0 */
    const char *machine;        /* x86_64, ... */
    const char *optimisation;   /* the -O option it was built with, "" when not known */
    unsigned major, minor;
    bool has_trampoline; /* HAVE_PERF_TRAMPOLINE */
    bool flag_in_build;  /* no-omit-frame-pointer among the flags of the build */
    bool frame_pointers; /* what the machine code shows */
    bool frames_known;   /* whether it could be told */
    bool debug_build;
    bool free_threaded;
    bool jit_available;
};

/* Asks the interpreter `command`. 0, or negative after *ret_problem was set (static text). */
int doctor_ask_python(struct arena *arena, const char *command, struct doctor_python *ret_python,
                      const char **ret_problem);

/* Why pitviper can't put trampolines into this interpreter, or NULL when it can. */
const char *doctor_unsupported(const struct doctor_python *python);

/* The tools and permissions of the machine. */
struct doctor_machine {
    bool has_perf;
    char perf_path[64];
    char perf_text[64]; /* what it said of its version */
    struct perf_version perf;
    bool perf_version_known;
    bool has_samply;
    char samply_text[64];
    int paranoid; /* kernel.perf_event_paranoid; -2 when it can't be read */
    bool is_root;
};

void doctor_ask_machine(struct doctor_machine *ret_machine);

#endif
