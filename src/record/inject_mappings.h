/* The records that are added to a recording: images of generated code, mapped at the right time. */
#ifndef PITVIPER_RECORD_INJECT_MAPPINGS_H
#define PITVIPER_RECORD_INJECT_MAPPINGS_H

#include "base/vector.h"
#include "formats/elf_image.h"
#include "formats/perfdata.h"
#include "formats/perfdata_splice.h"
#include "record/inject_dump.h"
#include "record/inject_scan.h"

struct inject_mapping {
    struct perfdata_insertion insertion; /* its bytes are set by inject_mappings_finish */
    uint64_t time_ns;
    size_t order;
    size_t start; /* of its bytes in `bytes` */
};

/* A zeroed one with the first three set is valid and empty. */
struct inject_mappings {
    const struct inject_scan *scan;
    const struct perfdata_splice *splice;
    const struct perfdata_event *event; /* whose records they are */
    VECTOR(struct inject_mapping) list;
    VECTOR(uint8_t) bytes;
    VECTOR(struct perfdata_insertion) insertions; /* valid after inject_mappings_finish */
    size_t untimed; /* pieces of code left out: memory was used again, and nobody knows when */
};

/* Adds the mappings of image number `number` of a dump, which is at `path`. The images of a dump in
 * their order. 0, -ENOMEM, or -ENAMETOOLONG. */
int inject_mappings_add(struct inject_mappings *mappings, const struct inject_dump *dump,
                        size_t number, const struct elf_image *image, const char *path);

/* Puts them into the order of perfdata_splice_write: `insertions`. 0 or -ENOMEM. */
int inject_mappings_finish(struct inject_mappings *mappings);

void inject_mappings_done(struct inject_mappings *mappings);

#endif
