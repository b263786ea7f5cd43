/* Bytes, compressed with gzip and written as base64 while they come: what can stand inside of an
 * HTML page and is unpacked by any browser.
 *
 *     packed_open(&packed, out)
 *     packed_write(&packed, bytes, length) ...
 *     packed_finish(&packed)
 *     packed_close(&packed)                     in any case, after a successful packed_open */
#ifndef PITVIPER_EXPORT_PACKED_H
#define PITVIPER_EXPORT_PACKED_H

#include "export/base64.h"

#include <zlib.h>

struct packed {
    z_stream stream;
    struct base64 text;
};

/* 0 or -ENOMEM. */
int packed_open(struct packed *packed, FILE *out);

/* 0, or the negative errno of a failed write. `packed` is a struct packed: the signature is that of
 * viewer_column_put. */
int packed_write(void *packed, const void *bytes, size_t length);

/* Everything is written. */
int packed_finish(struct packed *packed);
void packed_close(struct packed *packed);

#endif
