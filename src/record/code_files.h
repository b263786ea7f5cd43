/* The programs and libraries that the profiled processes have mapped: each is opened once, whoever
 * has it, and what unwinding needs is read from it when it is needed. */
#ifndef PITVIPER_RECORD_CODE_FILES_H
#define PITVIPER_RECORD_CODE_FILES_H

#include "base/arena.h"
#include "base/hashtable.h"
#include "record/maps_text.h"
#include "symbol/native.h"

struct code_file {
    char *path;
    uint64_t inode;
    struct native *native; /* NULL: can't be read; unwinding goes by frame pointers */
};

struct code_files {
    struct elf_debug_search search;
    struct arena arena;
    VECTOR(struct code_file *) items;
    struct hashtable by_path;
};

void code_files_init(struct code_files *files, const char *cache); /* `cache` may be NULL */
void code_files_done(struct code_files *files);

/* The file of a mapping of process `pid`. NULL when it is no file or memory is short. */
struct code_file *code_files_get(struct code_files *files, const struct maps_mapping *mapping,
                                 int32_t pid);

/* The function at an address, as the unwinding data have it: a part of a function that the compiler
 * put elsewhere is one of its own. False when there is none. */
bool code_file_function(struct code_file *file, uint64_t svma, struct cfi_range *ret_range);

/* The parts that the compiler made of a function besides the one of that name: `NAME.cold` and the
 * like. How many there are; up to `capacity` are in `ranges`. */
size_t code_file_parts(struct code_file *file, const char *name, struct cfi_range *ranges,
                       size_t capacity);

#endif
