/* Sections that were compressed to save room on disk (SHF_COMPRESSED): those of debug files. */
#ifndef PITVIPER_ELF_ELF_COMPRESSED_H
#define PITVIPER_ELF_ELF_COMPRESSED_H

#include "elf/elf_file.h"

/* The content of a section, compressed or not. *ret_owned is NULL, or memory that the cursor reads
 * from: free it when the cursor is done with. 0; -EBADMSG when the section is damaged or outside
 * the file; -ENOTSUP when it is compressed in a way that is not known; -ENOMEM. On failure there is
 * nothing to free. */
int elf_compressed_content(const struct elf_file *elf, const Elf64_Shdr *section,
                           struct cursor *ret_content, uint8_t **ret_owned);

#endif
