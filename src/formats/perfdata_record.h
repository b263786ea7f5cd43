/* One record of perf.data, decoded. Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_RECORD_H
#define PITVIPER_FORMATS_PERFDATA_RECORD_H

#include "formats/perfdata_events.h"

/* Decodes a whole record of `length` bytes, its size as stated in its header. `bytes` must be
 * aligned to 8. 1 and the record, which borrows the bytes; 0 when it is of a type that is not
 * decoded; -ENOENT when the file does not describe its event; -EBADMSG when its fields do not agree
 * with its size, and what is wrong in *ret_problem. `offset` and `lasting` are left to the caller.
 */
int perfdata_record_decode(const struct perfdata_events *events, const uint8_t *bytes,
                           size_t length, struct perfdata_record *ret_record,
                           const char **ret_problem);

/* Whether records of this type are decoded. */
bool perfdata_record_is_decoded(uint32_t type);

#endif
