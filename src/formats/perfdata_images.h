/* Object files that travel inside a perf.data, as its private data (see perfdata_writer.h): so that
 * a copied recording has the names and lines of its Python functions with it.
 *
 *     "PVimages"  u32 version (1)  u32 number of images
 *     per image, in this machine's byte order, padded to 8 bytes:
 *         u64 bytes, packed (zstd, or as they are when that is not shorter)
 *         u64 bytes, unpacked
 *         u32 length of the path, without NUL   u32 length of the build-id (20 at most)
 *         build-id, padded to 24 bytes   path   the packed bytes
 *
 * Anything may stand behind the last image. */
#ifndef PITVIPER_FORMATS_PERFDATA_IMAGES_H
#define PITVIPER_FORMATS_PERFDATA_IMAGES_H

#include "base/vector.h"

#include <stddef.h>
#include <stdint.h>

enum {
    PERFDATA_IMAGES_BUILD_ID_BYTES = 20,
    PERFDATA_IMAGE_MOST_BYTES = 1 << 30, /* unpacked */
};

/* --- writing --------------------------------------------------------------------------------- */

/* What will be the private data; a zeroed one is valid and empty. */
struct perfdata_images_maker {
    VECTOR(uint8_t) bytes; /* nothing before the first image */
};

/* Packs an image and appends it. 0; -ENOMEM; -EFBIG above PERFDATA_IMAGE_MOST_BYTES; -EINVAL when
 * the build-id is longer than 20 bytes. On failure it is as it was. */
int perfdata_images_add(struct perfdata_images_maker *maker, const char *path,
                        const uint8_t *build_id, size_t build_id_length, const void *data,
                        size_t length);
void perfdata_images_maker_done(struct perfdata_images_maker *maker);

/* --- reading --------------------------------------------------------------------------------- */

/* An image as it lies in the private data; borrowed from there. */
struct perfdata_image {
    const char *path; /* not NUL-terminated */
    size_t path_length;
    const uint8_t *build_id;
    size_t build_id_length;
    const uint8_t *packed;
    size_t packed_length;
    size_t length; /* unpacked, if the file tells the truth */
};

struct perfdata_images {
    VECTOR(struct perfdata_image) items;
};

/* Finds the images; private data of another kind, or none, has none. 0; -EBADMSG when the end is
 * damaged: what stands before it is there; -ENOMEM. Release it in any case. */
int perfdata_images_open(struct perfdata_images *images, const void *private_data, size_t length);
void perfdata_images_done(struct perfdata_images *images);

/* The image of a build-id or, when that is not known (0 bytes), of a path; NULL when there is none.
 */
const struct perfdata_image *perfdata_images_find(const struct perfdata_images *images,
                                                  const char *path, const uint8_t *build_id,
                                                  size_t build_id_length);

/* Its bytes: free them. 0; -EBADMSG; -ENOMEM. */
int perfdata_image_unpack(const struct perfdata_image *image, uint8_t **ret_data);

#endif
