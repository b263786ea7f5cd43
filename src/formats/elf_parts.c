/* Numbers are in this machine's byte order, which is little-endian wherever this runs. */
#include "formats/elf_parts.h"

#include <string.h>

enum { NOTE_NAME_BYTES = 4 };

void elf_parts_encode_header(struct writer *writer, const struct elf_parts_header *header)
{
    Elf64_Ehdr elf = {
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = header->machine,
        .e_version = EV_CURRENT,
        .e_phoff = sizeof elf,
        .e_shoff = header->sections_fileoff,
        .e_ehsize = sizeof elf,
        .e_phentsize = sizeof(Elf64_Phdr),
        .e_phnum = header->segment_count,
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = header->section_count,
        .e_shstrndx = header->names_section};
    writer_bytes(writer, &elf, sizeof elf);
}

void elf_parts_encode_segment(struct writer *writer, uint32_t type, uint64_t start, uint64_t end)
{
    Elf64_Phdr header = {.p_type = type,
                         .p_flags = type == PT_LOAD ? PF_R | PF_X : PF_R,
                         .p_offset = start,
                         .p_vaddr = start,
                         .p_paddr = start,
                         .p_filesz = end - start,
                         .p_memsz = end - start,
                         .p_align = type == PT_LOAD ? ELF_PARTS_ALIGNMENT : 4};
    writer_bytes(writer, &header, sizeof header);
}

void elf_parts_encode_note(struct writer *writer)
{
    Elf64_Nhdr note = {NOTE_NAME_BYTES, ELF_PARTS_BUILD_ID_BYTES, NT_GNU_BUILD_ID};
    writer_bytes(writer, &note, sizeof note);
    writer_bytes(writer, "GNU", NOTE_NAME_BYTES);
    writer_zeros(writer, ELF_PARTS_BUILD_ID_BYTES);
}

void elf_parts_encode_names(struct writer *writer, const struct elf_part *parts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        writer_bytes(writer, parts[i].name, strlen(parts[i].name) + 1);
}

Elf64_Word elf_part_name(const struct elf_part *parts, size_t part)
{
    size_t offset = 0;
    for (size_t i = 0; i < part; i++)
        offset += strlen(parts[i].name) + 1;
    return (Elf64_Word)offset;
}

Elf64_Shdr elf_part_header(const struct elf_part *part, uint64_t start, uint64_t bytes)
{
    return (Elf64_Shdr){.sh_type = (Elf64_Word)part->type,
                        .sh_flags = part->flags,
                        .sh_addr = part->flags & SHF_ALLOC ? start : 0,
                        .sh_offset = start,
                        .sh_size = bytes,
                        .sh_link = (Elf64_Word)part->link,
                        .sh_addralign = part->alignment,
                        .sh_entsize = part->entry_bytes};
}
