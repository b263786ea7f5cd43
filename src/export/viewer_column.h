/* A column of a table, as the viewer reads it: one field of all rows, as numbers of few bytes.
 *
 *     struct viewer_column column = VIEWER_COLUMN("frames.line", &frames, line);
 *     viewer_column_choose(&column);            now its encoding and size are known
 *     viewer_column_write(&column, out);
 *
 * docs/viewer-format.md describes the encodings. */
#ifndef PITVIPER_EXPORT_VIEWER_COLUMN_H
#define PITVIPER_EXPORT_VIEWER_COLUMN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* In JavaScript numbers are exact below this. */
#define VIEWER_NUMBER_LIMIT ((uint64_t)1 << 53)

enum viewer_encoding {
    VIEWER_VARINT, /* LEB128 each */
    VIEWER_DELTA,  /* zigzag LEB128 of the difference to the one before */
    VIEWER_RUNS,   /* pairs of LEB128: a value, and how often it comes in a row */
    VIEWER_ENCODINGS
};

struct viewer_column {
    const char *name;
    const void *first;   /* the field of the first row; borrowed */
    size_t stride_bytes; /* from one row to the next */
    size_t width_bytes;  /* of the field: 1, 2, 4 or 8; unsigned, below VIEWER_NUMBER_LIMIT */
    size_t count;        /* of rows */
    enum viewer_encoding encoding; /* these two by viewer_column_choose */
    uint64_t bytes;
};

/* The field `field` of a VECTOR of structs; offsetof, since a vector without items has no address.
 */
#define VIEWER_COLUMN(column_name, vector, field)                                                  \
    ((struct viewer_column){.name = (column_name),                                                 \
                            .first =                                                               \
                                (vector)->items ? (const void *)&(vector)->items[0].field : NULL,  \
                            .stride_bytes = sizeof *(vector)->items,                               \
                            .width_bytes = sizeof(vector)->items[0].field,                         \
                            .count = (vector)->count})

const char *viewer_encoding_name(enum viewer_encoding encoding);

/* Sets the encoding with the fewest bytes, and how many these are. */
void viewer_column_choose(struct viewer_column *column);

/* Write errors stay in the FILE. */
void viewer_column_write(const struct viewer_column *column, FILE *out);

#endif
