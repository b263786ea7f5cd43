/* A perf map in memory: which entry covers an address, and what the file was like. */
#ifndef PITVIPER_FORMATS_PERFMAP_INDEX_H
#define PITVIPER_FORMATS_PERFMAP_INDEX_H

#include "base/rangemap.h"
#include "base/vector.h"
#include "formats/damage.h"
#include "formats/perfmap.h"

struct perfmap_index {
    VECTOR(struct perfmap_entry) entries; /* in the order of the file; names borrow its data */
    struct rangemap ranges;               /* values are indices into `entries` */

    struct damage damage; /* lines that are no entries; truncated: the last one has no newline */
};

/* Reads the whole map; the data must outlive the index. 0 or -ENOMEM; bad lines are no error. */
int perfmap_index_init(struct perfmap_index *index, const char *source, const void *data,
                       size_t length);
void perfmap_index_done(struct perfmap_index *index);

/* The entry that is valid for an address at the end of the file, or NULL: where entries overlap
 * the later line wins. An entry of size 0 reaches to the next start, 4096 bytes at most, and any
 * entry with a size wins over it. */
const struct perfmap_entry *perfmap_index_find(const struct perfmap_index *index, uint64_t avma);

#endif
