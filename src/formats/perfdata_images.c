/* Images of Python functions are names and numbers that resemble each other: packed they take a
 * tenth. Each is packed by itself, so that only those are unpacked which samples are in. */
#include "formats/perfdata_images.h"

#include "base/cursor.h"
#include "base/writer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum {
    VERSION = 1,
    MAGIC_BYTES = 8,
    HEADER_BYTES = MAGIC_BYTES + 4 + 4,
    COUNT_OFFSET = MAGIC_BYTES + 4,
    BUILD_ID_ROOM = 24,
    IMAGE_HEADER_BYTES = 8 + 8 + 4 + 4 + BUILD_ID_ROOM,
    ALIGNMENT = 8,
    LEVEL = 1, /* of compression: the recorder has little time */

    /* What grows by more was made to hurt. */
    MOST_GROWTH = 2048,
    FREE_GROWTH_BYTES = 16 << 20,
};

static const char MAGIC[MAGIC_BYTES + 1] = "PVimages";

static bool is_likely(size_t packed_length, size_t length)
{
    return length <= FREE_GROWTH_BYTES || length / MOST_GROWTH <= packed_length;
}

/* --- writing --------------------------------------------------------------------------------- */

static uint32_t count_of(const struct perfdata_images_maker *maker)
{
    uint32_t count = 0;
    if (maker->bytes.count)
        memcpy(&count, maker->bytes.items + COUNT_OFFSET, sizeof count);
    return count;
}

static void write_image(struct perfdata_images_maker *maker, const struct perfdata_image *image)
{
    uint32_t count = count_of(maker) + 1;
    struct writer writer;
    writer_init(&writer, maker->bytes.items, maker->bytes.capacity);
    writer_bytes(&writer, MAGIC, MAGIC_BYTES);
    writer_u32(&writer, VERSION);
    writer_u32(&writer, count);
    if (maker->bytes.count)
        writer.length = maker->bytes.count;
    writer_u64(&writer, image->packed_length);
    writer_u64(&writer, image->length);
    writer_u32(&writer, (uint32_t)image->path_length);
    writer_u32(&writer, (uint32_t)image->build_id_length);
    writer_bytes(&writer, image->build_id, image->build_id_length);
    writer_zeros(&writer, BUILD_ID_ROOM - image->build_id_length);
    writer_bytes(&writer, image->path, image->path_length);
    writer_bytes(&writer, image->packed, image->packed_length);
    writer_align(&writer, 0, ALIGNMENT);
    maker->bytes.count = writer.length;
}

int perfdata_images_add(struct perfdata_images_maker *maker, const char *path,
                        const uint8_t *build_id, size_t build_id_length, const void *data,
                        size_t length)
{
    struct perfdata_image image = {.path = path,
                                   .path_length = strlen(path),
                                   .build_id = build_id,
                                   .build_id_length = build_id_length,
                                   .packed = data,
                                   .packed_length = length,
                                   .length = length};
    if (build_id_length > PERFDATA_IMAGES_BUILD_ID_BYTES)
        return -EINVAL;
    if (length > PERFDATA_IMAGE_MOST_BYTES)
        return -EFBIG;
    size_t room = ZSTD_compressBound(length);
    uint8_t *packed = malloc(room);
    if (!packed)
        return -ENOMEM;
    size_t packed_length = ZSTD_compress(packed, room, data, length, LEVEL);
    if (!ZSTD_isError(packed_length) && packed_length < length &&
        is_likely(packed_length, length)) {
        image.packed = packed;
        image.packed_length = packed_length;
    }
    int error =
        vector_reserve(&maker->bytes, maker->bytes.count + HEADER_BYTES + IMAGE_HEADER_BYTES +
                                          image.path_length + image.packed_length + ALIGNMENT);
    if (!error)
        write_image(maker, &image);
    free(packed);
    return error;
}

void perfdata_images_maker_done(struct perfdata_images_maker *maker)
{
    vector_done(&maker->bytes);
}

/* --- reading --------------------------------------------------------------------------------- */

static bool read_image(struct cursor *cursor, struct perfdata_image *ret_image)
{
    uint64_t packed_length = cursor_u64(cursor), length = cursor_u64(cursor);
    uint32_t path_length = cursor_u32(cursor), build_id_length = cursor_u32(cursor);
    const uint8_t *build_id = cursor_bytes(cursor, BUILD_ID_ROOM);
    const uint8_t *path = cursor_bytes(cursor, path_length);
    const uint8_t *packed = cursor_bytes(cursor, packed_length);
    if (!cursor_ok(cursor) || build_id_length > PERFDATA_IMAGES_BUILD_ID_BYTES ||
        length > PERFDATA_IMAGE_MOST_BYTES || packed_length > length ||
        !is_likely(packed_length, length))
        return false;
    size_t padding = -cursor->offset % ALIGNMENT;
    cursor_skip(cursor, padding < cursor_left(cursor) ? padding : cursor_left(cursor));
    *ret_image = (struct perfdata_image){.path = (const char *)path,
                                         .path_length = path_length,
                                         .build_id = build_id,
                                         .build_id_length = build_id_length,
                                         .packed = packed,
                                         .packed_length = packed_length,
                                         .length = length};
    return true;
}

int perfdata_images_open(struct perfdata_images *images, const void *private_data, size_t length)
{
    *images = (struct perfdata_images){0};
    struct cursor cursor;
    cursor_init(&cursor, "images", private_data, length);
    const uint8_t *magic = cursor_bytes(&cursor, MAGIC_BYTES);
    uint32_t version = cursor_u32(&cursor), count = cursor_u32(&cursor);
    if (!cursor_ok(&cursor) || memcmp(magic, MAGIC, MAGIC_BYTES) != 0 || version != VERSION)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        struct perfdata_image image;
        if (!read_image(&cursor, &image))
            return -EBADMSG;
        if (vector_push(&images->items, image) < 0)
            return -ENOMEM;
    }
    return 0;
}

void perfdata_images_done(struct perfdata_images *images)
{
    vector_done(&images->items);
}

const struct perfdata_image *perfdata_images_find(const struct perfdata_images *images,
                                                  const char *path, const uint8_t *build_id,
                                                  size_t build_id_length)
{
    size_t path_length = strlen(path);
    for (size_t i = 0; i < images->items.count; i++) {
        const struct perfdata_image *image = &images->items.items[i];
        bool is_it = build_id_length ? image->build_id_length == build_id_length &&
                                           memcmp(image->build_id, build_id, build_id_length) == 0
                                     : image->path_length == path_length &&
                                           memcmp(image->path, path, path_length) == 0;
        if (is_it)
            return image;
    }
    return NULL;
}

int perfdata_image_unpack(const struct perfdata_image *image, uint8_t **ret_data)
{
    uint8_t *data = malloc(image->length ? image->length : 1);
    if (!data)
        return -ENOMEM;
    size_t length = image->length;
    if (image->packed_length == image->length)
        memcpy(data, image->packed, length);
    else
        length = ZSTD_decompress(data, length, image->packed, image->packed_length);
    if (ZSTD_isError(length) || length != image->length) {
        free(data);
        return -EBADMSG;
    }
    *ret_data = data;
    return 0;
}
