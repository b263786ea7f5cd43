/* A shared object whose code nobody runs: only its addresses count.
 *
 *     0x0      ELF header, program headers, build-id note
 *     0x10000  .text     a slot of four bytes (a nop) per (function, line):
 *
 *                  | f:10 | f:11 | f:13 | g:20 | g:21 | ...
 *                    ^ a sample in line 10 of f is at the second byte of its slot
 *
 *              .symtab .strtab .shstrtab             a symbol per function, over its slots
 *              .debug_line .debug_info .debug_abbrev .debug_aranges
 *              section headers
 *
 * .text comes first, so its addresses are final however many functions follow. It has no gaps, so
 * all lines are one sequence, in which a row mostly takes a byte. It does not start earlier because
 * perf 7.2 has libdw put the image at 0x10000 but looks it up by addresses that do not count that
 * in: those below find nothing, and each is handed to a slow addr2line instead.
 *
 * Lines are there twice, at these addresses and as mapped at PYTHON_IMAGE_BASE_AVMA, with a section
 * without content there: for callers in `perf report --children --sort srcline` perf 6.1 asks for
 * the address in the process. (Of other object files it shows no lines then.) */
#include "formats/python_image.h"

#include "base/checked.h"
#include "formats/dwarf_lines.h"
#include "formats/elf_parts.h"

#include <errno.h>
#include <string.h>

enum section {
    NO_SECTION,
    NOTE,
    TEXT,
    SYMTAB,
    STRTAB,
    SHSTRTAB,
    DEBUG_LINE,
    DEBUG_INFO,
    DEBUG_ABBREV,
    DEBUG_ARANGES,
    MAPPED,
    SECTIONS
};

#ifdef __aarch64__
static const uint8_t NOP[] = {0x1f, 0x20, 0x03, 0xd5};
enum { MACHINE = EM_AARCH64 };
#else
static const uint8_t NOP[] = {0x0f, 0x1f, 0x40, 0x00};
enum { MACHINE = EM_X86_64 };
#endif

enum {
    SEGMENTS = 2,
    UNITS = 2,
    TEXT_SVMA = 0x10000,
    SLOT_BYTES = sizeof NOP,
    MOST_SLOTS = (PYTHON_IMAGE_SPAN_BYTES - TEXT_SVMA) / SLOT_BYTES,

    /* Of a text that is longer the first and last HALF are kept. */
    MOST_TEXT_BYTES = 8192,
    HALF_TEXT_BYTES = MOST_TEXT_BYTES / 2,
    MOST_CLEAN_BYTES = 2 * MOST_TEXT_BYTES + 8,
};

static const struct elf_part PARTS[SECTIONS] = {
    [NO_SECTION] = {.name = ""},
    [NOTE] = {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 4, 0, 0},
    [TEXT] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_SVMA, 0, 0},
    [SYMTAB] = {".symtab", SHT_SYMTAB, 0, 8, STRTAB, sizeof(Elf64_Sym)},
    [STRTAB] = {".strtab", SHT_STRTAB, 0, 1, 0, 0},
    [SHSTRTAB] = {".shstrtab", SHT_STRTAB, 0, 1, 0, 0},
    [DEBUG_LINE] = {".debug_line", SHT_PROGBITS, 0, 1, 0, 0},
    [DEBUG_INFO] = {".debug_info", SHT_PROGBITS, 0, 1, 0, 0},
    [DEBUG_ABBREV] = {".debug_abbrev", SHT_PROGBITS, 0, 1, 0, 0},
    [DEBUG_ARANGES] = {".debug_aranges", SHT_PROGBITS, 0, 1, 0, 0},
    [MAPPED] = {".text.mapped", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_SVMA, 0, 0},
};

int python_image_init(struct python_image *image)
{
    *image = (struct python_image){0};
    if (strings_init(&image->symbols) < 0)
        return -ENOMEM;
    if (strings_init(&image->files) < 0) {
        strings_done(&image->symbols);
        return -ENOMEM;
    }
    return 0;
}

void python_image_done(struct python_image *image)
{
    strings_done(&image->symbols);
    strings_done(&image->files);
    vector_done(&image->functions);
    vector_done(&image->slots);
}

/* --- names ----------------------------------------------------------------------------------- */

static bool is_inside_character(char byte)
{
    return ((uint8_t)byte & 0xc0) == 0x80;
}

/* U+D800 to U+DFFF in three bytes, which is how lone surrogates come. */
static bool is_surrogate(const char *text, size_t left)
{
    return left >= 3 && (uint8_t)text[0] == 0xed && (uint8_t)text[1] >= 0xa0 &&
           is_inside_character(text[1]) && is_inside_character(text[2]);
}

/* Readers get one line of text without NUL. */
static void write_clean(struct writer *writer, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '\n' || c == '\r' || c == '\0') {
            writer_bytes(writer, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\0", 2);
        } else if (is_surrogate(text + i, length - i)) {
            writer_bytes(writer, "\\u", 2);
            writer_hex(writer, 0xd000 | (uint32_t)(text[i + 1] & 0x3f) << 6 |
                                   (uint32_t)(text[i + 2] & 0x3f));
            i += 2;
        } else {
            writer_u8(writer, (uint8_t)c);
        }
    }
}

static void write_text(struct writer *writer, const char *text, size_t length)
{
    if (length <= MOST_TEXT_BYTES) {
        write_clean(writer, text, length);
        return;
    }
    size_t head = HALF_TEXT_BYTES, tail = length - HALF_TEXT_BYTES;
    while (head > 0 && is_inside_character(text[head]))
        head--;
    while (tail < length && is_inside_character(text[tail]))
        tail++;
    write_clean(writer, text, head);
    writer_bytes(writer, "…", strlen("…"));
    write_clean(writer, text + tail, length - tail);
}

static int intern_names(struct python_image *image, const struct python_image_function *function,
                        struct python_image_entry *entry)
{
    char file[MOST_CLEAN_BYTES], symbol[2 * MOST_CLEAN_BYTES];
    struct writer file_writer, symbol_writer;
    writer_init(&file_writer, file, sizeof file);
    write_text(&file_writer, function->file, function->file_length);
    if (!file_writer.length)
        writer_bytes(&file_writer, "<unknown>", strlen("<unknown>"));
    writer_init(&symbol_writer, symbol, sizeof symbol);
    writer_bytes(&symbol_writer, "py::", strlen("py::"));
    write_text(&symbol_writer, function->name, function->name_length);
    writer_u8(&symbol_writer, ':');
    writer_bytes(&symbol_writer, file, file_writer.length);
    if (strings_intern(&image->files, file, file_writer.length, &entry->file) < 0)
        return -ENOMEM;
    return strings_intern(&image->symbols, symbol, symbol_writer.length, &entry->symbol);
}

/* --- slots ----------------------------------------------------------------------------------- */

/* There is room. Lines that do not ascend would not be found again: they are passed over. */
static void add_slots(struct python_image *image, const struct python_image_function *function,
                      struct python_image_entry *entry)
{
    uint32_t first_line = function->first_line ? function->first_line : 1;
    uint32_t last = 0;
    bool has_first_line = false;
    entry->first_slot = (uint32_t)image->slots.count;
    for (size_t i = 0; i <= function->line_count; i++) {
        uint32_t line = UINT32_MAX;
        if (i < function->line_count)
            line = function->lines[i] > 0 ? (uint32_t)function->lines[i] : 0;
        if (!has_first_line && line >= first_line) {
            entry->fallback_slot = (uint32_t)image->slots.count;
            vector_push(&image->slots, first_line);
            has_first_line = true;
            last = first_line;
        }
        if (i < function->line_count && line > last) {
            vector_push(&image->slots, line);
            last = line;
        }
    }
    entry->slot_count = (uint32_t)image->slots.count - entry->first_slot;
}

int python_image_add(struct python_image *image, const struct python_image_function *function,
                     uint32_t *ret_function)
{
    struct python_image_entry entry = {0};
    size_t slots;
    if (!checked_add(image->slots.count, function->line_count, &slots) || slots >= MOST_SLOTS)
        return -EFBIG;
    if (vector_reserve(&image->slots, slots + 1) < 0 ||
        vector_reserve(&image->functions, image->functions.count + 1) < 0 ||
        intern_names(image, function, &entry) < 0)
        return -ENOMEM;
    add_slots(image, function, &entry);
    *ret_function = (uint32_t)image->functions.count;
    return vector_push(&image->functions, entry);
}

static uint64_t svma_of_slot(uint32_t slot)
{
    return TEXT_SVMA + (uint64_t)slot * SLOT_BYTES;
}

uint64_t python_image_address(const struct python_image *image, uint32_t function, int32_t line)
{
    const struct python_image_entry *entry = &image->functions.items[function];
    uint32_t first = entry->first_slot, behind = first + entry->slot_count;
    uint32_t slot = entry->fallback_slot;
    while (line > 0 && first < behind) {
        uint32_t middle = first + (behind - first) / 2;
        if (image->slots.items[middle] == (uint32_t)line) {
            slot = middle;
            break;
        }
        if (image->slots.items[middle] < (uint32_t)line)
            first = middle + 1;
        else
            behind = middle;
    }
    return svma_of_slot(slot) + 1;
}

/* --- the file -------------------------------------------------------------------------------- */

struct encoding {
    const struct python_image *image;
    size_t *names; /* of each symbol, where in .strtab; owned */
    uint64_t headers_fileoff;
    struct dwarf_unit units[UNITS];            /* the code in the file, and as mapped */
    uint64_t starts[SECTIONS], ends[SECTIONS]; /* known after the first pass */
};

static void encode_symtab(struct writer *writer, const struct encoding *encoding)
{
    writer_zeros(writer, sizeof(Elf64_Sym));
    for (size_t i = 0; i < encoding->image->functions.count; i++) {
        const struct python_image_entry *entry = &encoding->image->functions.items[i];
        Elf64_Sym symbol = {.st_name = (Elf64_Word)encoding->names[entry->symbol],
                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                            .st_shndx = TEXT,
                            .st_value = svma_of_slot(entry->first_slot),
                            .st_size = (uint64_t)entry->slot_count * SLOT_BYTES};
        writer_bytes(writer, &symbol, sizeof symbol);
    }
}

/* The first string is the empty one, which is how .strtab starts. */
static void encode_strtab(struct writer *writer, const struct encoding *encoding)
{
    const struct strings *symbols = &encoding->image->symbols;
    size_t start = writer->length;
    for (uint32_t i = 0; i < symbols->texts.count; i++) {
        struct strings_text text = strings_get(symbols, i);
        encoding->names[i] = writer->length - start;
        writer_bytes(writer, text.bytes, text.length + 1);
    }
}

static void encode_lines(struct writer *writer, const struct python_image *image, uint64_t base)
{
    struct dwarf_lines lines;
    dwarf_lines_begin(&lines, writer, &image->files);
    for (size_t i = 0; i < image->functions.count; i++) {
        const struct python_image_entry *entry = &image->functions.items[i];
        if (i == 0)
            dwarf_lines_start(&lines, base + TEXT_SVMA);
        for (uint32_t n = 0; n < entry->slot_count; n++)
            dwarf_lines_row(&lines, base + svma_of_slot(entry->first_slot + n), entry->file,
                            image->slots.items[entry->first_slot + n]);
    }
    if (image->functions.count)
        dwarf_lines_stop(&lines, base + svma_of_slot((uint32_t)image->slots.count));
    dwarf_lines_end(&lines);
}

static void encode_debug(struct writer *writer, struct encoding *encoding, enum section section)
{
    static const uint64_t bases[UNITS] = {0, PYTHON_IMAGE_BASE_AVMA};
    size_t start = writer->length;
    for (size_t i = 0; i < UNITS; i++) {
        struct dwarf_unit *unit = &encoding->units[i];
        uint32_t at = (uint32_t)(writer->length - start);
        unit->title = "python";
        unit->svma = bases[i] + TEXT_SVMA;
        unit->size = encoding->image->slots.count * SLOT_BYTES;
        if (section == DEBUG_LINE) {
            unit->lines_at = at;
            encode_lines(writer, encoding->image, bases[i]);
        } else if (section == DEBUG_INFO) {
            unit->info_at = at;
            dwarf_encode_info(writer, unit);
        } else {
            dwarf_encode_aranges(writer, unit);
        }
    }
}

static void encode_section(struct writer *writer, struct encoding *encoding, enum section section)
{
    const struct python_image *image = encoding->image;
    switch (section) {
    case NOTE:
        return elf_parts_encode_note(writer);
    case TEXT:
        for (size_t i = 0; i < image->slots.count; i++)
            writer_bytes(writer, NOP, sizeof NOP);
        return;
    case SYMTAB:
        return encode_symtab(writer, encoding);
    case STRTAB:
        return encode_strtab(writer, encoding);
    case SHSTRTAB:
        return elf_parts_encode_names(writer, PARTS, SECTIONS);
    case DEBUG_LINE:
    case DEBUG_INFO:
    case DEBUG_ARANGES:
        return encode_debug(writer, encoding, section);
    case DEBUG_ABBREV:
        return dwarf_encode_abbrev(writer);
    default:
        return;
    }
}

static void encode_section_headers(struct writer *writer, struct encoding *encoding)
{
    writer_align(writer, 0, 8);
    encoding->headers_fileoff = writer->length;
    for (size_t i = 0; i < SECTIONS; i++) {
        uint64_t start = encoding->starts[i];
        Elf64_Shdr header = elf_part_header(&PARTS[i], start, encoding->ends[i] - start);
        header.sh_name = elf_part_name(PARTS, i);
        if (i == SYMTAB)
            header.sh_info = 1; /* the first symbol that is not local */
        if (i == MAPPED) {
            header.sh_addr = PYTHON_IMAGE_BASE_AVMA + TEXT_SVMA;
            header.sh_size = encoding->image->slots.count * SLOT_BYTES;
        }
        writer_bytes(writer, &header, sizeof header);
    }
}

static void encode(struct writer *writer, struct encoding *encoding)
{
    struct elf_parts_header header = {.machine = MACHINE,
                                      .segment_count = SEGMENTS,
                                      .section_count = SECTIONS,
                                      .sections_fileoff = encoding->headers_fileoff,
                                      .names_section = SHSTRTAB};
    elf_parts_encode_header(writer, &header);
    elf_parts_encode_segment(writer, PT_LOAD, 0, encoding->ends[TEXT]);
    elf_parts_encode_segment(writer, PT_NOTE, encoding->starts[NOTE], encoding->ends[NOTE]);
    for (size_t i = NOTE; i < SECTIONS; i++) {
        if (i != MAPPED)
            writer_align(writer, 0, PARTS[i].alignment);
        encoding->starts[i] = writer->length;
        encode_section(writer, encoding, (enum section)i);
        encoding->ends[i] = writer->length;
    }
    encode_section_headers(writer, encoding);
}

int python_image_finish(const struct python_image *image,
                        const uint8_t build_id[PYTHON_IMAGE_BUILD_ID_BYTES],
                        struct python_image_bytes *ret_bytes)
{
    *ret_bytes = (struct python_image_bytes){0};
    struct encoding encoding = {.image = image};
    struct writer writer;
    encoding.names = calloc(image->symbols.texts.count, sizeof *encoding.names);
    if (!encoding.names)
        return -ENOMEM;
    writer_init(&writer, NULL, 0);
    encode(&writer, &encoding);
    size_t length = writer.length;
    uint8_t *data = length <= UINT32_MAX ? malloc(length) : NULL;
    if (data) {
        writer_init(&writer, data, length);
        encode(&writer, &encoding);
        memcpy(data + encoding.ends[NOTE] - PYTHON_IMAGE_BUILD_ID_BYTES, build_id,
               PYTHON_IMAGE_BUILD_ID_BYTES);
        *ret_bytes = (struct python_image_bytes){.data = data, .length = length};
    }
    free(encoding.names);
    return data ? 0 : length > UINT32_MAX ? -EFBIG : -ENOMEM;
}
