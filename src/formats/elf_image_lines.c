/* Lines of generated code in DWARF 4. All functions are in one compilation unit, whatever source
 * file they come from: in memory the functions of a file do not stand together, since a function
 * gets its code when it is first called. The line program names the file of every row, and that is
 * what addr2line, perf and libdw report.
 *
 *     .debug_abbrev   the shape of the unit's entry: no children. With an entry per function perf
 *                     7.2 takes minutes to look for inlined ones
 *     .debug_info     one unit: name, range, where its lines are
 *     .debug_aranges  the unit's range once more, for those who look there first
 *     .debug_line     a sequence per function: rows, and its end, so that nothing behind it counts
 *
 * Only plain opcodes are used: a row costs some ten bytes, and a function has few. */
#include "formats/elf_image_lines.h"

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

    DW_LNS_copy = 1,
    DW_LNS_advance_pc = 2,
    DW_LNS_advance_line = 3,
    DW_LNS_set_file = 4,
    DW_LNE_end_sequence = 1,
    DW_LNE_set_address = 2,

    DWARF_VERSION = 4,
    ARANGES_VERSION = 2,
    ADDRESS_BYTES = 8,
};

static int compare_rows(const void *left, const void *right)
{
    const struct elf_image_row *a = left, *b = right;
    if (a->svma != b->svma)
        return a->svma < b->svma ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

/* Rows should ascend; the few writers that mix them up pay for a sort. */
static void sort_rows(struct elf_image_row *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (rows[i].svma < rows[i - 1].svma) {
            qsort(rows, count, sizeof *rows, compare_rows);
            return;
        }
    }
}

static int add_function(struct elf_image_lines *lines, const struct elf_image_source *source,
                        uint32_t function, uint64_t base_avma)
{
    const struct elf_image_function *f = &source->functions[function];
    struct jitdump_debug_info info = f->code->debug;
    struct jitdump_line line;
    size_t first = lines->rows.count;
    if (!info.count)
        return 0;
    while (jitdump_next_line(&info, &line) == 1) {
        uint64_t offset = line.avma - info.code_avma;
        if (offset >= f->code->load.code_size || !line.file[0])
            continue;
        struct elf_image_row row = {
            .svma = f->avma - base_avma + offset, .line = line.line, .function = function};
        int error = strings_intern(&lines->files, line.file, strlen(line.file), &row.file);
        if (!error)
            error = vector_push(&lines->rows, row);
        if (error)
            return error;
    }
    if (lines->rows.count > first)
        sort_rows(lines->rows.items + first, lines->rows.count - first);
    return 0;
}

int elf_image_lines_init(struct elf_image_lines *lines, const struct elf_image_source *source,
                         uint64_t base_avma)
{
    *lines = (struct elf_image_lines){0};
    int error = strings_init(&lines->files);
    if (error < 0)
        return error;
    for (size_t i = 0; i < source->count && !error; i++)
        error = add_function(lines, source, (uint32_t)i, base_avma);
    if (error)
        elf_image_lines_done(lines);
    return error;
}

void elf_image_lines_done(struct elf_image_lines *lines)
{
    vector_done(&lines->rows);
    strings_done(&lines->files);
}

static void end_unit(struct writer *writer, size_t start)
{
    writer_patch_u32(writer, start, (uint32_t)(writer->length - start - 4));
}

static void encode_line_header(struct writer *writer, const struct elf_image_lines *lines)
{
    static const uint8_t opcode_lengths[] = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
    writer_u16(writer, DWARF_VERSION);
    size_t length_at = writer->length;
    writer_u32(writer, 0);
    writer_u8(writer, 1);                   /* bytes of the smallest instruction */
    writer_u8(writer, 1);                   /* operations in an instruction */
    writer_u8(writer, 1);                   /* rows begin statements */
    writer_u8(writer, (uint8_t)(int8_t)-5); /* special opcodes, which are not used */
    writer_u8(writer, 14);
    writer_u8(writer, sizeof opcode_lengths + 1);
    writer_bytes(writer, opcode_lengths, sizeof opcode_lengths);
    writer_u8(writer, 0); /* no folders: names are whole paths */
    for (uint32_t i = 1; i < lines->files.texts.count; i++) {
        struct strings_text name = strings_get(&lines->files, i);
        writer_bytes(writer, name.bytes, name.length + 1);
        writer_zeros(writer, 3); /* folder, time, size: unknown */
    }
    writer_u8(writer, 0);
    writer_patch_u32(writer, length_at, (uint32_t)(writer->length - length_at - 4));
}

static void encode_end_of_sequence(struct writer *writer, uint64_t bytes_to_end)
{
    writer_u8(writer, DW_LNS_advance_pc);
    writer_uleb(writer, bytes_to_end);
    writer_u8(writer, 0);
    writer_uleb(writer, 1);
    writer_u8(writer, DW_LNE_end_sequence);
}

static void encode_address(struct writer *writer, uint64_t svma)
{
    writer_u8(writer, 0);
    writer_uleb(writer, 1 + ADDRESS_BYTES);
    writer_u8(writer, DW_LNE_set_address);
    writer_u64(writer, svma);
}

void elf_image_encode_debug_line(struct writer *writer, const struct elf_image_lines *lines,
                                 const struct elf_image_unit *unit)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    encode_line_header(writer, lines);
    struct elf_image_row now = {0};
    for (size_t i = 0; i < lines->rows.count; i++) {
        const struct elf_image_row *row = &lines->rows.items[i];
        if (i == 0 || row->function != now.function) {
            now = (struct elf_image_row){
                .svma = row->svma, .line = 1, .file = 1, .function = row->function};
            encode_address(writer, row->svma);
        }
        if (row->file != now.file) {
            writer_u8(writer, DW_LNS_set_file);
            writer_uleb(writer, row->file);
        }
        writer_u8(writer, DW_LNS_advance_pc);
        writer_uleb(writer, row->svma - now.svma);
        writer_u8(writer, DW_LNS_advance_line);
        writer_sleb(writer, (int64_t)row->line - now.line);
        writer_u8(writer, DW_LNS_copy);
        now = *row;
        if (i + 1 == lines->rows.count || row[1].function != row->function) {
            const struct elf_image_function *f = &unit->source->functions[row->function];
            uint64_t end = f->avma - unit->base_avma + f->code->load.code_size;
            encode_end_of_sequence(writer, end - row->svma);
        }
    }
    end_unit(writer, start);
}

void elf_image_encode_debug_abbrev(struct writer *writer)
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

void elf_image_encode_debug_info(struct writer *writer, const struct elf_image_unit *unit)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    writer_u16(writer, DWARF_VERSION);
    writer_u32(writer, 0); /* .debug_abbrev, from its start */
    writer_u8(writer, ADDRESS_BYTES);
    writer_uleb(writer, 1);
    writer_bytes(writer, "pitviper", sizeof "pitviper");
    writer_u16(writer, DW_LANG_Python);
    writer_bytes(writer, unit->source->title, strlen(unit->source->title) + 1);
    writer_u32(writer, 0); /* .debug_line, from its start */
    writer_u64(writer, unit->svma);
    writer_u64(writer, unit->size);
    end_unit(writer, start);
}

void elf_image_encode_debug_aranges(struct writer *writer, const struct elf_image_unit *unit)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    writer_u16(writer, ARANGES_VERSION);
    writer_u32(writer, 0); /* .debug_info, from its start */
    writer_u8(writer, ADDRESS_BYTES);
    writer_u8(writer, 0);
    writer_align(writer, start, 2 * ADDRESS_BYTES);
    writer_u64(writer, unit->svma);
    writer_u64(writer, unit->size);
    writer_zeros(writer, 2 * ADDRESS_BYTES);
    end_unit(writer, start);
}
