/* The Python functions of a process as code of one made-up ELF image, so that programs which only
 * know object files (perf, samply, addr2line) show their names and lines.
 *
 *     struct python_image image;
 *     python_image_init(&image);
 *     python_image_add(&image, &function, &number);                 as they come
 *     ip = BASE + python_image_address(&image, number, line);       in samples, at any time
 *     python_image_finish(&image, build_id, &bytes);                at the end
 *
 * Each (function, line) has a slot of a few bytes in .text. Addresses are given out when a function
 * is added, and stay: samples can be written at once. A mapping of the image is
 * {start = BASE, length = PYTHON_IMAGE_SPAN_BYTES, fileoff = 0}; see PYTHON_IMAGE_BASE_AVMA. */
#ifndef PITVIPER_FORMATS_PYTHON_IMAGE_H
#define PITVIPER_FORMATS_PYTHON_IMAGE_H

#include "base/strings.h"
#include "base/vector.h"

#include <stddef.h>
#include <stdint.h>

/* Where an image is mapped: behind the addresses that a process can have. */
#define PYTHON_IMAGE_BASE_AVMA UINT64_C(0x900000000000)

enum {
    PYTHON_IMAGE_BUILD_ID_BYTES = 20,
    PYTHON_IMAGE_SPAN_BYTES = 1 << 28, /* of addresses; there is room for 67 million slots */
};

/* What to add. Texts are borrowed for the call, of any bytes, and need no NUL. */
struct python_image_function {
    const char *name; /* qualified name; the symbol is py::NAME:FILE */
    size_t name_length;
    const char *file;
    size_t file_length;
    uint32_t first_line;  /* of the function; has a slot in any case */
    const int32_t *lines; /* ascending; those below 1 are passed over. See python_lines.distinct */
    size_t line_count;
};

/* A function of the image. Its slots follow each other in the order of its lines. */
struct python_image_entry {
    uint32_t symbol; /* string: py::NAME:FILE */
    uint32_t file;   /* string */
    uint32_t first_slot;
    uint32_t slot_count;    /* at least 1 */
    uint32_t fallback_slot; /* of the first line */
};

struct python_image {
    struct strings symbols, files;
    VECTOR(struct python_image_entry) functions;
    VECTOR(uint32_t) slots; /* the line of each */
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int python_image_init(struct python_image *image);
void python_image_done(struct python_image *image);

/* 0 and the function's number, from 0 on; -ENOMEM; -EFBIG when PYTHON_IMAGE_SPAN_BYTES or a
 * section's 4 GB do not suffice. On failure the image is as it was. Functions are not compared: add
 * each once. Line ends, NUL and lone surrogates in texts become \n, \r, \0 and \udc80, and of very
 * long texts the middle is left out, as in perf maps. */
int python_image_add(struct python_image *image, const struct python_image_function *function,
                     uint32_t *ret_function);

/* The address of a line in the image (add the base of the mapping): inside of its slot but not its
 * first byte, since some programs look up the byte before for callers. A line that the function
 * does not have, such as PYTHON_LINE_NONE, counts as its first line. */
uint64_t python_image_address(const struct python_image *image, uint32_t function, int32_t line);

struct python_image_bytes {
    uint8_t *data; /* owned: free it */
    size_t length;
};

/* The bytes of the file. The build-id is the caller's choice, since mappings name it before the
 * image is complete: it must be a new one for every image, or programs mix them up. The image stays
 * as it is. 0; -ENOMEM; -EFBIG above 4 GB. */
int python_image_finish(const struct python_image *image,
                        const uint8_t build_id[PYTHON_IMAGE_BUILD_ID_BYTES],
                        struct python_image_bytes *ret_bytes);

#endif
