/* Records packed into one COMPRESSED record, as `perf record -z` makes them. Internal to the
 * perf.data writer. */
#ifndef PITVIPER_FORMATS_PERFDATA_PACK_H
#define PITVIPER_FORMATS_PERFDATA_PACK_H

#include <stddef.h>
#include <stdint.h>

enum {
    PERFDATA_PACK_MOST_BYTES = 512 << 10, /* unpacked; readers take that much room */
    PERFDATA_PACK_LEVEL = 2, /* of deep stacks smaller than 1 makes them, and no slower */
};

/* A zeroed one is valid. */
struct perfdata_packer {
    void *zstd;    /* NULL before the first call; owned */
    uint8_t *room; /* for one record; owned */
    uint64_t bytes_in, bytes_out;
};

void perfdata_packer_done(struct perfdata_packer *packer);

/* The length of the record, which is at packer->room until the next call. 0 when that would not be
 * shorter than half, or longer than records can be, or memory is short. */
size_t perfdata_pack(struct perfdata_packer *packer, const void *records, size_t length);

#endif
