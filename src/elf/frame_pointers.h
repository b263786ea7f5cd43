/* Was a program compiled with frame pointers? Asked of its machine code. */
#ifndef PITVIPER_ELF_FRAME_POINTERS_H
#define PITVIPER_ELF_FRAME_POINTERS_H

#include "elf/elf_file.h"

struct frame_pointers {
    size_t functions; /* looked at */
    size_t kept;      /* of those, how many set up a frame pointer first */
};

/* Looks at the exported functions. x86-64 only: counts nothing for other machines. */
struct frame_pointers frame_pointers_count(const struct elf_file *elf);

/* The verdict. Seen in CPython builds: 61 % of the functions with frame pointers (the others return
 * early first), 0 to 2 % without. */
static inline bool frame_pointers_are_kept(struct frame_pointers count)
{
    return count.kept * 4 > count.functions;
}

#endif
