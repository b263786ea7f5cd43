/* Any bytes as an object file: symbols, PLT, frame information, build-id and segments are read
 * without a step outside, the indices are sorted, and every symbol is found. */
#include "elf/elf_symtab.h"
#include "unwind/unwind_table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_symbols(const struct elf_object *object)
{
    struct elf_symtab symtab;
    if (elf_symtab_init(&symtab, object, object) < 0)
        return;
    for (size_t i = 0; i < symtab.entries.count; i++) {
        const struct elf_symtab_entry *entry = &symtab.entries.items[i];
        REQUIRE(!i || entry[-1].svma < entry->svma);
        REQUIRE(entry->name[0]);
        if (entry->size)
            REQUIRE(elf_symtab_find(&symtab, entry->svma) == entry);
        elf_symtab_find(&symtab, entry->svma + entry->size);
    }
    elf_symtab_done(&symtab);
}

static void check_rule(struct unwind_table *table, uint64_t svma)
{
    const struct unwind_rule *rule = unwind_table_find(table, svma);
    struct cfi_range range;
    bool is_in_function = unwind_table_function(table, svma, &range);
    REQUIRE(!rule || is_in_function);
    REQUIRE(!is_in_function || (range.start_svma <= svma && svma < range.end_svma));
    REQUIRE(!rule || rule->place_count <= UNWIND_SAVED_MOST);
}

/* At the borders of the code, and of all functions that .eh_frame_hdr has, or the section: which of
 * them the index is made of can change with each question. */
static void check_table(const struct elf_object *object)
{
    struct unwind_table table;
    if (unwind_table_init(&table, object, object) < 0)
        return;
    for (size_t i = 0; i < table.code.count; i++) {
        check_rule(&table, table.code.ranges[i].start_svma);
        check_rule(&table, table.code.ranges[i].end_svma - 1);
    }
    for (size_t i = 0; i < UNWIND_SECTIONS; i++) {
        const struct cfi_index *index = &table.sections[i].index;
        for (size_t j = 0; j < index->entries.count; j++) {
            uint64_t start_svma = index->entries.items[j].start_svma;
            REQUIRE(!j || index->entries.items[j - 1].start_svma < start_svma);
            check_rule(&table, start_svma + 1);
            check_rule(&table, start_svma - 1);
        }
        REQUIRE(table.sections[i].rows.count <= table.sections[i].bytes.section.cursor.length);
    }
    unwind_table_done(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct elf_object *object;
    if (elf_object_open_memory("fuzz", data, size, &object) < 0)
        return 0;
    check_symbols(object);
    check_table(object);
    size_t length;
    const uint8_t *id = elf_file_build_id(&object->elf, &length);
    REQUIRE(!id || elf_object_has_build_id(object, id, length));
    uint64_t bias, svma;
    struct elf_mapping mapping = {.start_avma = 0x1000, .length = 0x1000, .pgoff = 0x1000};
    elf_object_bias(object, &mapping, &bias);
    elf_object_svma_of(object, 0x1234, &svma);
    elf_object_close(object);
    return 0;
}
