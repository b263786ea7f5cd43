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

bool elf_file_section(const struct elf_file *elf, uint32_t type, Elf64_Shdr *ret_section)
{
    for (uint64_t i = 0; i < elf->header.e_shnum; i++) {
        uint64_t fileoff = elf->header.e_shoff + i * sizeof *ret_section;
        if (fileoff < elf->header.e_shoff ||
            !read_at(elf, fileoff, ret_section, sizeof *ret_section))
            return false;
        if (ret_section->sh_type == type)
            return true;
    }
    return false;
}

const uint8_t *elf_file_bytes(const struct elf_file *elf, uint64_t svma, size_t length)
{
    for (uint64_t i = 0; i < elf->header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_at(elf, elf->header.e_phoff + i * sizeof segment, &segment, sizeof segment))
            return NULL;
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

/* The content of a section; empty when it lies outside the file. */
static struct cursor section_content(const struct elf_file *elf, const Elf64_Shdr *section)
{
    struct cursor cursor = elf->cursor;
    cursor_seek(&cursor, section->sh_offset);
    return cursor_sub(&cursor, section->sh_type == SHT_NOBITS ? 0 : section->sh_size);
}

bool elf_symbols_init(struct elf_symbols *symbols, const struct elf_file *elf, uint32_t type)
{
    Elf64_Shdr table, names;
    if (!elf_file_section(elf, type, &table) ||
        !read_at(elf, elf->header.e_shoff + table.sh_link * sizeof names, &names, sizeof names))
        return false;
    *symbols = (struct elf_symbols){
        .elf = elf, .table = section_content(elf, &table), .names = section_content(elf, &names)};
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
                                          .type = ELF64_ST_TYPE(raw.st_info)};
        return 1;
    }
    return 0;
}
