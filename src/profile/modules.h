/* The modules of a profile while it is loaded: found by path and build-id, with their files. */
#ifndef PITVIPER_PROFILE_MODULES_H
#define PITVIPER_PROFILE_MODULES_H

#include "base/hashtable.h"
#include "formats/perfdata_images.h"
#include "profile/profile.h"
#include "symbol/jit_file.h"
#include "symbol/native.h"

struct modules_file {
    struct native *native; /* owned; NULL: not opened, or there is none */
    struct jit_map *map;   /* owned; of the perf map that this module is; likewise */
    bool is_tried;
};

struct modules {
    struct profile *profile;               /* borrowed: has the table */
    const struct elf_debug_search *search; /* borrowed */
    VECTOR(struct modules_file) files;     /* per module of the profile */
    struct hashtable by_path;
    struct perfdata_images images; /* that the recording has with it */
};

/* Adds "[unknown]" as module 0. 0 or -ENOMEM. modules_done is needed in any case. */
int modules_init(struct modules *modules, struct profile *profile,
                 const struct elf_debug_search *search);
void modules_done(struct modules *modules);

/* What is known of a module when it is first met. */
struct modules_wanted {
    const char *path;
    const char *name;        /* NULL: made from the path as perf does */
    const uint8_t *build_id; /* NULL: what the recording's table says, if anything */
    size_t build_id_size;
    enum profile_module_kind kind; /* PROFILE_MODULE_OTHER: judged by the path */
};

/* The module of that path and build-id; a new one if need be. 0 or -ENOMEM. */
int modules_find(struct modules *modules, const struct modules_wanted *wanted,
                 uint32_t *ret_module);

/* Notes build-ids by path, for modules that are found without one. 0 or -ENOMEM. */
int modules_note_build_id(struct modules *modules, const struct perfdata_build_id *build_id);

/* Takes the images that are in the recording's private data, which must outlive this: they come
 * before files on disk. 0 or -ENOMEM; damaged ones count as missing. */
int modules_take_images(struct modules *modules, const void *private_data, size_t length);

/* The file of a module, opened at the first call; NULL when there is none. `pid` is a process that
 * has it mapped: where to look if it lives in a container. */
struct native *modules_native(struct modules *modules, uint32_t module, int32_t pid);

/* The module that stands for a process's perf map, and so for its generated code: there whether the
 * file is or not. 0 or -ENOMEM. */
int modules_find_map(struct modules *modules, int32_t pid, uint32_t *ret_module);

/* The perf map of such a module, read at the first call from `dir`; NULL when there is none. */
struct jit_map *modules_map(struct modules *modules, uint32_t module, const char *dir);

#endif
