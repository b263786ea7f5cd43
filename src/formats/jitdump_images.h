/* How the code of a jitdump is divided among ELF images, and where and when each is mapped.
 *
 * An image holds code that stood in one piece of memory and never overlapped. Memory that was used
 * again needs an image for each time: a *generation*. The mappings of generation 0 may be valid
 * from any time on, since nothing was in their place before; a later one only from its own time
 * on, in which it hides what was there. */
#ifndef PITVIPER_FORMATS_JITDUMP_IMAGES_H
#define PITVIPER_FORMATS_JITDUMP_IMAGES_H

#include "base/vector.h"
#include "formats/elf_image.h"
#include "formats/jitdump_index.h"

#include <stdbool.h>

struct jitdump_image {
    size_t first_function; /* of `functions` */
    size_t function_count;
    size_t first_mapping; /* of `mappings` */
    size_t mapping_count;
};

struct jitdump_mapping {
    uint64_t start_avma;
    uint64_t end_avma;
    uint64_t limit_avma; /* where other code follows, of any time; UINT64_MAX: nowhere */
    uint64_t timestamp;  /* in the clock of the dump: when its first code came */
    uint32_t generation;
    uint32_t image; /* of `images` */
};

struct jitdump_images {
    VECTOR(struct elf_image_function) functions; /* by generation, then address; borrow the index */
    VECTOR(struct jitdump_image) images;
    VECTOR(struct jitdump_mapping) mappings; /* by image, then address */
    uint32_t generations;
    size_t
        impossible; /* pieces of code that can't be: no bytes, too many, beyond the last address */
};

/* `per_function`: an image and a mapping for each function. 0 or -ENOMEM; on failure there is
 * nothing to release. The index must outlive the result. */
int jitdump_images_init(struct jitdump_images *images, const struct jitdump_index *dump,
                        bool per_function);
void jitdump_images_done(struct jitdump_images *images);

#endif
