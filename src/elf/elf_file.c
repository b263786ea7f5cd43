/* Only what is asked for is read, each structure by a bounded copy: the file may be cut short, and
 * its offsets may point anywhere. */
#include "elf/elf_file.h"

#include <errno.h>
#include <string.h>

/* Copies `size` bytes from a place in the file; false when they are not there. */
static bool read_at(const struct elf_file *elf, uint64_t fileoff, void *ret_bytes, size_t size)
{
    struct cursor cursor = elf->cursor;
    cursor_seek(&cursor, fileoff);
    const uint8_t *bytes = cursor_bytes(&cursor, size);
    if (bytes)
        memcpy(ret_bytes, bytes, size);
    return bytes != NULL;
}

int elf_file_open(struct elf_file *elf, const char *source, const void *data, size_t length)
{
    *elf = (struct elf_file){0};
    cursor_init(&elf->cursor, source, data, length);
    if (!read_at(elf, 0, &elf->header, sizeof elf->header) ||
        memcmp(elf->header.e_ident, ELFMAG, SELFMAG) != 0) {
        elf->problem = "this is not an ELF file";
        return -EBADMSG;
    }
    if (elf->header.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf->header.e_ident[EI_DATA] != ELFDATA2LSB) {
        elf->problem = "this is an ELF file of another kind of machine";
        return -ENOTSUP;
    }
    return 0;
}

static bool section_at(const struct elf_file *elf, uint64_t number, Elf64_Shdr *ret_section)
{
    uint64_t fileoff = elf->header.e_shoff + number * sizeof *ret_section;
    return number < elf->header.e_shnum && fileoff >= elf->header.e_shoff &&
           read_at(elf, fileoff, ret_section, sizeof *ret_section);
}

bool elf_file_section(const struct elf_file *elf, uint32_t type, Elf64_Shdr *ret_section)
{
    for (uint64_t i = 0; section_at(elf, i, ret_section); i++) {
        if (ret_section->sh_type == type)
            return true;
    }
    return false;
}

bool elf_file_section_named(const struct elf_file *elf, const char *name, Elf64_Shdr *ret_section)
{
    Elf64_Shdr names;
    if (!section_at(elf, elf->header.e_shstrndx, &names))
        return false;
    struct cursor texts = elf_file_content(elf, &names);
    for (uint64_t i = 0; section_at(elf, i, ret_section); i++) {
        struct cursor text = texts;
        size_t length;
        cursor_seek(&text, ret_section->sh_name);
        const char *found = cursor_string(&text, &length);
        if (found && strcmp(found, name) == 0)
            return true;
    }
    return false;
}

struct cursor elf_file_content(const struct elf_file *elf, const Elf64_Shdr *section)
{
    struct cursor cursor = elf->cursor;
    if (section->sh_flags & SHF_COMPRESSED)
        cursor_fail(&cursor, "the section is compressed");
    if (section->sh_type != SHT_NOBITS)
        cursor_seek(&cursor, section->sh_offset);
    return cursor_sub(&cursor, section->sh_type == SHT_NOBITS ? 0 : section->sh_size);
}

bool elf_file_segment(const struct elf_file *elf, size_t number, Elf64_Phdr *ret_segment)
{
    uint64_t fileoff = elf->header.e_phoff + number * sizeof *ret_segment;
    return number < elf->header.e_phnum && fileoff >= elf->header.e_phoff &&
           read_at(elf, fileoff, ret_segment, sizeof *ret_segment);
}

const uint8_t *elf_file_bytes(const struct elf_file *elf, uint64_t svma, size_t length)
{
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
        if (segment.p_type != PT_LOAD || svma < segment.p_vaddr ||
            svma - segment.p_vaddr >= segment.p_filesz)
            continue;
        struct cursor cursor = elf->cursor;
        cursor_seek(&cursor, segment.p_offset);
        cursor_skip(&cursor, svma - segment.p_vaddr);
        return cursor_bytes(&cursor, length);
    }
    return NULL;
}

const uint8_t *elf_build_id_in_notes(const void *notes, size_t length, size_t *ret_length)
{
    struct cursor cursor;
    cursor_init(&cursor, "notes", notes, length);
    while (cursor_left(&cursor) >= sizeof(Elf64_Nhdr)) {
        uint32_t name_bytes = cursor_u32(&cursor), id_bytes = cursor_u32(&cursor);
        uint32_t type = cursor_u32(&cursor);
        const uint8_t *name = cursor_bytes(&cursor, ((size_t)name_bytes + 3) & ~(size_t)3);
        const uint8_t *id = cursor_bytes(&cursor, id_bytes);
        if (!name || !id)
            return NULL;
        if (type == NT_GNU_BUILD_ID && name_bytes == sizeof ELF_NOTE_GNU && id_bytes &&
            memcmp(name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            *ret_length = id_bytes;
            return id;
        }
        cursor_skip(&cursor, -(size_t)id_bytes & 3);
        if (!cursor_ok(&cursor))
            return NULL;
    }
    return NULL;
}

/* By the sections, which debug files have as well; by the segments in files that were robbed of
 * their sections. */
const uint8_t *elf_file_build_id(const struct elf_file *elf, size_t *ret_length)
{
    *ret_length = 0;
    Elf64_Shdr section;
    if (elf_file_section_named(elf, ".note.gnu.build-id", &section)) {
        struct cursor notes = elf_file_content(elf, &section);
        const uint8_t *id = elf_build_id_in_notes(notes.data, notes.length, ret_length);
        if (id)
            return id;
    }
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
        if (segment.p_type != PT_NOTE)
            continue;
        struct cursor notes = elf->cursor;
        cursor_seek(&notes, segment.p_offset);
        notes = cursor_sub(&notes, segment.p_filesz);
        const uint8_t *id = elf_build_id_in_notes(notes.data, notes.length, ret_length);
        if (id)
            return id;
    }
    return NULL;
}

bool elf_symbols_init(struct elf_symbols *symbols, const struct elf_file *elf, uint32_t type)
{
    Elf64_Shdr table, names;
    if (!elf_file_section(elf, type, &table) || !section_at(elf, table.sh_link, &names))
        return false;
    *symbols = (struct elf_symbols){
        .elf = elf, .table = elf_file_content(elf, &table), .names = elf_file_content(elf, &names)};
    return cursor_ok(&symbols->table) && cursor_ok(&symbols->names);
}

int elf_symbols_next(struct elf_symbols *symbols, struct elf_symbol *ret_symbol)
{
    while (cursor_left(&symbols->table) >= sizeof(Elf64_Sym)) {
        Elf64_Sym raw;
        memcpy(&raw, cursor_bytes(&symbols->table, sizeof raw), sizeof raw);
        struct cursor names = symbols->names;
        size_t length;
        cursor_seek(&names, raw.st_name);
        const char *name = cursor_string(&names, &length);
        if (raw.st_shndx == SHN_UNDEF || !name || !length)
            continue;
        *ret_symbol = (struct elf_symbol){.name = name,
                                          .svma = raw.st_value,
                                          .size = raw.st_size,
                                          .section = raw.st_shndx,
                                          .type = ELF64_ST_TYPE(raw.st_info),
                                          .binding = ELF64_ST_BIND(raw.st_info),
                                          .visibility = ELF64_ST_VISIBILITY(raw.st_other)};
        return 1;
    }
    return 0;
}
