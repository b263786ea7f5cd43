/* ELF images for code that was made at run time, so that programs which only know object files find
 * its names, lines and unwinding data: a shared object in memory, made from a jitdump's records.
 *
 *     struct elf_image image;
 *     if (elf_image_make(&source, &image) < 0) ...
 *     write(fd, image.data, image.length);
 *     elf_image_done(&image);
 *
 * In the image, addresses equal file offsets, and code keeps its distances: what was at `avma` in
 * the process is at avma - image.base_avma. So any part of it is mapped there by a record
 * {start = avma, fileoff = avma - base_avma}. */
#ifndef PITVIPER_FORMATS_ELF_IMAGE_H
#define PITVIPER_FORMATS_ELF_IMAGE_H

#include "formats/jitdump_index.h"

#include <stddef.h>
#include <stdint.h>

enum { ELF_IMAGE_BUILD_ID_BYTES = 20, ELF_IMAGE_PAGE = 0x1000 };

/* From the first to the last byte of the code; distances in .eh_frame have 32 bits. */
enum { ELF_IMAGE_MOST_SPAN_BYTES = 1 << 30 };

/* A function of the image. Its name, bytes, lines and unwinding data are those of `code`; it stands
 * at `avma`, which is another address than code->load.code_avma when the code was moved. */
struct elf_image_function {
    uint64_t avma;
    const struct jitdump_code *code;
};

struct elf_image_source {
    const struct elf_image_function *functions; /* ascending, disjoint, none of size 0 */
    size_t count;                               /* at least 1 */
    uint32_t elf_machine;                       /* EM_X86_64, ... */
    /* Where in the process nothing was ever mapped: at or behind `after_avma`, so many bytes; 0
     * when there is no such place near. NULL: don't ask. See struct elf_image. */
    uint64_t (*find_room)(void *context, uint64_t after_avma, uint64_t bytes);
    void *context;
    const char *title; /* what the compilation unit is called: the dump's path */
};

struct elf_image {
    uint8_t *data; /* owned */
    size_t length;

    /* The file has a hole before data[hole_offset]: so many bytes that are not in `data`. */
    size_t hole_offset;
    uint64_t hole_bytes;

    /* perf with libunwind (6.1) reads .eh_frame_hdr through the mappings of the process, so it must
     * be mapped somewhere, at the right distance from the code: this part of the file, where
     * `find_room` said. Otherwise 0 bytes. */
    uint64_t room_avma;
    uint64_t room_bytes;
    uint64_t frames_end_fileoff; /* end of the unwinding data that follows the code directly */

    uint64_t base_avma;                         /* may wrap below 0 for code in the first page */
    uint8_t build_id[ELF_IMAGE_BUILD_ID_BYTES]; /* made from all of the content */
    size_t without_frames; /* functions whose unwinding data was not understood, or with none */
};

/* 0; -ENOMEM; -EFBIG when the code spans more than ELF_IMAGE_MOST_SPAN_BYTES; -ENOTSUP when there
 * is a function without unwinding data on a machine whose frames are not known. */
int elf_image_make(const struct elf_image_source *source, struct elf_image *ret_image);
void elf_image_done(struct elf_image *image);

#endif
