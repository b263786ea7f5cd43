/* Which function is at an address of an object file? A sorted index over .symtab, else .dynsym,
 * with the entries of the procedure linkage table as `name@plt`.
 *
 * Of several symbols at one address one is kept, by the rules that perf has, so that both print the
 * same name: the one with a size, not weak, global, with fewer underscores in front, with the
 * longer name. A symbol without a size reaches to the next one. Where symbols lie inside of others
 * the innermost counts. */
#ifndef PITVIPER_ELF_ELF_SYMTAB_H
#define PITVIPER_ELF_ELF_SYMTAB_H

#include "base/arena.h"
#include "base/vector.h"
#include "elf/elf_object.h"

struct elf_symtab_entry {
    uint64_t svma;
    uint64_t size;    /* in bytes; as it counts for look-ups */
    const char *name; /* as in the file: not demangled; borrows the object, or of the arena */
    uint32_t
        enclosing;   /* index of the nearest entry before it that ends later, or ELF_SYMTAB_NONE */
    uint8_t type;    /* STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT */
    uint8_t binding; /* STB_GLOBAL, ...: perf prints it as g, l, w */
    bool is_plt;
};

#define ELF_SYMTAB_NONE UINT32_MAX

struct elf_symtab {
    VECTOR(struct elf_symtab_entry) entries; /* ascending by svma, which are all different */
    struct arena arena;
    bool is_dynamic; /* only exported functions are known: .dynsym */
};

/* Indexes an object's symbols; those of its debug file when it has a .symtab (may be NULL). Both
 * must outlive the index. Damage leaves symbols out. 0 or -ENOMEM; a file without symbols gives an
 * empty index. On failure there is nothing to release. */
int elf_symtab_init(struct elf_symtab *symtab, const struct elf_object *object,
                    const struct elf_object *debug);
void elf_symtab_done(struct elf_symtab *symtab);

/* The symbol at an address, or NULL. Valid as long as the index. */
const struct elf_symtab_entry *elf_symtab_find(const struct elf_symtab *symtab, uint64_t svma);

#endif
