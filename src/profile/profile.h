/* A recording as people think of it: functions, stacks, threads, samples. What reports, exports and
 * the viewer are made from.
 *
 *     struct profile_options options = profile_options_default();
 *     struct profile *profile;
 *     const char *problem;
 *     if (profile_load("perf.data", &options, &problem, &profile) < 0) ...
 *     for (size_t i = 0; i < profile->samples.count; i++) use(&profile->samples.items[i]);
 *     profile_free(profile);
 *
 * Everything is a table, and a number is an index into it:
 *
 *     sample --> thread --> process
 *        |-----> comm (a string)
 *        |-----> event
 *        `-----> stack --> parent stack ... --> PROFILE_ROOT
 *                  `-----> frame --> function --> module
 *
 * Each different thing is there once: 1,000,000 samples share some 200,000 stacks, these some
 * 10,000 frames, and these some 1,000 functions. So count by table, then resolve, not the reverse.
 *
 * Names, addresses and the order of frames are those of perf (6.1 to 7.x), so that a report can
 * equal perf's to the letter: see the single fields.
 *
 * A struct profile does not change after profile_load; any number of threads may read it. */
#ifndef PITVIPER_PROFILE_PROFILE_H
#define PITVIPER_PROFILE_PROFILE_H

#include "base/strings.h"
#include "base/vector.h"
#include "formats/perfdata.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As an index: there is none. */
#define PROFILE_NONE UINT32_MAX

/* The stack without frames: the parent of outermost frames. Always stacks.items[0]. */
#define PROFILE_ROOT 0u

enum profile_module_kind {
    PROFILE_MODULE_OTHER,
    PROFILE_MODULE_PYTHON,      /* code made for Python functions: perf map, jitdump, images */
    PROFILE_MODULE_INTERPRETER, /* libpython3.13.so.1.0, python3.11: has the evaluator */
    PROFILE_MODULE_EXTENSION,   /* loaded by Python: *.cpython-313-x86_64-linux-gnu.so, abi3 */
    PROFILE_MODULE_LIBC,        /* libc, libm, libpthread, ld.so, vdso */
    PROFILE_MODULE_KERNEL,      /* with its modules */
    PROFILE_MODULE_KINDS
};

/* What perf calls a DSO. modules.items[0] is "[unknown]": addresses in no mapping. */
struct profile_module {
    uint32_t path; /* string: perf's long name. "/usr/lib/libc.so.6", "/tmp/perf-123.map" */
    uint32_t name; /* string: as reports show it. "libc.so.6", "[JIT] tid 123", "[kernel.kallsyms]",
                      "[vdso]", "[unknown]" */
    uint8_t kind;  /* enum profile_module_kind */
    bool has_symbols;      /* a symbol table was found */
    uint8_t build_id_size; /* in bytes; 0: not known */
    uint8_t build_id[20];
};

enum profile_function_kind {
    PROFILE_FUNCTION_UNRESOLVED, /* only an address is known: see profile_function.start */
    PROFILE_FUNCTION_NATIVE,
    PROFILE_FUNCTION_KERNEL,
    PROFILE_FUNCTION_PYTHON, /* its name begins with "py::" */
};

/* What a function does for the interpreter, by its name; for views that are about Python. */
enum profile_function_role {
    PROFILE_ROLE_NONE,
    PROFILE_ROLE_EVALUATOR, /* runs Python code: _PyEval_EvalFrameDefault and its parts */
    PROFILE_ROLE_CALL,      /* calls: _PyObject_Vectorcall, method_vectorcall, slot_tp_call, … */
    PROFILE_ROLE_START,     /* gets a program or a thread going: Py_RunMain, thread_run, … */
    PROFILE_ROLE_GC,        /* the garbage collector: gc_collect_main, deduce_unreachable, … */
};

struct profile_function {
    uint32_t name;   /* string, demangled; empty when unresolved */
    uint32_t module; /* never PROFILE_NONE */

    /* Where it starts, as perf counts (its reports order equal rows by it): offset in the module's
     * file; avma in the kernel and in perf maps. For unresolved ones this is the address itself in
     * the same way of counting, which a report shows in the place of a name as 0x%016lx; there is
     * one such function for each (module, address). */
    uint64_t start;
    uint64_t size; /* in bytes; 0 when unresolved */

    /* PROFILE_FUNCTION_PYTHON: "py::Class.method:/path/file.py" taken apart. Also `file` and `line`
     * of native functions where debug information tells. Strings; 0 (empty) when not known. */
    uint32_t python_name; /* "Class.method" */
    uint32_t file;
    uint32_t line; /* of the definition, or the first that is known; 0: not known */

    uint8_t kind;    /* enum profile_function_kind */
    uint8_t role;    /* enum profile_function_role */
    bool is_inlined; /* exists only inside of others: known from debug information */
};

/* A place in a function. Frames are different when function, address or line is. */
struct profile_frame {
    uint32_t function;

    /* The address as perf shows it: for callers the return address in chains that the kernel
     * recorded, the return address minus 1 in those unwound from a copy of the stack. Inlined
     * frames have the address of the frame that they are in. */
    uint64_t ip_avma;
    uint32_t file;   /* string, of the source line: 0 (empty) when not known */
    uint32_t line;   /* 0: not known */
    uint32_t offset; /* of the address in the function */
    bool is_inlined; /* its caller is the frame with the same address */
    bool is_call;    /* has the line of a call that was inlined; the next frame is the same with the
                        line of the address, for samples that are counted by it */
    bool is_kernel;  /* perf: [k], else [.] */
};

/* A stack is a frame on top of a stack. Parents come before their children in the table. */
struct profile_stack {
    uint32_t parent; /* the caller's; PROFILE_NONE for PROFILE_ROOT */
    uint32_t frame;  /* PROFILE_NONE for PROFILE_ROOT */
    uint32_t depth;  /* frames from the outermost on; 0 for PROFILE_ROOT */
};

/* One process: from its fork (or the start of the recording) to its exit. A pid that is used again
 * is another process; exec makes no other one. */
struct profile_process {
    int32_t pid;
    uint32_t parent;   /* process, or PROFILE_NONE */
    uint32_t comm;     /* string: the name that its main thread had last */
    uint64_t start_ns; /* 0: ran before the recording did */
    uint64_t end_ns;   /* 0: did not end in it */
    bool has_perf_map; /* names came from a perf map … */
    bool has_jitdump;  /* … from a jitdump */
};

struct profile_thread {
    int32_t tid;
    uint32_t process;
    uint32_t comm; /* string: the last name. Samples know the one at their time */
    uint64_t start_ns;
    uint64_t end_ns;
};

/* How a sample's stack ends: as the unwinder or our recorder says, else by the outermost name. */
enum profile_stack_end {
    PROFILE_STACK_COMPLETE,  /* at the outermost function (_start, clone3, …) */
    PROFILE_STACK_TRUNCATED, /* the copy of the stack, or the number of frames, was too small */
    PROFILE_STACK_BROKEN,    /* the callers could not be followed further */
    PROFILE_STACK_NONE,      /* no callers were recorded: the stack has one frame */
};

struct profile_sample {
    uint64_t time_ns; /* in the clock of the recording; 0 when it has no times */
    uint64_t period;  /* what the sample stands for: perf's percentages are sums of periods */
    uint32_t thread;
    uint32_t comm;  /* string: the thread's name at that time */
    uint32_t stack; /* innermost frame; its ancestors are the callers. PROFILE_ROOT: empty */

    /* Frame of the sampled address itself: perf's row for the sample. The innermost frame of
     * `stack` is mostly the same one, but kernels may leave it out of chains, and `stack` goes on
     * into inlined functions while this one does not. */
    uint32_t leaf;
    uint32_t cpu;   /* UINT32_MAX: not known */
    uint16_t event; /* index of events */
    char cpumode;   /* 'k' kernel, '.' user, 'H' hypervisor, 'g' guest kernel, 'u' guest user: what
                       perf prints in brackets */
    uint8_t end;    /* enum profile_stack_end */
    bool waiting;   /* the thread did not run: `pitviper record -e wall` */
};

struct profile_event {
    uint32_t name; /* string: "cpu-clock:u", … */
    uint32_t type; /* PERF_TYPE_… */
    uint64_t config;
    uint64_t frequency_hz; /* 0: by period … */
    uint64_t period;       /* … of this; 0: by frequency */
    uint64_t sample_type;  /* PERF_SAMPLE_… */
    uint64_t samples;      /* how many there are of it */
    uint64_t periods;      /* their sum: perf's "Event count (approx.)" */
    uint64_t lost_samples; /* LOST_SAMPLES records of it: perf's "Total Lost Samples" */
    bool has_callchains;   /* recorded with -g */
    bool has_user_stacks;  /* … with --call-graph dwarf */
};

/* How good the profile is. */
struct profile_losses {
    uint64_t samples;  /* in the table */
    uint64_t complete; /* by profile_sample.end; these four add up to `samples` */
    uint64_t truncated;
    uint64_t broken;
    uint64_t without_stack;
    uint64_t lost_samples;      /* the kernel says: LOST_SAMPLES */
    uint64_t lost_records;      /* … of any kind: LOST */
    uint64_t throttles;         /* times that the kernel stopped sampling for a while */
    uint64_t no_process;        /* samples of processes that no record names: shown as ":PID" */
    uint64_t frames;            /* of all samples */
    uint64_t unresolved_frames; /* of these, without a name */
    uint64_t kernel_hidden; /* kernel frames without a name because kallsyms shows no addresses */
    uint64_t
        jit_without_times; /* jitdumps whose clock is not the recording's: newest code counts */
};

struct profile {
    struct strings strings; /* 0 is the empty string */
    VECTOR(struct profile_event) events;
    VECTOR(struct profile_module) modules;
    VECTOR(struct profile_function) functions;
    VECTOR(struct profile_frame) frames;
    VECTOR(struct profile_stack) stacks;
    VECTOR(struct profile_process) processes;
    VECTOR(struct profile_thread) threads;
    VECTOR(struct profile_sample) samples; /* in the order of their times */
    struct profile_losses losses;
    struct damage damage;        /* what was unreadable in the recording */
    struct perfdata_stats stats; /* records by type */
    struct perfdata_info info;   /* the file as a whole. All it points to is a copy, except `ids`
                                    of events, `build_ids` and `private_data`, which are NULL */
    struct arena arena;          /* owns these copies */
};

/* Inlined functions need debug information, and time to read it: about 0.3 s for an interpreter. */
enum profile_inlines {
    PROFILE_INLINES_NONE,
    PROFILE_INLINES_ALL,     /* perf 7's reports */
    PROFILE_INLINES_UNWOUND, /* only in recordings with copies of the stack: perf 6.1's reports */
};

struct profile_options {
    const char *buildid_dir; /* perf's cache: NULL is ~/.debug */
    const char *debug_dir;   /* NULL is /usr/lib/debug */
    const char *kallsyms;    /* NULL is /proc/kallsyms */
    const char *tmp_dir;     /* where perf maps are; NULL is /tmp. For tests */
    uint32_t max_stack; /* frames of the kernel's chain, and again of unwound ones: 127 as perf */
    bool outermost;     /* of longer chains of the kernel the outermost frames, else the innermost:
                           perf takes those that it shows first */
    enum profile_inlines inlines; /* inlined functions as frames of their own */
    bool lines;                   /* source lines of frames: reads debug information */
    bool python_lines;            /* those of Python functions, where the recording has them */
    bool demangle;

    /* Called now and then with the bytes of the file done so far, of how many. Returning false ends
     * the loading with -ECANCELED. May be NULL. */
    bool (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

/* As perf does it: 127 frames, demangled, without lines and inlines. */
struct profile_options profile_options_default(void);

/* Reads a recording; "-" is standard input. 0; errors are those of perfdata_open, with a static
 * text in *ret_problem; -ENOMEM; -ECANCELED. Damage in the file, symbols that are missing, programs
 * that are gone are no errors: profile->losses and profile->damage tell. */
int profile_load(const char *path, const struct profile_options *options, const char **ret_problem,
                 struct profile **ret_profile);

void profile_free(struct profile *profile); /* NULL is fine */

/* What interrupted the program, as `pitviper record` has written it down: "perf events", …; empty
 * for recordings of others. As untrusted as the file. */
const char *profile_trigger(const struct profile *profile);

/* What is wrong with the recording, in a few words, into `text`; empty when nothing is. */
void profile_damage(const struct profile *profile, char *text, size_t bytes);

/* Text of a string's number: NUL-terminated, valid as long as the profile. */
static inline const char *profile_text(const struct profile *profile, uint32_t string)
{
    return strings_get(&profile->strings, string).bytes;
}

/* The function of a stack's innermost frame; not for PROFILE_ROOT. */
static inline const struct profile_function *profile_function_of(const struct profile *profile,
                                                                 uint32_t stack)
{
    uint32_t frame = profile->stacks.items[stack].frame;
    return &profile->functions.items[profile->frames.items[frame].function];
}

#endif
