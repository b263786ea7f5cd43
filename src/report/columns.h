/* The columns of the table: which there are, what makes two rows the same, what a cell says.
 *
 * A row of the table is one combination of the key columns' values. Some of them belong to samples
 * (the name of the thread), others to frames (function, module); the identities are numbers, so
 * that counting never compares texts. */
#ifndef PITVIPER_REPORT_COLUMNS_H
#define PITVIPER_REPORT_COLUMNS_H

#include "profile/profile.h"

/* What a cell is made from: where a row comes from. */
struct column_source {
    const struct profile *profile;
    uint32_t sample; /* the first one of the row */
    uint32_t frame;  /* one of the row's; PROFILE_NONE: no frame (an empty stack) */
    char level;      /* 'k', '.', …: what perf prints in brackets */
};

/* The text of a cell, in three parts; `text` borrows the profile. */
struct column_cell {
    char lead[40];
    const char *text;
    size_t length; /* of `text` */
    char tail[24];
};

struct column {
    const char *name;  /* for --sort */
    const char *alias; /* or NULL */
    const char *header;
    const char *filter; /* what perf calls it in the header when it is the same in all rows */
    bool pads;          /* also as the last column */

    /* One of these is set: the identity of a sample's or a frame's value. */
    uint64_t (*of_sample)(const struct profile *profile, const struct profile_sample *sample);
    uint64_t (*of_frame)(const struct profile *profile, uint32_t frame);

    void (*cell)(const struct column_source *source, struct column_cell *ret_cell);

    /* What the width of the column is taken from, in the place of `cell`: longer cells are cut to
     * it. NULL: `cell`. perf does that to the names of threads, see columns.c. */
    void (*measure)(const struct column_source *source, struct column_cell *ret_cell);

    /* < 0 when a comes first: among rows of equal numbers, and before numbers are looked at (NULL:
     * the same). */
    int (*compare)(const struct column_source *a, const struct column_source *b);
    int (*arrange)(const struct column_source *a, const struct column_source *b);
};

extern const struct column column_comm, column_dso, column_symbol;

/* By the name in --sort; NULL when there is none. */
const struct column *column_find(const char *name, size_t length);

/* All names, for messages: NULL at the end. */
extern const char *const column_names[];

/* In bytes, as perf counts. */
size_t column_cell_width(const struct column_cell *cell);

/* A function as reports name it: its name, "(inlined)" behind inlined ones. */
void column_symbol_cell(const struct profile *profile, uint32_t frame,
                        struct column_cell *ret_cell);

#endif
