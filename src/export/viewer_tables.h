/* A profile as the viewer needs it: tables of what samples use, and nothing else.
 *
 * Smaller than the profile's own tables in two ways. What no sample needs is left out: most
 * functions of a symbol file never ran. And what differs only by something that the viewer does not
 * show is one: frames by their address, Python functions by their process. docs/viewer-format.md
 * says what the fields mean; numbers are indices of rows. */
#ifndef PITVIPER_EXPORT_VIEWER_TABLES_H
#define PITVIPER_EXPORT_VIEWER_TABLES_H

#include "export/viewer_tree.h"
#include "profile/profile.h"

struct viewer_module {
    uint32_t name; /* string */
    uint32_t path; /* string */
    uint8_t kind;  /* enum profile_module_kind */
};

struct viewer_function {
    uint32_t name; /* string */
    uint32_t module;
    uint32_t file; /* string */
    uint32_t line; /* 0: not known */
    uint8_t kind;  /* enum profile_function_kind */
    uint8_t place; /* enum export_place */
};

struct viewer_frame {
    uint32_t function;
    uint32_t file; /* string */
    uint32_t line; /* 0: not known */
    uint8_t inlined;
};

struct viewer_process {
    uint32_t pid;
    uint32_t name;   /* string */
    uint32_t parent; /* the nearest one that has samples, + 1; 0: none */
};

struct viewer_thread {
    uint32_t tid;
    uint32_t process;
    uint32_t name; /* string */
};

struct viewer_sample {
    uint64_t time_ns; /* since the first sample */
    uint64_t weight;
    uint32_t stack;
    uint32_t thread;
    uint16_t event;
    uint8_t end; /* enum profile_stack_end */
    uint8_t waiting;
};

struct viewer_source {
    uint32_t file; /* string: its path */
    uint32_t text; /* string */
};

struct viewer_tables {
    struct strings strings; /* valid UTF-8; 0 is the empty one */
    VECTOR(struct viewer_module) modules;
    VECTOR(struct viewer_function) functions;
    VECTOR(struct viewer_frame) frames;
    struct viewer_tree stacks;
    struct viewer_tree folded;
    VECTOR(uint32_t) folded_of; /* per stack: the folded one */
    VECTOR(struct viewer_process) processes;
    VECTOR(struct viewer_thread) threads;
    VECTOR(struct viewer_sample) samples; /* in the order of their times */
    VECTOR(struct viewer_source) sources; /* empty: viewer_sources_add fills it */
    uint64_t start_ns;                    /* of the first sample, in the recording's clock … */
    uint64_t end_ns;                      /* … and of the last */
};

/* 0 or -ENOMEM; on failure there is nothing to release. The profile is not needed behind it. */
int viewer_tables_init(struct viewer_tables *tables, const struct profile *profile);
void viewer_tables_done(struct viewer_tables *tables);

/* The number of a text that may hold any bytes: what is not UTF-8 becomes U+FFFD. 0 or -ENOMEM. */
int viewer_tables_text(struct viewer_tables *tables, const char *bytes, size_t length,
                       uint32_t *ret_string);

#endif
