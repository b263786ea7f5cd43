/* The lines of an image of generated code. Part of elf_image.c. */
#ifndef PITVIPER_FORMATS_ELF_IMAGE_LINES_H
#define PITVIPER_FORMATS_ELF_IMAGE_LINES_H

#include "base/strings.h"
#include "base/vector.h"
#include "base/writer.h"
#include "formats/elf_image.h"

/* From `svma` on; ascending within a function. */
struct elf_image_row {
    uint64_t svma;
    uint32_t line;
    uint32_t file;     /* number in `files`, which starts at 1 as DWARF's does */
    uint32_t function; /* which of the source's */
};

struct elf_image_lines {
    struct strings files;
    VECTOR(struct elf_image_row) rows;
};

/* Collects the lines of all functions; those outside of their function are left out. `base_avma` is
 * the image's. 0 or -ENOMEM; on failure there is nothing to release. */
int elf_image_lines_init(struct elf_image_lines *lines, const struct elf_image_source *source,
                         uint64_t base_avma);
void elf_image_lines_done(struct elf_image_lines *lines);

void elf_image_encode_debug_line(struct writer *writer, const struct elf_image_lines *lines,
                                 const struct elf_image_source *source, uint64_t base_avma);

#endif
