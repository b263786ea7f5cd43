/* The header and the table of features hold sizes that are known only at the end, so the file is
 * written with pwrite: the buffer goes to the end of what is there, patches go where they belong.
 */
#include "formats/perfdata_output.h"

#include <errno.h>
#include <unistd.h>

void perfdata_output_patch(struct perfdata_output *output, uint64_t position, const void *bytes,
                           size_t length)
{
    const uint8_t *rest = bytes;
    while (length && !output->error) {
        ssize_t written = pwrite(output->fd, rest, length, (off_t)position);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            output->error = written < 0 ? -errno : -EIO;
            output->reached = position;
            break;
        }
        rest += written;
        position += (uint64_t)written;
        length -= (size_t)written;
    }
}

void perfdata_output_go_back(struct perfdata_output *output, uint64_t position)
{
    output->error = ftruncate(output->fd, (off_t)position) < 0 ? -errno : 0;
    output->position = position;
    output->buffer.length = 0;
}

int perfdata_output_flush(struct perfdata_output *output)
{
    perfdata_output_patch(output, output->position, output->buffer.data, output->buffer.length);
    output->position += output->buffer.length;
    output->buffer.length = 0;
    return output->error;
}

void perfdata_output_bytes(struct perfdata_output *output, const void *bytes, size_t length)
{
    struct writer *buffer = &output->buffer;
    if (length > buffer->capacity - buffer->length)
        perfdata_output_flush(output);
    if (length <= buffer->capacity) {
        writer_bytes(buffer, bytes, length);
        return;
    }
    perfdata_output_patch(output, output->position, bytes, length);
    output->position += length;
}

void perfdata_output_u32(struct perfdata_output *output, uint32_t value)
{
    perfdata_output_bytes(output, &value, sizeof value);
}

void perfdata_output_u64(struct perfdata_output *output, uint64_t value)
{
    perfdata_output_bytes(output, &value, sizeof value);
}

void perfdata_output_zeros(struct perfdata_output *output, size_t length)
{
    static const uint8_t zeros[256];
    while (length) {
        size_t part = length < sizeof zeros ? length : sizeof zeros;
        perfdata_output_bytes(output, zeros, part);
        length -= part;
    }
}
