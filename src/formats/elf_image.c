/* One shared object for many generated functions.
 *
 *     0x0      ELF header, program headers, build-id note
 *     0x...    .text           the code, every function at its distance from the others
 *     -------- end of the only segment that is loaded
 *              .eh_frame       one CIE per kind of function, its FDEs per function
 *              .eh_frame_hdr   the FDEs sorted by address: perf 6.1 finds them only here
 *              .symtab .strtab .shstrtab
 *              .debug_line .debug_info .debug_abbrev .debug_aranges   (when there are lines)
 *              section headers
 *     (hole)
 *              .eh_frame, .eh_frame_hdr once more, where find_room said
 *
 * perf 7.2 (libdw) takes the segment for the module's place in the process, whatever part of it the
 * recording maps. Where that covers another file, stacks through either are lost: all of them, from
 * the moment on when the other is first seen. So the segment is hardly more than the code: the
 * unwinding data is outside, and the headers stand directly before the first function, not in a
 * page of their own. (The code that pitviper makes leaves room for them: code_arena.c.)
 *
 * Unwinding data is there twice because its readers differ. libdw takes it from the file, by
 * program headers. libunwind inside perf looks the section .eh_frame_hdr up by its name and then
 * reads it at the address where it would be if the whole file were mapped: behind the code, where
 * the process has something else. So the copy is as far away as the next free place in the process,
 * which costs nothing but a hole in the file.
 *
 * Everything is written twice by the same code: first into a writer without room, which tells where
 * each section starts and ends, then into memory of just that size, where headers and distances
 * between sections are known.
 *
 * Two functions may differ in nothing but their address or line, and two dumps in nothing but that
 * either; programs cache images by build-id. So it is made from every byte of the image. */
#include "formats/elf_image.h"

#include "base/hashtable.h"
#include "formats/dwarf_lines.h"
#include "formats/elf_image_lines.h"
#include "formats/elf_parts.h"
#include "formats/jit_frame.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum section {
    NO_SECTION,
    NOTE,
    TEXT,
    EH_FRAME,
    EH_FRAME_HDR,
    SYMTAB,
    STRTAB,
    SHSTRTAB,
    ROOM_EH_FRAME,
    ROOM_EH_FRAME_HDR,
    DEBUG_LINE,
    DEBUG_INFO,
    DEBUG_ABBREV,
    DEBUG_ARANGES,
    SECTIONS,
    SECTIONS_WITHOUT_LINES = DEBUG_LINE
};

enum { PROGRAM_HEADERS = 3, NOTE_NAME_BYTES = 4 };

/* What stands before the code. */
enum {
    HEADER_BYTES = sizeof(Elf64_Ehdr) + PROGRAM_HEADERS * sizeof(Elf64_Phdr) + sizeof(Elf64_Nhdr) +
                   NOTE_NAME_BYTES + ELF_IMAGE_BUILD_ID_BYTES
};

static const struct elf_part SECTION_KINDS[SECTIONS] = {
    [NO_SECTION] = {.name = ""},
    [NOTE] = {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 4, 0, 0},
    [TEXT] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16, 0, 0},
    [EH_FRAME] = {".eh_frame", SHT_PROGBITS, SHF_ALLOC, 8, 0, 0},
    [EH_FRAME_HDR] = {".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 4, 0, 0},
    [SYMTAB] = {".symtab", SHT_SYMTAB, 0, 8, STRTAB, sizeof(Elf64_Sym)},
    [STRTAB] = {".strtab", SHT_STRTAB, 0, 1, 0, 0},
    [SHSTRTAB] = {".shstrtab", SHT_STRTAB, 0, 1, 0, 0},
    [ROOM_EH_FRAME] = {".eh_frame.room", SHT_PROGBITS, 0, 8, 0, 0},
    [ROOM_EH_FRAME_HDR] = {".eh_frame_hdr.room", SHT_PROGBITS, 0, 4, 0, 0},
    [DEBUG_LINE] = {".debug_line", SHT_PROGBITS, 0, 1, 0, 0},
    [DEBUG_INFO] = {".debug_info", SHT_PROGBITS, 0, 1, 0, 0},
    [DEBUG_ABBREV] = {".debug_abbrev", SHT_PROGBITS, 0, 1, 0, 0},
    [DEBUG_ARANGES] = {".debug_aranges", SHT_PROGBITS, 0, 1, 0, 0},
};

struct frame {
    struct jit_frame parts;
    size_t function; /* whose code it is for */
    uint64_t cie;    /* offset in .eh_frame */
    uint64_t fde;    /* offset in the file of the FDE written last */
};

struct image {
    const struct elf_image_source *source;
    uint64_t base_avma;
    uint64_t text_svma, text_bytes;
    struct elf_image_lines lines;
    VECTOR(struct frame) frames; /* ascending; at least one per function */
    uint8_t *cies;               /* the start of .eh_frame: all CIEs; owned */
    size_t cie_bytes;
    size_t without_frames; /* functions */

    uint64_t headers_fileoff; /* of the section headers */
    uint64_t room_fileoff;    /* of the copy of the unwinding data; 0: there is none */
    size_t room_offset;       /* of it in memory */

    /* Of each section in the file; known after the first pass. */
    uint64_t starts[SECTIONS], ends[SECTIONS];
};

static size_t section_count(const struct image *image)
{
    return image->lines.rows.count ? SECTIONS : SECTIONS_WITHOUT_LINES;
}

static uint64_t svma_of(const struct image *image, size_t function)
{
    return image->source->functions[function].avma - image->base_avma;
}

static uint64_t size_of(const struct image *image, size_t function)
{
    return image->source->functions[function].code->load.code_size;
}

/* Gives the frame a CIE: one of the same content that is there already, or a new one. */
static int place_cie(struct image *image, struct hashtable *known, struct frame *frame)
{
    enum { MOST_CIE_BYTES = 256 };
    uint8_t bytes[MOST_CIE_BYTES];
    struct writer writer;
    writer_init(&writer, bytes, sizeof bytes);
    jit_frame_encode_cie(&writer, &frame->parts);
    if (!writer_fits(&writer))
        return -EBADMSG;
    uint64_t hash = hash_bytes(bytes, writer.length), offset;
    struct hashtable_probe probe = hashtable_probe(known, hash);
    while (hashtable_next(&probe, &offset)) {
        if (writer.length <= image->cie_bytes - offset &&
            memcmp(image->cies + offset, bytes, writer.length) == 0) {
            frame->cie = offset;
            return 0;
        }
    }
    uint8_t *grown = realloc(image->cies, image->cie_bytes + writer.length);
    if (!grown)
        return -ENOMEM;
    image->cies = grown;
    memcpy(grown + image->cie_bytes, bytes, writer.length);
    frame->cie = image->cie_bytes;
    image->cie_bytes += writer.length;
    return hashtable_add(known, hash, frame->cie);
}

static int add_frame(struct image *image, struct hashtable *known, size_t function,
                     const struct jit_frame *parts)
{
    struct frame frame = {.parts = *parts, .function = function};
    int error = place_cie(image, known, &frame);
    return error ? error : vector_push(&image->frames, frame);
}

/* Unwinding data that can't be used counts as none. */
static int add_frames(struct image *image, struct hashtable *known, size_t function,
                      struct jit_frames *scratch)
{
    size_t before = image->frames.count;
    int error = jit_frames_parse(scratch, &image->source->functions[function].code->unwinding,
                                 size_of(image, function));
    for (size_t i = 0; i < scratch->list.count && !error; i++)
        error = add_frame(image, known, function, &scratch->list.items[i]);
    if (!error || error == -ENOMEM)
        return error;
    image->frames.count = before;
    image->without_frames++;
    struct jit_frame parts;
    error =
        jit_frame_by_frame_pointer(image->source->elf_machine, size_of(image, function), &parts);
    return error ? error : add_frame(image, known, function, &parts);
}

static int find_frames(struct image *image)
{
    struct hashtable known = {0};
    struct jit_frames scratch = {0};
    int error = 0;
    for (size_t i = 0; i < image->source->count && !error; i++)
        error = add_frames(image, &known, i, &scratch);
    vector_done(&scratch.list);
    hashtable_done(&known);
    return error;
}

static void encode_text(struct writer *writer, const struct image *image)
{
    for (size_t i = 0; i < image->source->count; i++) {
        const struct jitdump_load *load = &image->source->functions[i].code->load;
        writer_zeros(writer, svma_of(image, i) - writer->length);
        if (load->code)
            writer_bytes(writer, load->code, load->code_size);
        else
            writer_zeros(writer, load->code_size);
    }
}

/* `moved`: how far the place in the file is from that in memory. */
static void encode_eh_frame(struct writer *writer, struct image *image, uint64_t moved)
{
    uint64_t start = writer->length + moved;
    writer_bytes(writer, image->cies, image->cie_bytes);
    for (size_t i = 0; i < image->frames.count; i++) {
        struct frame *frame = &image->frames.items[i];
        frame->fde = writer->length + moved;
        jit_frame_encode_fde(writer, &frame->parts,
                             &(struct jit_frame_place){.section = moved,
                                                       .cie = start + frame->cie,
                                                       .code = svma_of(image, frame->function)});
    }
    writer_u32(writer, 0); /* the end */
}

static void encode_eh_frame_hdr(struct writer *writer, const struct image *image, uint64_t moved,
                                uint64_t eh_frame_fileoff)
{
    /* Version 1; a pointer relative to itself, a count, and a table relative to this section. */
    static const uint8_t encodings[] = {1, 0x1b, 0x03, 0x3b};
    uint64_t start = writer->length + moved;
    writer_bytes(writer, encodings, sizeof encodings);
    writer_u32(writer, (uint32_t)(eh_frame_fileoff - (writer->length + moved)));
    writer_u32(writer, (uint32_t)image->frames.count);
    for (size_t i = 0; i < image->frames.count; i++) {
        const struct frame *frame = &image->frames.items[i];
        uint64_t svma = svma_of(image, frame->function) + frame->parts.start;
        writer_u32(writer, (uint32_t)(svma - start));
        writer_u32(writer, (uint32_t)(frame->fde - start));
    }
}

static void encode_symtab(struct writer *writer, const struct image *image)
{
    writer_zeros(writer, sizeof(Elf64_Sym));
    size_t name = 1;
    for (size_t i = 0; i < image->source->count; i++) {
        Elf64_Sym symbol = {.st_name = (Elf64_Word)name,
                            .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
                            .st_shndx = TEXT,
                            .st_value = svma_of(image, i),
                            .st_size = size_of(image, i)};
        writer_bytes(writer, &symbol, sizeof symbol);
        name += image->source->functions[i].code->load.name_length + 1;
    }
}

static void encode_strtab(struct writer *writer, const struct image *image)
{
    writer_u8(writer, 0);
    for (size_t i = 0; i < image->source->count; i++) {
        const struct jitdump_load *load = &image->source->functions[i].code->load;
        writer_bytes(writer, load->name, load->name_length + 1);
    }
}

static void encode_section(struct writer *writer, struct image *image, enum section section)
{
    struct dwarf_unit unit = {
        .title = image->source->title, .svma = image->text_svma, .size = image->text_bytes};
    switch (section) {
    case NOTE:
        return elf_parts_encode_note(writer);
    case TEXT:
        return encode_text(writer, image);
    case EH_FRAME:
        return encode_eh_frame(writer, image, 0);
    case EH_FRAME_HDR:
        return encode_eh_frame_hdr(writer, image, 0, image->starts[EH_FRAME]);
    case SYMTAB:
        return encode_symtab(writer, image);
    case STRTAB:
        return encode_strtab(writer, image);
    case SHSTRTAB:
        return elf_parts_encode_names(writer, SECTION_KINDS, SECTIONS);
    case DEBUG_LINE:
        return elf_image_encode_debug_line(writer, &image->lines, image->source, image->base_avma);
    case DEBUG_INFO:
        return dwarf_encode_info(writer, &unit);
    case DEBUG_ABBREV:
        return dwarf_encode_abbrev(writer);
    case DEBUG_ARANGES:
        return dwarf_encode_aranges(writer, &unit);
    default:
        return;
    }
}

/* The copy takes the name by which it is looked for; without one, there are two empty sections. */
static enum section named_like(const struct image *image, size_t section)
{
    if (section == EH_FRAME_HDR && image->room_fileoff)
        return ROOM_EH_FRAME_HDR;
    if (section == ROOM_EH_FRAME_HDR && image->room_fileoff)
        return EH_FRAME_HDR;
    return (enum section)section;
}

static void encode_section_headers(struct writer *writer, struct image *image)
{
    writer_align(writer, 0, 8);
    image->headers_fileoff = writer->length;
    for (size_t i = 0; i < section_count(image); i++) {
        Elf64_Shdr header =
            elf_part_header(&SECTION_KINDS[i], image->starts[i], image->ends[i] - image->starts[i]);
        header.sh_name = elf_part_name(SECTION_KINDS, named_like(image, i));
        if (i == SYMTAB)
            header.sh_info = 1; /* the first symbol that is not local */
        if (i == ROOM_EH_FRAME || i == ROOM_EH_FRAME_HDR)
            header.sh_addr = header.sh_offset;
        writer_bytes(writer, &header, sizeof header);
    }
}

static void encode_room(struct writer *writer, struct image *image)
{
    writer_align(writer, 0, 8);
    image->room_offset = writer->length;
    uint64_t moved = image->room_fileoff - writer->length;
    image->starts[ROOM_EH_FRAME] = writer->length + moved;
    encode_eh_frame(writer, image, moved);
    image->ends[ROOM_EH_FRAME] = image->starts[ROOM_EH_FRAME_HDR] = writer->length + moved;
    encode_eh_frame_hdr(writer, image, moved, image->starts[ROOM_EH_FRAME]);
    image->ends[ROOM_EH_FRAME_HDR] = writer->length + moved;
}

static void encode(struct writer *writer, struct image *image)
{
    const uint64_t *starts = image->starts, *ends = image->ends;
    struct elf_parts_header header = {.machine = (uint16_t)image->source->elf_machine,
                                      .segment_count = PROGRAM_HEADERS,
                                      .section_count = (uint16_t)section_count(image),
                                      .sections_fileoff = image->headers_fileoff,
                                      .names_section = SHSTRTAB};
    elf_parts_encode_header(writer, &header);
    elf_parts_encode_segment(writer, PT_LOAD, 0, ends[TEXT]);
    elf_parts_encode_segment(writer, PT_NOTE, starts[NOTE], ends[NOTE]);
    elf_parts_encode_segment(writer, PT_GNU_EH_FRAME, starts[EH_FRAME_HDR], ends[EH_FRAME_HDR]);
    for (size_t i = NOTE; i < section_count(image); i++) {
        if (i == ROOM_EH_FRAME || i == ROOM_EH_FRAME_HDR)
            continue;
        if (i == TEXT)
            writer_zeros(writer, image->text_svma - writer->length);
        else
            writer_align(writer, 0, SECTION_KINDS[i].alignment);
        image->starts[i] = writer->length;
        encode_section(writer, image, (enum section)i);
        image->ends[i] = writer->length;
    }
    encode_section_headers(writer, image);
    if (image->room_fileoff)
        encode_room(writer, image);
}

/* Not a cryptographic sum, but 160 bits of which each depends on all of the content: three lanes
 * with a start of their own. */
static void make_build_id(const uint8_t *data, size_t length, uint8_t ret_id[])
{
    uint64_t lanes[3] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9};
    for (size_t offset = 0; offset < length; offset += sizeof(uint64_t)) {
        uint64_t word = 0;
        size_t left = length - offset;
        memcpy(&word, data + offset, left < sizeof word ? left : sizeof word);
        for (int i = 0; i < 3; i++) {
            lanes[i] = (lanes[i] ^ word) * 0x9fb21c651e98df25;
            lanes[i] ^= lanes[i] >> (29 + i);
        }
    }
    for (int i = 0; i < 3; i++)
        lanes[i] = hash_u64(lanes[i] + length);
    memcpy(ret_id, lanes, ELF_IMAGE_BUILD_ID_BYTES);
}

/* Asks for a place for the copy, behind everything else in the file. */
static void find_room(struct image *image, uint64_t length)
{
    const struct elf_image_source *source = image->source;
    if (!source->find_room)
        return;
    uint64_t bytes = image->ends[EH_FRAME_HDR] - image->starts[EH_FRAME];
    uint64_t after = (image->base_avma + length + ELF_IMAGE_PAGE) & ~(uint64_t)(ELF_IMAGE_PAGE - 1);
    uint64_t avma = source->find_room(source->context, after, bytes);
    if (avma >= after && avma - image->base_avma <= ELF_IMAGE_MOST_SPAN_BYTES)
        image->room_fileoff = avma - image->base_avma;
}

static void measure(struct image *image, size_t *ret_length)
{
    struct writer writer;
    writer_init(&writer, NULL, 0);
    encode(&writer, image);
    *ret_length = writer.length;
}

static int encode_twice(struct image *image, struct elf_image *ret_image)
{
    size_t length;
    measure(image, &length);
    find_room(image, length);
    if (image->room_fileoff)
        measure(image, &length);
    if (length > UINT32_MAX)
        return -EFBIG;
    ret_image->data = malloc(length);
    if (!ret_image->data)
        return -ENOMEM;
    struct writer writer;
    writer_init(&writer, ret_image->data, length);
    encode(&writer, image);
    ret_image->length = length;
    ret_image->frames_end_fileoff = image->ends[EH_FRAME_HDR];
    if (image->room_fileoff) {
        ret_image->hole_offset = image->room_offset;
        ret_image->hole_bytes = image->room_fileoff - image->room_offset;
        ret_image->room_avma = image->base_avma + image->room_fileoff;
        ret_image->room_bytes = image->ends[ROOM_EH_FRAME_HDR] - image->room_fileoff;
    }
    make_build_id(ret_image->data, length, ret_image->build_id);
    memcpy(ret_image->data + image->ends[NOTE] - ELF_IMAGE_BUILD_ID_BYTES, ret_image->build_id,
           ELF_IMAGE_BUILD_ID_BYTES);
    return 0;
}

int elf_image_make(const struct elf_image_source *source, struct elf_image *ret_image)
{
    *ret_image = (struct elf_image){0};
    struct image image = {.source = source};
    image.base_avma =
        (source->functions[0].avma - HEADER_BYTES) & ~(uint64_t)(ELF_PARTS_ALIGNMENT - 1);
    image.text_svma = svma_of(&image, 0);
    image.text_bytes =
        svma_of(&image, source->count - 1) + size_of(&image, source->count - 1) - image.text_svma;
    if (image.text_bytes > ELF_IMAGE_MOST_SPAN_BYTES)
        return -EFBIG;
    int error = elf_image_lines_init(&image.lines, source, image.base_avma);
    if (error < 0)
        return error;
    error = find_frames(&image);
    if (!error)
        error = encode_twice(&image, ret_image);
    ret_image->base_avma = image.base_avma;
    ret_image->without_frames = image.without_frames;
    elf_image_lines_done(&image.lines);
    vector_done(&image.frames);
    free(image.cies);
    return error;
}

void elf_image_done(struct elf_image *image)
{
    free(image->data);
    *image = (struct elf_image){0};
}
