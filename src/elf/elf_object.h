/* An object file on disk, mapped read-only: a program, a shared library, a debug file.
 *
 * Three kinds of addresses meet here. A process maps a part of the file, which perf notes as
 * MMAP {avma, length, pgoff}; the file's own headers say which of its bytes belong to which svma:
 *
 *     avma  --(mapping: avma - start + pgoff)-->  fileoff  --(program headers)-->  svma
 *
 * Mapped instead of copied, because debug files are large and little of them is read. A file that
 * is cut short while it is open would kill the program; package managers replace files instead. */
#ifndef PITVIPER_ELF_ELF_OBJECT_H
#define PITVIPER_ELF_ELF_OBJECT_H

#include "elf/elf_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ELF_BUILD_ID_MOST = 64 };

struct elf_object {
    struct elf_file elf; /* over `data` */
    const uint8_t *data; /* the mapping, or borrowed */
    size_t length;
    bool is_mapped;
    char *path; /* as given; owned */
};

/* One mapping of a file in a process. */
struct elf_mapping {
    uint64_t start_avma;
    uint64_t length; /* in bytes */
    uint64_t pgoff;  /* fileoff of the first byte */
};

/* 0; -EBADMSG or -ENOTSUP as elf_file_open, -EISDIR, -ENODEV for other things that are not files,
 * otherwise the negative errno. On failure there is nothing to close. */
int elf_object_open(const char *path, struct elf_object **ret_object);

/* The same for bytes in memory (a copy of the vdso), which must outlive the object. */
int elf_object_open_memory(const char *path, const void *data, size_t length,
                           struct elf_object **ret_object);

/* NULL is fine. */
void elf_object_close(struct elf_object *object);

/* The svma of the byte at a place in the file, by the loadable segments; executable ones count
 * first where a page belongs to two of them. False when no segment has it. */
bool elf_object_svma_of(const struct elf_object *object, uint64_t fileoff, uint64_t *ret_svma);

/* The other direction. */
bool elf_object_fileoff_of(const struct elf_object *object, uint64_t svma, uint64_t *ret_fileoff);

/* avma - svma for everything in a mapping of this file (modulo 2^64). False when the mapping shows
 * no part of a loadable segment. */
bool elf_object_bias(const struct elf_object *object, const struct elf_mapping *mapping,
                     uint64_t *ret_bias);

/* Whether the object's build-id is this one. */
bool elf_object_has_build_id(const struct elf_object *object, const uint8_t *build_id,
                             size_t length);

#endif
