/* DWARF 4, which perf 6.1, perf 7.2, samply and addr2line read.
 *
 *     .debug_abbrev   the shape of the unit's entry: no children. With an entry per function perf
 *                     7.2 takes minutes to look for inlined ones
 *     .debug_info     one unit: name, range, where its lines are
 *     .debug_aranges  the unit's range once more, for those who look there first
 *     .debug_line     sequences of rows, each with its end, so that nothing behind it counts
 *
 * There is one unit for all source files. In memory the functions of a file do not stand together,
 * since a function gets its place when it is first seen; a unit per file would need a range per
 * function, and readers go through ranges one by one. The line program names the file of every
 * row, and that is what readers report. */
#include "formats/dwarf_lines.h"

#include <string.h>

enum {
    DW_TAG_compile_unit = 0x11,
    DW_AT_name = 0x03,
    DW_AT_stmt_list = 0x10,
    DW_AT_low_pc = 0x11,
    DW_AT_high_pc = 0x12,
    DW_AT_language = 0x13,
    DW_AT_producer = 0x25,
    DW_FORM_addr = 0x01,
    DW_FORM_data2 = 0x05,
    DW_FORM_data8 = 0x07,
    DW_FORM_string = 0x08,
    DW_FORM_sec_offset = 0x17,
    DW_LANG_Python = 0x14,

    DW_LNS_advance_pc = 2,
    DW_LNS_advance_line = 3,
    DW_LNS_set_file = 4,
    DW_LNE_end_sequence = 1,
    DW_LNE_set_address = 2,

    DWARF_VERSION = 4,
    ARANGES_VERSION = 2,
    ADDRESS_BYTES = 8,

    /* A special opcode makes a row: so many lines and bytes on, if they are few. */
    LEAST_LINES_ON = -5,
    LINES_ON = 14,
    FIRST_SPECIAL = 13,
    LAST_SPECIAL = 255,
};

static void end_section(struct writer *writer, size_t begin)
{
    writer_patch_u32(writer, begin, (uint32_t)(writer->length - begin - 4));
}

static void encode_files(struct writer *writer, const struct strings *files)
{
    writer_u8(writer, 0); /* no folders: names are whole paths */
    for (uint32_t i = 1; i < files->texts.count; i++) {
        struct strings_text name = strings_get(files, i);
        writer_bytes(writer, name.bytes, name.length + 1);
        writer_zeros(writer, 3); /* folder, time, size: unknown */
    }
    writer_u8(writer, 0);
}

void dwarf_lines_begin(struct dwarf_lines *lines, struct writer *writer,
                       const struct strings *files)
{
    static const uint8_t opcode_lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    *lines = (struct dwarf_lines){.writer = writer, .begin = writer->length};
    writer_u32(writer, 0);
    writer_u16(writer, DWARF_VERSION);
    size_t length_at = writer->length;
    writer_u32(writer, 0);
    writer_u8(writer, 1); /* bytes of the smallest instruction */
    writer_u8(writer, 1); /* operations in an instruction */
    writer_u8(writer, 1); /* rows begin statements */
    writer_u8(writer, (uint8_t)LEAST_LINES_ON);
    writer_u8(writer, LINES_ON);
    writer_u8(writer, FIRST_SPECIAL);
    writer_bytes(writer, opcode_lengths, sizeof opcode_lengths);
    encode_files(writer, files);
    writer_patch_u32(writer, length_at, (uint32_t)(writer->length - length_at - 4));
}

void dwarf_lines_start(struct dwarf_lines *lines, uint64_t svma)
{
    writer_u8(lines->writer, 0);
    writer_uleb(lines->writer, 1 + ADDRESS_BYTES);
    writer_u8(lines->writer, DW_LNE_set_address);
    writer_u64(lines->writer, svma);
    lines->svma = svma;
    lines->file = lines->line = 1;
}

void dwarf_lines_row(struct dwarf_lines *lines, uint64_t svma, uint32_t file, uint32_t line)
{
    struct writer *writer = lines->writer;
    uint64_t bytes_on = svma - lines->svma;
    int64_t lines_on = (int64_t)line - lines->line;
    if (file != lines->file) {
        writer_u8(writer, DW_LNS_set_file);
        writer_uleb(writer, file);
    }
    if (lines_on < LEAST_LINES_ON || lines_on >= LEAST_LINES_ON + LINES_ON) {
        writer_u8(writer, DW_LNS_advance_line);
        writer_sleb(writer, lines_on);
        lines_on = 0;
    }
    if (bytes_on >= (LAST_SPECIAL - FIRST_SPECIAL) / LINES_ON) {
        writer_u8(writer, DW_LNS_advance_pc);
        writer_uleb(writer, bytes_on);
        bytes_on = 0;
    }
    writer_u8(writer,
              (uint8_t)(FIRST_SPECIAL + (int64_t)bytes_on * LINES_ON + lines_on - LEAST_LINES_ON));
    lines->svma = svma;
    lines->file = file;
    lines->line = line;
}

void dwarf_lines_stop(struct dwarf_lines *lines, uint64_t end_svma)
{
    writer_u8(lines->writer, DW_LNS_advance_pc);
    writer_uleb(lines->writer, end_svma - lines->svma);
    writer_u8(lines->writer, 0);
    writer_uleb(lines->writer, 1);
    writer_u8(lines->writer, DW_LNE_end_sequence);
}

void dwarf_lines_end(struct dwarf_lines *lines)
{
    end_section(lines->writer, lines->begin);
}

void dwarf_encode_abbrev(struct writer *writer)
{
    static const uint8_t abbrev[] = {1,
                                     DW_TAG_compile_unit,
                                     0, /* no children */
                                     DW_AT_producer,
                                     DW_FORM_string,
                                     DW_AT_language,
                                     DW_FORM_data2,
                                     DW_AT_name,
                                     DW_FORM_string,
                                     DW_AT_stmt_list,
                                     DW_FORM_sec_offset,
                                     DW_AT_low_pc,
                                     DW_FORM_addr,
                                     DW_AT_high_pc,
                                     DW_FORM_data8,
                                     0,
                                     0,
                                     0};
    writer_bytes(writer, abbrev, sizeof abbrev);
}

void dwarf_encode_info(struct writer *writer, const struct dwarf_unit *unit)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    writer_u16(writer, DWARF_VERSION);
    writer_u32(writer, 0); /* .debug_abbrev, from its start */
    writer_u8(writer, ADDRESS_BYTES);
    writer_uleb(writer, 1);
    writer_bytes(writer, "pitviper", sizeof "pitviper");
    writer_u16(writer, DW_LANG_Python);
    writer_bytes(writer, unit->title, strlen(unit->title) + 1);
    writer_u32(writer, unit->lines_at);
    writer_u64(writer, unit->svma);
    writer_u64(writer, unit->size);
    end_section(writer, start);
}

void dwarf_encode_aranges(struct writer *writer, const struct dwarf_unit *unit)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    writer_u16(writer, ARANGES_VERSION);
    writer_u32(writer, unit->info_at);
    writer_u8(writer, ADDRESS_BYTES);
    writer_u8(writer, 0);
    writer_align(writer, start, 2 * ADDRESS_BYTES);
    writer_u64(writer, unit->svma);
    writer_u64(writer, unit->size);
    writer_zeros(writer, 2 * ADDRESS_BYTES);
    end_section(writer, start);
}
