/* Any bytes as the images in a recording: every one is unpacked or refused, and those that are good
 * can be packed again. */
#include "formats/perfdata_images.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* Of images that are nothing but growth, few are enough. */
enum { MOST_BYTES = 1 << 20 };

static void check_again(const struct perfdata_image *image, const uint8_t *unpacked)
{
    struct perfdata_images_maker maker = {0};
    struct perfdata_images again;
    uint8_t *data;
    if (perfdata_images_add(&maker, "path", image->build_id, image->build_id_length, unpacked,
                            image->length) < 0)
        return;
    REQUIRE(perfdata_images_open(&again, maker.bytes.items, maker.bytes.count) == 0);
    REQUIRE(again.items.count == 1);
    REQUIRE(perfdata_images_find(&again, "path", image->build_id, image->build_id_length));
    REQUIRE(perfdata_image_unpack(&again.items.items[0], &data) == 0);
    REQUIRE(memcmp(data, unpacked, image->length) == 0);
    free(data);
    perfdata_images_done(&again);
    perfdata_images_maker_done(&maker);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perfdata_images images;
    perfdata_images_open(&images, data, size);
    for (size_t i = 0; i < images.items.count; i++) {
        const struct perfdata_image *image = &images.items.items[i];
        uint8_t *unpacked;
        if (image->length > MOST_BYTES || perfdata_image_unpack(image, &unpacked) < 0)
            continue;
        check_again(image, unpacked);
        free(unpacked);
    }
    perfdata_images_done(&images);
    return 0;
}
