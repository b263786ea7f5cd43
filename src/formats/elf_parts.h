/* What every ELF image that we make has: headers, a build-id note, section names. Addresses equal
 * file offsets. Everything is written twice: into a writer without room, to learn where each
 * section is, then into memory of just that size. */
#ifndef PITVIPER_FORMATS_ELF_PARTS_H
#define PITVIPER_FORMATS_ELF_PARTS_H

#include "base/writer.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

/* Segments are aligned no further than their code needs: libdw takes all of the first and the last
 * unit for the file's. */
enum { ELF_PARTS_BUILD_ID_BYTES = 20, ELF_PARTS_ALIGNMENT = 16 };

/* A kind of section. An image has an array of them; number 0 is the empty one. */
struct elf_part {
    const char *name;
    uint64_t type; /* SHT_... */
    uint64_t flags;
    uint64_t alignment;
    uint64_t link; /* number of another section, or 0 */
    uint64_t entry_bytes;
};

struct elf_parts_header {
    uint16_t machine; /* EM_... */
    uint16_t segment_count;
    uint16_t section_count;
    uint16_t names_section; /* number of .shstrtab */
    uint64_t sections_fileoff;
};

/* The header of a shared object; its program headers follow directly. */
void elf_parts_encode_header(struct writer *writer, const struct elf_parts_header *header);
void elf_parts_encode_segment(struct writer *writer, uint32_t type, uint64_t start, uint64_t end);

/* The build-id note, with zeros at its end in the place of the id. */
void elf_parts_encode_note(struct writer *writer);

/* .shstrtab, and where a section's name is in it. */
void elf_parts_encode_names(struct writer *writer, const struct elf_part *parts, size_t count);
Elf64_Word elf_part_name(const struct elf_part *parts, size_t part);

/* A section header; it has no name yet. Sections that are loaded have their address. */
Elf64_Shdr elf_part_header(const struct elf_part *part, uint64_t start, uint64_t bytes);

#endif
