/* An ELF object file in memory: its sections and its symbols. 64-bit files of this machine's byte
 * order; everything else is refused. Borrows the data; hostile files are survived. */
#ifndef PITVIPER_ELF_ELF_FILE_H
#define PITVIPER_ELF_ELF_FILE_H

#include "base/cursor.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file {
    struct cursor cursor; /* over the whole file; never failed */
    Elf64_Ehdr header;
    const char *problem; /* static; valid after a negative result of elf_file_open */
};

struct elf_symbol {
    const char *name;   /* NUL-terminated; borrowed */
    uint64_t svma;      /* of the first byte */
    uint64_t size;      /* in bytes; 0 when not stated */
    uint8_t type;       /* STT_FUNC, ... */
    uint8_t binding;    /* STB_GLOBAL, ... */
    uint8_t visibility; /* STV_DEFAULT, ... */
    uint16_t section;   /* its index, or SHN_ABS, ... */
};

/* Walks one symbol table. */
struct elf_symbols {
    const struct elf_file *elf;
    struct cursor table;
    struct cursor names;
};

/* 0; -EBADMSG when it is no ELF file or damaged, -ENOTSUP when it is of another kind of machine. */
int elf_file_open(struct elf_file *elf, const char *source, const void *data, size_t length);

/* The first section of a type (SHT_SYMTAB, ...); false when there is none. */
bool elf_file_section(const struct elf_file *elf, uint32_t type, Elf64_Shdr *ret_section);

/* The section of a name (".eh_frame"); false when there is none. */
bool elf_file_section_named(const struct elf_file *elf, const char *name, Elf64_Shdr *ret_section);

/* The content of a section; a failed cursor when it lies outside the file or is compressed, an
 * empty one when it has none in this file (SHT_NOBITS). */
struct cursor elf_file_content(const struct elf_file *elf, const Elf64_Shdr *section);

/* The program header of a number; false when there are not so many. */
bool elf_file_segment(const struct elf_file *elf, size_t number, Elf64_Phdr *ret_segment);

/* The build-id, which says which build of a program this is, or NULL. Borrows the data. */
const uint8_t *elf_file_build_id(const struct elf_file *elf, size_t *ret_length);

/* The build-id among ELF notes, wherever they come from (/sys/kernel/notes), or NULL. */
const uint8_t *elf_build_id_in_notes(const void *notes, size_t length, size_t *ret_length);

/* The bytes at an address of the file's own address space, as many as `length`; NULL when they are
 * not in the file. */
const uint8_t *elf_file_bytes(const struct elf_file *elf, uint64_t svma, size_t length);

/* Starts a walk over a symbol table: SHT_SYMTAB or SHT_DYNSYM. False when the file has none. */
bool elf_symbols_init(struct elf_symbols *symbols, const struct elf_file *elf, uint32_t type);

/* 1 and a defined symbol with a name; 0 at the end. Damaged entries are passed over. */
int elf_symbols_next(struct elf_symbols *symbols, struct elf_symbol *ret_symbol);

#endif
