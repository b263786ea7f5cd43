/* Perf maps (/tmp/perf-PID.map): the names of code that a program made at run time, one line each:
 *
 *     START SIZE NAME\n        START and SIZE in hexadecimal
 *
 * docs/formats/perfmap.md describes the format and what writers really write. */
#ifndef PITVIPER_FORMATS_PERFMAP_H
#define PITVIPER_FORMATS_PERFMAP_H

#include "base/cursor.h"
#include "base/writer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perfmap_entry {
    uint64_t start;   /* avma of the first byte of code */
    uint64_t size;    /* in bytes; 0 when the writer did not know. start + size never wraps */
    const char *name; /* not NUL-terminated, may hold any byte but a newline; borrowed */
    size_t name_length;
    bool unfinished; /* the last line, without a newline: still being written, or cut off */
};

struct perfmap_reader {
    struct cursor cursor; /* at the start of the next line; `error` is never set */
    size_t line;          /* number of the line last read, from 1 */
    size_t line_offset;   /* where that line starts, in bytes */
    const char *problem;  /* what is wrong with that line: static; valid after a negative result */
};

/* Borrows the data; it must outlive the reader and the entries. `source` is for messages. */
void perfmap_reader_init(struct perfmap_reader *reader, const char *source, const void *data,
                         size_t length);

/* 1 and an entry; 0 at the end; -EBADMSG for a line that is not an entry (`problem` says why);
 * -ENODATA for a last line that stops before its name. Call again to go on behind a bad line.
 * Empty lines are passed over. */
int perfmap_next(struct perfmap_reader *reader, struct perfmap_entry *ret_entry);

/* Appends the entry as one line. Bytes that would end the line or the name early are replaced:
 * newline by \n, carriage return by \r, NUL by \0 (two characters each). An empty name becomes
 * "?", since readers skip lines without one. `unfinished` is ignored. */
void perfmap_encode(struct writer *writer, const struct perfmap_entry *entry);

#endif
