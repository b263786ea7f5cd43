/* perf decompresses each record with one call, which must get everything out of it: so a record
 * holds one zstd frame that states its size, and nothing else. Its length is not padded: neither is
 * that of perf's own. */
#include "formats/perfdata_pack.h"

#include "formats/perfdata.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { MOST_RECORD_BYTES = 65528 };

void perfdata_packer_done(struct perfdata_packer *packer)
{
    ZSTD_freeCCtx(packer->zstd);
    free(packer->room);
    *packer = (struct perfdata_packer){0};
}

size_t perfdata_pack(struct perfdata_packer *packer, const void *records, size_t length)
{
    struct perf_event_header header = {.type = PERFDATA_COMPRESSED};
    if (!packer->zstd)
        packer->zstd = ZSTD_createCCtx();
    if (!packer->room)
        packer->room = malloc(MOST_RECORD_BYTES);
    if (!packer->zstd || !packer->room || length > PERFDATA_PACK_MOST_BYTES)
        return 0;
    size_t most = MOST_RECORD_BYTES < length / 2 ? MOST_RECORD_BYTES : length / 2;
    if (most <= sizeof header)
        return 0;
    size_t packed = ZSTD_compressCCtx(packer->zstd, packer->room + sizeof header,
                                      most - sizeof header, records, length, PERFDATA_PACK_LEVEL);
    if (ZSTD_isError(packed))
        return 0;
    header.size = (uint16_t)(packed + sizeof header);
    memcpy(packer->room, &header, sizeof header);
    packer->bytes_in += length;
    packer->bytes_out += header.size;
    return header.size;
}
