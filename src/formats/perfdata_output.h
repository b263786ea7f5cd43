/* Buffered writing into a regular file, at positions that only grow. Internal to the perf.data
 * writer. */
#ifndef PITVIPER_FORMATS_PERFDATA_OUTPUT_H
#define PITVIPER_FORMATS_PERFDATA_OUTPUT_H

#include "base/writer.h"

enum { PERFDATA_OUTPUT_BYTES = 256 << 10 };

struct perfdata_output {
    int fd;
    int error; /* 0, or the negative errno of the first failed write; stays until one goes back */
    uint64_t position;    /* in the file, of the first byte in the buffer */
    uint64_t reached;     /* by the write that failed: so far it came */
    struct writer buffer; /* over PERFDATA_OUTPUT_BYTES; never overfull */
};

/* Position of the next byte. */
static inline uint64_t perfdata_output_position(const struct perfdata_output *output)
{
    return output->position + output->buffer.length;
}

void perfdata_output_bytes(struct perfdata_output *output, const void *bytes, size_t length);
void perfdata_output_u32(struct perfdata_output *output, uint32_t value);
void perfdata_output_u64(struct perfdata_output *output, uint64_t value);
void perfdata_output_zeros(struct perfdata_output *output, size_t length);

/* Writes what is in the buffer. The error, if there was one. */
int perfdata_output_flush(struct perfdata_output *output);

/* After a failure: as if nothing had been written from `position` on. */
void perfdata_output_go_back(struct perfdata_output *output, uint64_t position);

/* Overwrites bytes that have been flushed. */
void perfdata_output_patch(struct perfdata_output *output, uint64_t position, const void *bytes,
                           size_t length);

#endif
