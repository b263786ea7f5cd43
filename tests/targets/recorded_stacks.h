/* The stacks in a recording of `perf record --call-graph dwarf`, for comparing unwinders: registers
 * and stack copies of the process that has the most samples, and the files that it had mapped. */
#ifndef PITVIPER_TARGETS_RECORDED_STACKS_H
#define PITVIPER_TARGETS_RECORDED_STACKS_H

#include "base/vector.h"
#include "unwind/unwind.h"

struct recorded_module {
    const char *path; /* owned by the recording */
    struct elf_mapping mapping;
    struct elf_object *object; /* NULL: not a file */
    uint64_t bias;
    struct unwind_table table;
};

struct recorded_stacks {
    VECTOR(struct recorded_module) modules; /* in the order of mapping: later ones hide earlier */
    VECTOR(struct unwind_sample) samples;
    struct perfdata_reader *reader; /* the samples' stacks are its */
    int pid;
};

/* Ends the program with a message when the file can't be used: this is for tests. */
void recorded_stacks_read(struct recorded_stacks *stacks, const char *path);
void recorded_stacks_done(struct recorded_stacks *stacks);

/* For struct unwind_finder; the context is the recording. */
bool recorded_stacks_find(void *stacks, uint64_t avma, struct unwind_code *ret_code);

#endif
