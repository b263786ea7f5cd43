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

static void check_table(const struct elf_object *object)
{
    struct unwind_table table;
    if (unwind_table_init(&table, object, object) < 0)
        return;
    for (size_t i = 0; i < table.row_count; i++) {
        REQUIRE(!i || table.starts[i - 1] < table.starts[i]);
        const struct unwind_rule *rule =
            unwind_table_find(&table, table.base_svma + table.starts[i]);
        REQUIRE(!rule == (table.rule_of[i] == UNWIND_NO_RULE));
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
