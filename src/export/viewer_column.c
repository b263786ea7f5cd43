/* The fewest bytes before compression are nearly always the fewest behind it: one byte a value is
 * what gzip does best with. So the encodings are measured, by one walk over the column, and nothing
 * is kept in memory. */
#include "export/viewer_column.h"

#include "base/writer.h"

#include <string.h>

enum { BUFFER_BYTES = 1 << 14, MOST_VALUE_BYTES = 20 };

static const char *const names[VIEWER_ENCODINGS] = {
    [VIEWER_VARINT] = "varint", [VIEWER_DELTA] = "delta", [VIEWER_RUNS] = "runs"};

const char *viewer_encoding_name(enum viewer_encoding encoding)
{
    return names[encoding];
}

static uint64_t value_at(const struct viewer_column *column, size_t row)
{
    const uint8_t *field = (const uint8_t *)column->first + row * column->stride_bytes;
    switch (column->width_bytes) {
    case 1:
        return *field;
    case 2: {
        uint16_t value;
        memcpy(&value, field, sizeof value);
        return value;
    }
    case 4: {
        uint32_t value;
        memcpy(&value, field, sizeof value);
        return value;
    }
    default: {
        uint64_t value;
        memcpy(&value, field, sizeof value);
        return value;
    }
    }
}

/* Small numbers for small differences, whatever their sign: 0, -1, 1, -2 are 0, 1, 2, 3. */
static uint64_t zigzag(uint64_t value, uint64_t before)
{
    int64_t difference = (int64_t)(value - before);
    return ((uint64_t)difference << 1) ^ (uint64_t)(difference >> 63);
}

static size_t run_length(const struct viewer_column *column, size_t row)
{
    uint64_t value = value_at(column, row);
    size_t end = row + 1;
    while (end < column->count && value_at(column, end) == value)
        end++;
    return end - row;
}

/* One step of the encoding, at this row; returns how many rows it was. */
static size_t encode_step(const struct viewer_column *column, enum viewer_encoding encoding,
                          size_t row, struct writer *writer)
{
    uint64_t value = value_at(column, row);
    switch (encoding) {
    case VIEWER_RUNS: {
        size_t length = run_length(column, row);
        writer_uleb(writer, value);
        writer_uleb(writer, length);
        return length;
    }
    case VIEWER_DELTA:
        writer_uleb(writer, zigzag(value, row ? value_at(column, row - 1) : 0));
        return 1;
    default:
        writer_uleb(writer, value);
        return 1;
    }
}

static uint64_t measure(const struct viewer_column *column, enum viewer_encoding encoding)
{
    struct writer writer;
    writer_init(&writer, NULL, 0);
    for (size_t row = 0; row < column->count;)
        row += encode_step(column, encoding, row, &writer);
    return writer.length;
}

void viewer_column_choose(struct viewer_column *column)
{
    for (int i = 0; i < VIEWER_ENCODINGS; i++) {
        uint64_t bytes = measure(column, (enum viewer_encoding)i);
        if (i && bytes >= column->bytes)
            continue;
        column->encoding = (enum viewer_encoding)i;
        column->bytes = bytes;
    }
}

void viewer_column_write(const struct viewer_column *column, FILE *out)
{
    uint8_t buffer[BUFFER_BYTES];
    struct writer writer;
    writer_init(&writer, buffer, sizeof buffer);
    for (size_t row = 0; row < column->count && !ferror(out);) {
        row += encode_step(column, column->encoding, row, &writer);
        if (writer.length <= sizeof buffer - MOST_VALUE_BYTES && row < column->count)
            continue;
        fwrite(buffer, 1, writer.length, out);
        writer_init(&writer, buffer, sizeof buffer);
    }
}
