/* Which line a Python instruction belongs to, from the table that a code object carries:
 *
 *     3.9      co_lnotab      pairs (bytes of code, lines on): the line changes behind the bytes
 *     3.10     co_linetable   pairs (bytes of code, lines on): the line of these bytes; PEP 626
 *     3.11 on  co_linetable   entries of one to some bytes, with columns too; PEP 657
 *
 *     struct python_lines lines;
 *     python_lines_init(&lines, &(struct python_lines_table){.python_minor = 12, ...});
 *     line = python_lines_at(&lines, offset);
 *     python_lines_done(&lines);
 *
 * Offsets are bytes from the start of the bytecode in every version (f_lasti of 3.10 counts two
 * bytes as one). Any bytes are survived; time and memory are linear in their number, but for the
 * sorting of lines. */
#ifndef PITVIPER_FORMATS_PYTHON_LINES_H
#define PITVIPER_FORMATS_PYTHON_LINES_H

#include "base/cursor.h"
#include "base/vector.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* There is no line: code of the compiler's own, or nothing is known. */
enum { PYTHON_LINE_NONE = -1 };

/* What a code object says; the bytes are borrowed. */
struct python_lines_table {
    uint32_t python_minor; /* of 3.minor, 9 at least */
    uint32_t first_line;   /* co_firstlineno */
    const uint8_t *bytes;
    size_t length; /* 0: unknown; then everything is on the first line */
};

/* Instructions that follow each other and are on one line. */
struct python_lines_span {
    uint32_t start, end; /* bytes; never empty. UINT32_MAX: as far as the code goes */
    int32_t line;        /* or PYTHON_LINE_NONE; 0 does occur: the start of a module */
};

/* Walks a table. */
struct python_lines_walk {
    struct cursor cursor; /* over the table */
    uint32_t python_minor;
    uint32_t end;  /* of the span before */
    int64_t line;  /* as counted so far */
    bool is_ended; /* nothing more comes */
};

void python_lines_walk_init(struct python_lines_walk *walk, const struct python_lines_table *table);

/* 1 and the next span, ascending and without gaps from 0 on; 0 at the end; -EBADMSG when the rest
 * can't be understood, which ends the walk. */
int python_lines_next(struct python_lines_walk *walk, struct python_lines_span *ret_span);

/* From `offset` up to the next row. */
struct python_lines_row {
    uint32_t offset;
    int32_t line;
};

/* The whole table, for look-ups. */
struct python_lines {
    VECTOR(struct python_lines_row) rows; /* ascending; neighbours differ in their line */
    VECTOR(int32_t) distinct;             /* the lines that occur, ascending, each once */
    bool is_damaged;                      /* the table's end is missing */
};

/* 0 or -ENOMEM; on failure there is nothing to release. Of a damaged table the good part counts. */
int python_lines_init(struct python_lines *lines, const struct python_lines_table *table);
void python_lines_done(struct python_lines *lines);

/* The line of the instruction at a byte offset, or PYTHON_LINE_NONE: behind the table, or for
 * UINT32_MAX (no instruction yet). */
int32_t python_lines_at(const struct python_lines *lines, uint32_t offset);

#endif
