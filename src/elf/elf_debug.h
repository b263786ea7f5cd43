/* Where the symbols of a stripped object are: separate debug files, and copies of objects that are
 * no longer where they were.
 *
 * Looked for, in this order; a file counts only when its build-id (or, for a debug link without
 * build-id, its checksum) is right:
 *
 *     BUILDID_DIR/.build-id/xx/yyy…/debug              perf's cache: --buildid-dir, else ~/.debug
 *     /usr/lib/debug/.build-id/xx/yyy….debug           distributions
 *     DIR/NAME, DIR/.debug/NAME, /usr/lib/debug/DIR/NAME   .gnu_debuglink */
#ifndef PITVIPER_ELF_ELF_DEBUG_H
#define PITVIPER_ELF_ELF_DEBUG_H

#include "elf/elf_object.h"

/* Where to look; zeroed: nowhere but in the system's folders. Strings are borrowed. */
struct elf_debug_search {
    const char *buildid_dir; /* perf's cache, or NULL for none: see elf_debug_default_cache */
    const char *debug_dir;   /* NULL: /usr/lib/debug */
};

/* Writes the folder that perf keeps its cache in: ~/.debug. False when there is no home. */
bool elf_debug_default_cache(char *path, size_t path_bytes);

/* The file with the debug information (.symtab, DWARF) of an object. 0, or -ENOENT when there is
 * none, or -ENOMEM. Objects that have a symbol table themselves need none; ask anyway for DWARF. */
int elf_debug_open(const struct elf_debug_search *search, const struct elf_object *object,
                   struct elf_object **ret_debug);

/* The object itself by its build-id, from perf's cache. For files that are gone or were replaced,
 * and for the vdso. 0, -ENOENT or -ENOMEM. */
int elf_debug_open_cached(const struct elf_debug_search *search, const uint8_t *build_id,
                          size_t length, struct elf_object **ret_object);

/* The checksum that .gnu_debuglink states (CRC-32 as in zlib). */
uint32_t elf_debug_crc(const void *data, size_t length);

#endif
