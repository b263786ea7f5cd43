/* The Python functions of a recording: what processes tell of their code objects becomes code of
 * one made-up object file (formats/python_image.h), which perf finds by its build-id or its path.
 *
 * One for the whole recording: processes that were forked from each other, and those that run the
 * same program, have the same functions. */
#ifndef PITVIPER_RECORD_PYTHON_FUNCTIONS_H
#define PITVIPER_RECORD_PYTHON_FUNCTIONS_H

#include "base/arena.h"
#include "base/hashtable.h"
#include "formats/python_image.h"
#include "formats/python_lines.h"
#include "record/ring_record.h"

#include <limits.h>
#include <stdbool.h>

struct python_functions_item {
    const uint8_t *content; /* what tells it from others, see python_functions.c; of the arena */
    size_t content_bytes;
    struct python_lines lines;
    uint32_t in_image;
    bool is_hidden; /* not a function: left out of stacks */
};

struct python_functions {
    struct python_image image;
    struct arena arena;
    VECTOR(struct python_functions_item) items;
    struct hashtable by_content;
    VECTOR(uint8_t) scratch;
    uint8_t build_id[PYTHON_IMAGE_BUILD_ID_BYTES];
    char path[PATH_MAX]; /* of the object file */
    char link[PATH_MAX]; /* by which perf finds it; empty: none */
    size_t saved_count;  /* items in the file at `path` */
};

/* The number of the function that stands for those that nothing is known of. */
enum { PYTHON_FUNCTIONS_UNKNOWN = 0 };

/* The object file will be in a folder of its own in `cache`, perf's folder of object files; when
 * that is NULL or can't be written to, beside the recording at `output`. Nothing is written yet. 0
 * or a negative errno; on failure there is nothing to release. */
int python_functions_init(struct python_functions *functions, const char *cache,
                          const char *output);
void python_functions_done(struct python_functions *functions);

/* 0 and the function's number: the one it had before if it is known. -ENOMEM, -EFBIG. */
int python_functions_add(struct python_functions *functions, uint32_t python_minor,
                         const struct ring_record_code *code, uint32_t *ret_number);

/* The address that stands for an instruction of a function; 0 when it is not to be shown. */
uint64_t python_functions_avma(const struct python_functions *functions, uint32_t number,
                               uint32_t offset);

/* Whether any have been added since python_functions_save. */
static inline bool python_functions_are_new(const struct python_functions *functions)
{
    return functions->saved_count != functions->items.count;
}

/* Writes the object file if anything has been added since. 0 or a negative errno. */
int python_functions_save(struct python_functions *functions);

#endif
