/* The DWARF sections that lead from addresses to lines, for images that we make: one compilation
 * unit without entries for functions, and its line program.
 *
 *     dwarf_lines_begin(&lines, &writer, &files);       .debug_line
 *     dwarf_lines_start(&lines, svma);                  a sequence: code without gaps
 *     dwarf_lines_row(&lines, svma, file, line);        from here on; ascending
 *     dwarf_lines_stop(&lines, end_svma);
 *     dwarf_lines_end(&lines);
 *     dwarf_encode_info(&writer, &unit);                .debug_info
 *     dwarf_encode_abbrev(&writer);                     .debug_abbrev
 *     dwarf_encode_aranges(&writer, &unit);             .debug_aranges */
#ifndef PITVIPER_FORMATS_DWARF_LINES_H
#define PITVIPER_FORMATS_DWARF_LINES_H

#include "base/strings.h"
#include "base/writer.h"

#include <stdint.h>

struct dwarf_lines {
    struct writer *writer;
    size_t begin;        /* where the section starts */
    uint64_t svma;       /* of the row before */
    uint32_t file, line; /* likewise */
};

/* `files`: whole paths; a row names them by their number there, from 1 on. */
void dwarf_lines_begin(struct dwarf_lines *lines, struct writer *writer,
                       const struct strings *files);
void dwarf_lines_start(struct dwarf_lines *lines, uint64_t svma);
void dwarf_lines_row(struct dwarf_lines *lines, uint64_t svma, uint32_t file, uint32_t line);
void dwarf_lines_stop(struct dwarf_lines *lines, uint64_t end_svma);
void dwarf_lines_end(struct dwarf_lines *lines);

struct dwarf_unit {
    const char *title; /* what it is called */
    uint64_t svma;     /* of the code that it covers */
    uint64_t size;
    uint32_t lines_at; /* of its line program in .debug_line */
    uint32_t info_at;  /* of the unit itself in .debug_info */
};

void dwarf_encode_info(struct writer *writer, const struct dwarf_unit *unit);
void dwarf_encode_abbrev(struct writer *writer);
void dwarf_encode_aranges(struct writer *writer, const struct dwarf_unit *unit);

#endif
