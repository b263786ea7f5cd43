/* A build-id names one build of a program: 20 bytes, in practice. Folders of debug files are sorted
 * by it, the first byte as a folder and the rest as the name:
 *
 *     ab cd ef …  ->  .build-id/ab/cdef…
 *
 * perf's own cache has the same names, but there they are links to folders that hold the object as
 * `elf`, its debug file as `debug`, a copy of the vdso as `vdso`. Before perf 4.8 they were links
 * to the object itself.
 *
 * Whatever is found is believed only when it says itself that it belongs to the object: a debug
 * file of another build would give wrong names silently. */
#include "elf/elf_debug.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "…/.build-id/ab/cdef…" below a folder; false when it does not fit. */
static bool build_id_path(char path[PATH_MAX], const char *folder, const uint8_t *id, size_t length)
{
    if (length < 2 || length > ELF_BUILD_ID_MOST)
        return false;
    int written = snprintf(path, PATH_MAX, "%s/.build-id/%02x/", folder, id[0]);
    for (size_t i = 1; i < length && written >= 0 && written < PATH_MAX - 3; i++)
        written += snprintf(path + written, 3, "%02x", id[i]);
    return written >= 0 && written < PATH_MAX - 16;
}

/* What an object must be, to be believed. */
struct identity {
    const uint8_t *build_id; /* or NULL: then the checksum counts */
    size_t length;
    uint32_t crc;
};

/* 0, -ENOENT for everything that is not the wanted file, or -ENOMEM. */
static int open_if(const char *path, const struct identity *wanted, struct elf_object **ret_object)
{
    struct elf_object *object;
    int error = elf_object_open(path, &object);
    if (error < 0)
        return error == -ENOMEM ? error : -ENOENT;
    bool right = wanted->build_id
                     ? elf_object_has_build_id(object, wanted->build_id, wanted->length)
                     : elf_debug_crc(object->data, object->length) == wanted->crc;
    if (!right) {
        elf_object_close(object);
        return -ENOENT;
    }
    *ret_object = object;
    return 0;
}

/* The first of several files below a path that is the wanted one; "" is the path itself. */
static int open_first(char path[PATH_MAX], const char *const *names, const struct identity *wanted,
                      struct elf_object **ret_object)
{
    int error = -ENOENT;
    size_t length = strlen(path);
    for (; *names && error == -ENOENT; names++) {
        if (length + strlen(*names) >= PATH_MAX)
            continue;
        strcpy(path + length, *names); /* NOLINT: the room was checked */
        error = open_if(path, wanted, ret_object);
    }
    return error;
}

static int open_by_build_id(const struct elf_debug_search *search, const struct identity *wanted,
                            struct elf_object **ret_debug)
{
    char path[PATH_MAX];
    int error = -ENOENT;
    if (search->buildid_dir &&
        build_id_path(path, search->buildid_dir, wanted->build_id, wanted->length))
        error = open_first(path, (const char *const[]){"/debug", NULL}, wanted, ret_debug);
    const char *folder = search->debug_dir ? search->debug_dir : "/usr/lib/debug";
    if (error == -ENOENT && build_id_path(path, folder, wanted->build_id, wanted->length))
        error = open_first(path, (const char *const[]){".debug", NULL}, wanted, ret_debug);
    return error;
}

/* .gnu_debuglink: a file name, zeros up to a multiple of 4, the checksum of that file. */
static const char *debug_link(const struct elf_object *object, uint32_t *ret_crc)
{
    Elf64_Shdr section;
    if (!elf_file_section_named(&object->elf, ".gnu_debuglink", &section))
        return NULL;
    struct cursor cursor = elf_file_content(&object->elf, &section);
    size_t length;
    const char *name = cursor_string(&cursor, &length);
    cursor_skip(&cursor, -(length + 1) & 3);
    *ret_crc = cursor_u32(&cursor);
    return cursor_ok(&cursor) && length && !strchr(name, '/') ? name : NULL;
}

static int open_by_link(const struct elf_debug_search *search, const struct elf_object *object,
                        struct identity *wanted, struct elf_object **ret_debug)
{
    const char *name = debug_link(object, &wanted->crc);
    const char *slash = strrchr(object->path, '/');
    if (!name || !slash)
        return -ENOENT;
    int folder_length = (int)(slash - object->path);
    const char *debug_dir = search->debug_dir ? search->debug_dir : "/usr/lib/debug";
    const char *before[] = {"", "", object->path[0] == '/' ? debug_dir : NULL};
    const char *between[] = {"", "/.debug", ""};
    int error = -ENOENT;
    for (size_t i = 0; i < 3 && error == -ENOENT; i++) {
        char path[PATH_MAX];
        int written = before[i] ? snprintf(path, sizeof path, "%s%.*s%s/%s", before[i],
                                           folder_length, object->path, between[i], name)
                                : -1;
        if (written > 0 && written < PATH_MAX)
            error = open_if(path, wanted, ret_debug);
    }
    return error;
}

int elf_debug_open(const struct elf_debug_search *search, const struct elf_object *object,
                   struct elf_object **ret_debug)
{
    struct identity wanted = {0};
    wanted.build_id = elf_file_build_id(&object->elf, &wanted.length);
    int error = wanted.build_id ? open_by_build_id(search, &wanted, ret_debug) : -ENOENT;
    if (error == -ENOENT)
        error = open_by_link(search, object, &wanted, ret_debug);
    return error;
}

int elf_debug_open_cached(const struct elf_debug_search *search, const uint8_t *build_id,
                          size_t length, struct elf_object **ret_object)
{
    static const char *const NAMES[] = {"/elf", "/vdso", "", NULL};
    struct identity wanted = {.build_id = build_id, .length = length};
    char path[PATH_MAX];
    if (!search->buildid_dir || !build_id_path(path, search->buildid_dir, build_id, length))
        return -ENOENT;
    return open_first(path, NAMES, &wanted, ret_object);
}

bool elf_debug_default_cache(char *path, size_t path_bytes)
{
    const char *home = getenv("HOME");
    int written = home && *home ? snprintf(path, path_bytes, "%s/.debug", home) : -1;
    return written > 0 && (size_t)written < path_bytes;
}

uint32_t elf_debug_crc(const void *data, size_t length)
{
    static uint32_t table[256];
    if (!table[1]) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++)
                value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
            table[i] = value;
        }
    }
    const uint8_t *bytes = data;
    uint32_t crc = ~0u;
    for (size_t i = 0; i < length; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xff];
    return ~crc;
}
