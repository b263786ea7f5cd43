/* A page of a file can be mapped twice: the last page of one segment is the first of the next when
 * the linker did not pad between them.
 *
 *     file      |....code....|data...|
 *     pages     |     |     |     |     |
 *     process   [ r-x           ]            the end of the code's last page shows data,
 *                            [ rw-     ]     the start of the data's first page shows code
 *
 * So a place in the file is looked for in the segments proper first, executable ones before others,
 * and only then in their pages. */
#include "elf/elf_object.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE_BYTES = 4096 };

int elf_object_open_memory(const char *path, const void *data, size_t length,
                           struct elf_object **ret_object)
{
    struct elf_object *object = calloc(1, sizeof *object);
    char *copy = strdup(path);
    int error = object && copy ? 0 : -ENOMEM;
    if (!error)
        error = elf_file_open(&object->elf, copy, data, length);
    if (error < 0) {
        free(copy);
        free(object);
        return error;
    }
    object->data = data;
    object->length = length;
    object->path = copy;
    *ret_object = object;
    return 0;
}

int elf_object_open(const char *path, struct elf_object **ret_object)
{
    /* Not to wait for a writer when it is a pipe. */
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    if (!S_ISREG(status.st_mode))
        return -ENODEV;
    if (status.st_size < (off_t)sizeof(Elf64_Ehdr))
        return -EBADMSG;
    size_t length = (size_t)status.st_size;
    void *data = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    int error = elf_object_open_memory(path, data, length, ret_object);
    if (error < 0)
        munmap(data, length);
    else
        (*ret_object)->is_mapped = true;
    return error;
}

void elf_object_close(struct elf_object *object)
{
    if (!object)
        return;
    if (object->is_mapped)
        munmap((void *)(uintptr_t)object->data, object->length);
    free(object->path);
    free(object);
}

/* How well a segment fits a place in the file: 0 not at all, 1 by its pages only, and so on. */
static int fit(const Elf64_Phdr *segment, uint64_t fileoff)
{
    uint64_t end;
    if (segment->p_type != PT_LOAD || !segment->p_filesz ||
        !checked_add_u64(segment->p_offset, segment->p_filesz, &end))
        return 0;
    int executable = segment->p_flags & PF_X ? 1 : 0;
    if (fileoff >= segment->p_offset && fileoff < end)
        return 3 + executable;
    uint64_t first_page = segment->p_offset & ~(uint64_t)(PAGE_BYTES - 1);
    uint64_t last_page = (end - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    if (fileoff >= first_page && fileoff - first_page <= last_page - first_page + PAGE_BYTES - 1)
        return 1 + executable;
    return 0;
}

static bool best_segment(const struct elf_object *object, uint64_t fileoff, Elf64_Phdr *ret_segment)
{
    int best = 0;
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(&object->elf, i, &segment); i++) {
        int this_fit = fit(&segment, fileoff);
        if (this_fit > best) {
            best = this_fit;
            *ret_segment = segment;
        }
    }
    return best > 0;
}

bool elf_object_svma_of(const struct elf_object *object, uint64_t fileoff, uint64_t *ret_svma)
{
    Elf64_Phdr segment;
    if (!best_segment(object, fileoff, &segment))
        return false;
    *ret_svma = fileoff - segment.p_offset + segment.p_vaddr;
    return true;
}

bool elf_object_fileoff_of(const struct elf_object *object, uint64_t svma, uint64_t *ret_fileoff)
{
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(&object->elf, i, &segment); i++) {
        if (segment.p_type == PT_LOAD && svma >= segment.p_vaddr &&
            svma - segment.p_vaddr < segment.p_filesz) {
            *ret_fileoff = svma - segment.p_vaddr + segment.p_offset;
            return true;
        }
    }
    return false;
}

/* The executable segment that a mapping shows, else any. Not by the mapping's first byte: that may
 * belong to the segment before. */
bool elf_object_bias(const struct elf_object *object, const struct elf_mapping *mapping,
                     uint64_t *ret_bias)
{
    uint64_t mapping_end;
    if (!mapping->length || !checked_add_u64(mapping->pgoff, mapping->length, &mapping_end))
        return false;
    bool found = false;
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(&object->elf, i, &segment); i++) {
        uint64_t end;
        if (segment.p_type != PT_LOAD ||
            !checked_add_u64(segment.p_offset, segment.p_filesz, &end) ||
            segment.p_offset >= mapping_end || end <= mapping->pgoff)
            continue;
        if (found && !(segment.p_flags & PF_X))
            continue;
        *ret_bias = mapping->start_avma - mapping->pgoff + segment.p_offset - segment.p_vaddr;
        found = true;
        if (segment.p_flags & PF_X)
            break;
    }
    return found;
}

bool elf_object_has_build_id(const struct elf_object *object, const uint8_t *build_id,
                             size_t length)
{
    size_t own_length;
    const uint8_t *own = elf_file_build_id(&object->elf, &own_length);
    return own && length && own_length >= length && memcmp(own, build_id, length) == 0;
}
