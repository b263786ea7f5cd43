/* The procedure linkage table: short pieces of code, made by the linker, that jump to functions of
 * other objects. They have no symbols; what they jump to names them. */
#ifndef PITVIPER_ELF_ELF_PLT_H
#define PITVIPER_ELF_ELF_PLT_H

#include "base/hashtable.h"
#include "elf/elf_object.h"

struct elf_plt_entry {
    uint64_t svma;
    uint64_t size;    /* in bytes */
    const char *name; /* of the function; borrows the object; "" for one chosen at load time */
    uint64_t
        resolver_svma; /* of the function that chooses it (STT_GNU_IFUNC), with an empty name */
};

/* Walks the entries of .plt, .plt.sec and .plt.got. Knows x86-64: gives nothing for other machines.
 */
struct elf_plt {
    const struct elf_object *object;
    struct hashtable slots;       /* svma of a slot of the GOT -> index of its relocation */
    struct cursor relocations[2]; /* .rela.plt, .rela.dyn; indices count through both */
    struct cursor symbols;        /* .dynsym */
    struct cursor names;          /* .dynstr */
    size_t section;               /* which of the three is walked */
    struct cursor code;           /* of that section */
    uint64_t code_svma;
    size_t entry_bytes;
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int elf_plt_init(struct elf_plt *plt, const struct elf_object *object);
void elf_plt_done(struct elf_plt *plt);

/* 1 and an entry, 0 at the end. */
int elf_plt_next(struct elf_plt *plt, struct elf_plt_entry *ret_entry);

#endif
