/* Where a Python program spends its time, on one page: the hottest Python functions, what runs
 * below them, and how good the recording is. */
#ifndef PITVIPER_REPORT_SUMMARY_H
#define PITVIPER_REPORT_SUMMARY_H

#include "profile/profile.h"
#include "report/waits.h"

#include <stdio.h>

/* A Python function. Equal names of the same file are one, in whatever process. */
struct summary_function {
    uint32_t function;      /* one of the profile's */
    uint64_t self_samples;  /* it is the innermost Python function */
    uint64_t self_weight;   /* their periods */
    uint64_t total_samples; /* it is in the stack */
    uint64_t total_weight;
    uint64_t waiting_samples; /* of these, the ones in which the thread was waiting */
    uint64_t waiting_weight;
    size_t first_line; /* of summary.lines */
    size_t line_count;
};

/* A line of a Python function that was being run. */
struct summary_line {
    uint32_t function; /* one of the profile's */
    uint32_t line;
    uint64_t samples;
    uint64_t weight;
};

/* A place where threads wait. */
struct summary_wait {
    enum wait_kind kind;
    uint32_t function; /* one of the profile's: the innermost Python function; or PROFILE_NONE */
    uint32_t line;     /* 0: not known */
    uint64_t samples;
    uint64_t weight;
};

enum summary_place_kind {
    SUMMARY_INTERPRETER, /* evaluator, built-in types and functions */
    SUMMARY_GC,          /* garbage collection, wherever it leads */
    SUMMARY_EXTENSION,   /* C extensions, each module by itself */
    SUMMARY_LIBC,
    SUMMARY_KERNEL,
    SUMMARY_LIBRARY, /* other modules, each by itself */
    SUMMARY_OUTSIDE, /* no Python function in the stack: start-up, other programs, lost callers */
    SUMMARY_PLACE_KINDS
};

/* Where the sampled code itself was. */
struct summary_place {
    enum summary_place_kind kind;
    uint32_t module; /* of the profile, for those that are by module; else PROFILE_NONE */
    uint64_t samples;
    uint64_t weight;
};

struct summary {
    const struct profile *profile;
    uint16_t event; /* the first that has samples: the page is about that one */
    uint64_t samples;
    uint64_t weight;                           /* what 100 % are */
    uint64_t processes;                        /* that have samples */
    VECTOR(struct summary_function) functions; /* by self, descending */
    VECTOR(struct summary_line) lines;         /* by function, then weight, descending */
    uint64_t waiting_samples;                  /* only in recordings of wall-clock time */
    uint64_t waiting_weight;
    VECTOR(struct summary_wait) waits;   /* by weight, descending */
    VECTOR(struct summary_place) places; /* by weight, descending; OUTSIDE last */
};

/* 0 or -ENOMEM; on failure there is nothing to release. The profile must outlive the summary. */
int summary_init(struct summary *summary, const struct profile *profile);
void summary_done(struct summary *summary);

/* Words for a kind of place: for people, and for programs. */
const char *summary_place_label(enum summary_place_kind kind);
const char *summary_place_word(enum summary_place_kind kind);

/* Stacks that reach the outermost function, in percent of the samples. */
double summary_complete_percent(const struct profile_losses *losses);

struct summary_style {
    bool colour;
    unsigned most_functions; /* shown; 0: all */
    unsigned most_lines;     /* of each function */
};

/* Write errors stay in the FILE. */
void summary_print_text(FILE *out, const struct summary *summary, struct summary_style style);
void summary_print_json(FILE *out, const struct summary *summary);

#endif
