/* Symbol tables are unsorted and say too much: several names for one address, labels inside
 * functions, data. What is left after sorting answers one question only: which name for this svma?
 *
 *     collect   functions, and labels in code (assembly without .type)
 *     sort      by svma, in the order of the file where these are equal
 *     size      without one: up to the next symbol, at most to the end of the section
 *     choose    the best name of each address; perf's rules, and its order: a name without a size
 *               that is the last one of its address has got one by now
 *     link      each entry to the nearest one before it that ends later
 *
 * The links are for symbols inside of symbols: when an address is behind the end of the last symbol
 * that starts before it, only those that end later still can contain it, and the links lead through
 * exactly these, innermost first. */
#include "elf/elf_symtab.h"

#include "base/checked.h"
#include "elf/elf_plt.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Of real nesting there are two or three levels; what goes on is made to be slow. */
enum { MOST_LEVELS = 64 };

struct section_range {
    uint64_t end_svma;
    bool is_code;
};

static bool range_of_section(const struct elf_file *elf, uint16_t number,
                             struct section_range *ret_range)
{
    struct cursor cursor = elf->cursor;
    Elf64_Shdr section;
    if (number >= elf->header.e_shnum)
        return false;
    cursor_seek(&cursor, elf->header.e_shoff);
    cursor_skip(&cursor, (size_t)number * sizeof section);
    const uint8_t *bytes = cursor_bytes(&cursor, sizeof section);
    if (!bytes)
        return false;
    memcpy(&section, bytes, sizeof section);
    ret_range->is_code = section.sh_flags & SHF_EXECINSTR;
    return checked_add_u64(section.sh_addr, section.sh_size, &ret_range->end_svma);
}

/* Mapping symbols ($x, $d) say where code and data are on ARM; they are no names. */
static bool is_wanted(const struct elf_symbol *symbol, const struct section_range *range)
{
    if (symbol->type == STT_FUNC || symbol->type == STT_GNU_IFUNC)
        return true;
    if (!range->is_code || symbol->name[0] == '$')
        return false;
    return symbol->type == STT_OBJECT ||
           (symbol->type == STT_NOTYPE && symbol->visibility != STV_HIDDEN &&
            symbol->visibility != STV_INTERNAL);
}

/* Until the sizes are settled, `enclosing` is the order in the file, and the end of the section of
 * a symbol without a size is known by `ends`, in that order. */
struct collection {
    struct elf_symtab *symtab;
    VECTOR(uint64_t) ends;
};

static int collect_entry(struct collection *collection, struct elf_symtab_entry entry,
                         uint64_t end_svma)
{
    if (collection->ends.count >= ELF_SYMTAB_NONE)
        return 0;
    entry.enclosing = (uint32_t)collection->ends.count;
    if (vector_push(&collection->ends, end_svma) < 0)
        return -ENOMEM;
    return vector_push(&collection->symtab->entries, entry);
}

static int collect_symbols(struct collection *collection, const struct elf_file *elf, uint32_t type)
{
    struct elf_symbols symbols;
    struct elf_symbol symbol;
    if (!elf_symbols_init(&symbols, elf, type))
        return 0;
    while (elf_symbols_next(&symbols, &symbol)) {
        struct section_range range;
        if (!range_of_section(elf, symbol.section, &range) || !is_wanted(&symbol, &range))
            continue;
        struct elf_symtab_entry entry = {.svma = symbol.svma,
                                         .size = symbol.size,
                                         .name = symbol.name,
                                         .type = symbol.type,
                                         .binding = symbol.binding};
        if (collect_entry(collection, entry, range.end_svma) < 0)
            return -ENOMEM;
    }
    return 0;
}

static char *plt_name(struct elf_symtab *symtab, const struct elf_plt_entry *entry)
{
    char resolver[32];
    snprintf(resolver, sizeof resolver, "*ABS*+%#llx", (unsigned long long)entry->resolver_svma);
    const char *name = *entry->name ? entry->name : resolver;
    size_t bytes = strlen(name) + sizeof "@plt";
    char *text = arena_alloc(&symtab->arena, bytes);
    if (text)
        snprintf(text, bytes, "%s@plt", name);
    return text;
}

static int collect_plt(struct collection *collection, const struct elf_object *object)
{
    struct elf_plt plt;
    struct elf_plt_entry entry;
    int error = elf_plt_init(&plt, object);
    if (error < 0)
        return error;
    while (!error && elf_plt_next(&plt, &entry)) {
        char *name = plt_name(collection->symtab, &entry);
        error = name ? collect_entry(collection,
                                     (struct elf_symtab_entry){.svma = entry.svma,
                                                               .size = entry.size,
                                                               .name = name,
                                                               .type = STT_FUNC,
                                                               .binding = STB_LOCAL,
                                                               .is_plt = true},
                                     entry.svma + entry.size)
                     : -ENOMEM;
    }
    elf_plt_done(&plt);
    return error;
}

static size_t leading_underscores(const char *name)
{
    return strspn(name, "_");
}

/* Negative when `a` is the better name for the address. */
static int compare_quality(const struct elf_symtab_entry *a, const struct elf_symtab_entry *b)
{
    if (!a->size != !b->size)
        return a->size ? -1 : 1;
    if ((a->type == STT_NOTYPE) != (b->type == STT_NOTYPE))
        return a->type == STT_NOTYPE ? 1 : -1;
    if ((a->binding == STB_WEAK) != (b->binding == STB_WEAK))
        return a->binding == STB_WEAK ? 1 : -1;
    if ((a->binding == STB_GLOBAL) != (b->binding == STB_GLOBAL))
        return a->binding == STB_GLOBAL ? -1 : 1;
    size_t a_count = leading_underscores(a->name), b_count = leading_underscores(b->name);
    if (a_count != b_count)
        return a_count < b_count ? -1 : 1;
    a_count = strlen(a->name);
    b_count = strlen(b->name);
    if (a_count != b_count)
        return a_count > b_count ? -1 : 1;
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    const struct elf_symtab_entry *a = left, *b = right;
    if (a->svma != b->svma)
        return a->svma < b->svma ? -1 : 1;
    return a->enclosing < b->enclosing ? -1 : a->enclosing > b->enclosing;
}

static void keep_the_best(struct elf_symtab *symtab)
{
    struct elf_symtab_entry *entries = symtab->entries.items;
    size_t kept = 0;
    for (size_t i = 0; i < symtab->entries.count; i++) {
        if (!kept || entries[kept - 1].svma != entries[i].svma)
            entries[kept++] = entries[i];
        else if (compare_quality(&entries[i], &entries[kept - 1]) < 0)
            entries[kept - 1] = entries[i];
    }
    symtab->entries.count = kept;
}

static void settle_sizes(struct elf_symtab *symtab, const uint64_t *ends)
{
    for (size_t i = 0; i < symtab->entries.count; i++) {
        struct elf_symtab_entry *entry = &symtab->entries.items[i];
        uint64_t most = UINT64_MAX - entry->svma;
        if (!entry->size && ends[entry->enclosing] > entry->svma)
            entry->size = ends[entry->enclosing] - entry->svma;
        else if (entry->size > most)
            entry->size = most;
        else
            continue;
        if (i + 1 < symtab->entries.count && entry[1].svma - entry->svma < entry->size)
            entry->size = entry[1].svma - entry->svma;
    }
}

static uint64_t end_of(const struct elf_symtab_entry *entry)
{
    return entry->svma + entry->size;
}

/* From the entry before, along its links: each step ends later, and what lies between ends earlier.
 */
static void link_entries(struct elf_symtab *symtab)
{
    struct elf_symtab_entry *entries = symtab->entries.items;
    for (size_t i = 0; i < symtab->entries.count; i++) {
        uint32_t before = i ? (uint32_t)(i - 1) : ELF_SYMTAB_NONE;
        while (before != ELF_SYMTAB_NONE && end_of(&entries[before]) <= end_of(&entries[i]))
            before = entries[before].enclosing;
        entries[i].enclosing = before;
    }
}

int elf_symtab_init(struct elf_symtab *symtab, const struct elf_object *object,
                    const struct elf_object *debug)
{
    *symtab = (struct elf_symtab){0};
    struct collection collection = {.symtab = symtab};
    Elf64_Shdr section;
    int error;
    if (debug && elf_file_section(&debug->elf, SHT_SYMTAB, &section)) {
        error = collect_symbols(&collection, &debug->elf, SHT_SYMTAB);
    } else {
        symtab->is_dynamic = !elf_file_section(&object->elf, SHT_SYMTAB, &section);
        error = collect_symbols(&collection, &object->elf,
                                symtab->is_dynamic ? SHT_DYNSYM : SHT_SYMTAB);
    }
    if (!error)
        error = collect_plt(&collection, object);
    if (!error && symtab->entries.count && collection.ends.items) {
        qsort(symtab->entries.items, symtab->entries.count, sizeof *symtab->entries.items,
              compare_entries);
        settle_sizes(symtab, collection.ends.items);
        keep_the_best(symtab);
        link_entries(symtab);
    }
    vector_done(&collection.ends);
    if (error < 0)
        elf_symtab_done(symtab);
    return error;
}

void elf_symtab_done(struct elf_symtab *symtab)
{
    vector_done(&symtab->entries);
    arena_done(&symtab->arena);
}

const struct elf_symtab_entry *elf_symtab_find(const struct elf_symtab *symtab, uint64_t svma)
{
    const struct elf_symtab_entry *entries = symtab->entries.items;
    size_t low = 0, high = symtab->entries.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (entries[middle].svma <= svma)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t index = low ? (uint32_t)(low - 1) : ELF_SYMTAB_NONE;
    for (int level = 0; index != ELF_SYMTAB_NONE && level < MOST_LEVELS; level++) {
        if (svma - entries[index].svma < entries[index].size)
            return &entries[index];
        index = entries[index].enclosing;
    }
    return NULL;
}
