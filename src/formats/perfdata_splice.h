/* Copying a perf.data with records added to it, and everything else byte by byte as it stands.
 *
 *     perfdata_splice_open(&splice, data, length)
 *     where = perfdata_splice_round_end(&splice, record.offset)
 *     perfdata_splice_write(&splice, insertions, count, sink)
 *
 * Files and pipes (`perf record -o -`) stay what they are; compressed records stay compressed, for
 * what is added may stand between them. What is wrong with the recording is for the reader in
 * perfdata.h to say; here it is copied. But a file that was never finished, or lacks its end, is
 * finished by the copy: it ends behind its last whole record, and has no features. */
#ifndef PITVIPER_FORMATS_PERFDATA_SPLICE_H
#define PITVIPER_FORMATS_PERFDATA_SPLICE_H

#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfdata_splice {
    const uint8_t *data; /* borrowed */
    size_t length;
    bool is_pipe_mode;
    bool has_tail;           /* features follow the records */
    uint64_t records;        /* offset of the first record */
    uint64_t records_end;    /* behind the last whole one */
    uint64_t tail;           /* offset of what follows the records; `length` when nothing does */
    VECTOR(uint64_t) rounds; /* offsets of the FINISHED_ROUND records */
};

struct perfdata_insertion {
    uint64_t offset; /* in the file that is copied: before the record that starts there */
    const uint8_t *bytes;
    size_t length; /* a multiple of 8 */
};

/* Where the copy goes: called with piece after piece; anything but 0 ends the copying. */
struct perfdata_sink {
    int (*write)(void *context, const void *bytes, size_t length);
    void *context;
};

/* Of a file that perfdata_open_memory accepts; the data must outlive the splice. 0; -EBADMSG for
 * other files; -ENOMEM. On failure there is nothing to release. */
int perfdata_splice_open(struct perfdata_splice *splice, const uint8_t *data, size_t length);
void perfdata_splice_done(struct perfdata_splice *splice);

/* Which round the record at an offset belongs to, from 0 on; the last one may have no end. */
size_t perfdata_splice_round(const struct perfdata_splice *splice, uint64_t offset);

/* Where something is to be inserted so that it belongs to a round: behind all of its records, and
 * before the one that ends it. */
uint64_t perfdata_splice_round_end(const struct perfdata_splice *splice, size_t round);

/* Insertions ascend; those of one place keep their order. 0, -ENOMEM, or what the sink said. */
int perfdata_splice_write(const struct perfdata_splice *splice,
                          const struct perfdata_insertion *insertions, size_t count,
                          struct perfdata_sink sink);

#endif
