/* Encoding one record of perf.data: the counterpart of perfdata_record.h. */
#ifndef PITVIPER_FORMATS_PERFDATA_ENCODE_H
#define PITVIPER_FORMATS_PERFDATA_ENCODE_H

#include "base/writer.h"
#include "formats/perfdata.h"

/* What samples may consist of; other bits of `sample_type` can't be encoded. */
#define PERFDATA_ENCODED_SAMPLE_TYPE                                                               \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |                \
     PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |                 \
     PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER)

/* The largest size that a record can state, in whole multiples of 8. */
enum { PERFDATA_ENCODED_MOST_BYTES = 65528 };

/* Appends one record of a type that the reader decodes, as a record of `event`. Of `record`, all
 * fields are used but `offset`, `size`, `lasting` and `event`; bits of `misc` that follow from
 * other fields (is_exec, is_data, build_id_size) are set here. An id of 0 becomes the event's first
 * one. 0; -EMSGSIZE when the record would be larger than records can be; -EINVAL for another type.
 * In these cases nothing is appended. */
int perfdata_encode(struct writer *writer, const struct perfdata_event *event,
                    const struct perfdata_record *record);

#endif
