/* Linkers lay out these entries in several ways:
 *
 *     .plt       push/jmp pairs for lazy binding:   jmp *slot(%rip); push $n; jmp .plt
 *                with -z ibtplt only:               endbr64; push $n; jmp .plt
 *     .plt.sec   then the jumps are here:           endbr64; jmp *slot(%rip)
 *     .plt.got   without lazy binding:              jmp *slot(%rip)
 *
 * Rather than to know which linker does what, the code is asked: an entry either jumps through a
 * slot, and the relocation of that slot has the name, or it pushes the number of its relocation. */
#include "elf/elf_plt.h"

#include <errno.h>
#include <string.h>

enum { MOST_ENTRY_BYTES = 16 };

static const char *const SECTIONS[] = {".plt", ".plt.sec", ".plt.got"};
enum { SECTION_COUNT = 3 };

static struct cursor named_content(const struct elf_object *object, const char *name,
                                   Elf64_Shdr *ret_section)
{
    struct cursor nothing;
    cursor_init(&nothing, name, NULL, 0);
    *ret_section = (Elf64_Shdr){0};
    return elf_file_section_named(&object->elf, name, ret_section)
               ? elf_file_content(&object->elf, ret_section)
               : nothing;
}

static bool relocation_at(const struct elf_plt *plt, uint64_t index, Elf64_Rela *ret_relocation)
{
    uint64_t first_count = plt->relocations[0].length / sizeof *ret_relocation;
    bool second = index >= first_count;
    struct cursor table = plt->relocations[second];
    cursor_seek(&table, (index - (second ? first_count : 0)) * sizeof *ret_relocation);
    const uint8_t *bytes = cursor_bytes(&table, sizeof *ret_relocation);
    if (bytes)
        memcpy(ret_relocation, bytes, sizeof *ret_relocation);
    return bytes != NULL;
}

static bool fills_a_slot(const Elf64_Rela *relocation)
{
    uint64_t type = ELF64_R_TYPE(relocation->r_info);
    return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT || type == R_X86_64_IRELATIVE;
}

static int index_slots(struct elf_plt *plt)
{
    Elf64_Rela relocation;
    for (uint64_t i = 0; relocation_at(plt, i, &relocation); i++) {
        if (fills_a_slot(&relocation) &&
            hashtable_set(&plt->slots, hash_u64(relocation.r_offset), i) < 0)
            return -ENOMEM;
    }
    return 0;
}

int elf_plt_init(struct elf_plt *plt, const struct elf_object *object)
{
    *plt = (struct elf_plt){.object = object, .section = SECTION_COUNT};
    if (object->elf.header.e_machine != EM_X86_64)
        return 0;
    Elf64_Shdr section;
    plt->relocations[0] = named_content(object, ".rela.plt", &section);
    plt->relocations[1] = named_content(object, ".rela.dyn", &section);
    plt->symbols = named_content(object, ".dynsym", &section);
    plt->names = named_content(object, ".dynstr", &section);
    /* Whole entries only, so that the second table starts where the first ends. */
    plt->relocations[0].length -= plt->relocations[0].length % sizeof(Elf64_Rela);
    cursor_init(&plt->code, "", NULL, 0);
    plt->section = 0;
    int error = index_slots(plt);
    if (error < 0)
        elf_plt_done(plt);
    return error;
}

void elf_plt_done(struct elf_plt *plt)
{
    hashtable_done(&plt->slots);
}

static uint32_t word(const uint8_t *bytes)
{
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Which relocation an entry of machine code belongs to. */
static bool relocation_of(const struct elf_plt *plt, const uint8_t *code, size_t size,
                          uint64_t svma, Elf64_Rela *ret_relocation)
{
    for (size_t i = 0; i + 6 <= size; i++) {
        uint64_t index;
        if (code[i] == 0xff && code[i + 1] == 0x25) { /* jmp *displacement(%rip) */
            uint64_t slot = svma + i + 6 + (uint64_t)(int64_t)(int32_t)word(code + i + 2);
            return hashtable_get(&plt->slots, hash_u64(slot), &index) &&
                   relocation_at(plt, index, ret_relocation);
        }
        if (code[i] == 0xff && code[i + 1] == 0x35) /* push displacement(%rip): the first entry */
            return false;
        if (code[i] == 0x68) /* push $number */
            return relocation_at(plt, word(code + i + 1), ret_relocation) &&
                   fills_a_slot(ret_relocation);
    }
    return false;
}

static const char *name_of(const struct elf_plt *plt, uint64_t symbol)
{
    Elf64_Sym raw;
    struct cursor symbols = plt->symbols, names = plt->names;
    size_t length;
    if (!symbol)
        return "";
    cursor_seek(&symbols, symbol * sizeof raw);
    const uint8_t *bytes = cursor_bytes(&symbols, sizeof raw);
    if (!bytes)
        return NULL;
    memcpy(&raw, bytes, sizeof raw);
    cursor_seek(&names, raw.st_name);
    return cursor_string(&names, &length);
}

/* Goes to the next section that has entries. */
static bool next_section(struct elf_plt *plt)
{
    if (plt->section >= SECTION_COUNT)
        return false;
    Elf64_Shdr section;
    plt->code = named_content(plt->object, SECTIONS[plt->section++], &section);
    plt->code_svma = section.sh_addr;
    bool is_known = section.sh_entsize == 8 || section.sh_entsize == MOST_ENTRY_BYTES;
    plt->entry_bytes = is_known ? section.sh_entsize : MOST_ENTRY_BYTES;
    return true;
}

int elf_plt_next(struct elf_plt *plt, struct elf_plt_entry *ret_entry)
{
    for (;;) {
        if (!cursor_ok(&plt->code) || cursor_left(&plt->code) < plt->entry_bytes ||
            !plt->entry_bytes) {
            if (!next_section(plt))
                return 0;
            continue;
        }
        uint64_t svma = plt->code_svma + plt->code.offset;
        const uint8_t *code = cursor_bytes(&plt->code, plt->entry_bytes);
        Elf64_Rela relocation;
        if (!relocation_of(plt, code, plt->entry_bytes, svma, &relocation))
            continue;
        const char *name = name_of(plt, ELF64_R_SYM(relocation.r_info));
        if (!name)
            continue;
        *ret_entry = (struct elf_plt_entry){.svma = svma,
                                            .size = plt->entry_bytes,
                                            .name = name,
                                            .resolver_svma = (uint64_t)relocation.r_addend};
        return 1;
    }
}
