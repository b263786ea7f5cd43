/* Any bytes as .eh_frame of generated code: nothing is read out of bounds, the index is sorted,
 * rules are those of functions, and stacks can be walked by them.
 *
 *     input: code size (2 bytes), size of .eh_frame_hdr (2 bytes), .eh_frame, .eh_frame_hdr */
#include "unwind/unwind.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

enum { CODE_AVMA = 0x10000, STACK_AVMA = 0x700000, STACK_WORDS = 64, MOST_PCS = 128 };

static bool find_code(void *table, uint64_t avma, struct unwind_code *ret_code)
{
    *ret_code = (struct unwind_code){.table = table, .bias = CODE_AVMA};
    return avma >= CODE_AVMA && avma < CODE_AVMA + 0x10000;
}

/* What is found for one address after the other. */
static void check_table(struct unwind_table *table, uint16_t code_size)
{
    const struct cfi_index *index = &table->sections[0].index;
    for (size_t i = 1; i < index->entries.count; i++)
        REQUIRE(index->entries.items[i - 1].start_svma < index->entries.items[i].start_svma);
    for (uint64_t svma = 0; svma <= code_size; svma++) {
        const struct unwind_rule *rule = unwind_table_find(table, svma);
        struct cfi_range range;
        bool is_in_function = unwind_table_function(table, svma, &range);
        REQUIRE(!rule || is_in_function);
        REQUIRE(!is_in_function || (range.start_svma <= svma && svma < range.end_svma));
        REQUIRE(!is_in_function || range.end_svma <= code_size);
        REQUIRE(rule == unwind_table_find(table, svma));
    }
    for (size_t i = 0; i < table->rules.count; i++)
        REQUIRE(table->rules.items[i]->place_count <= UNWIND_SAVED_MOST);
}

/* The stack is full of return addresses into the code, and of pointers into itself. */
static void walk(uint16_t elf_machine, struct unwind_table *table, uint16_t code_size)
{
    uint64_t stack[STACK_WORDS], pcs[MOST_PCS], cfas[MOST_PCS];
    struct unwind_sample sample = {.stack = (const uint8_t *)stack,
                                   .stack_avma = STACK_AVMA,
                                   .stack_bytes = sizeof stack,
                                   .cpu = {.pc = CODE_AVMA + code_size / 2, .known = UINT32_MAX}};
    for (size_t i = 0; i < STACK_WORDS; i++)
        stack[i] = i % 3 ? CODE_AVMA + (code_size ? i * 7 % code_size : 0) : STACK_AVMA + i * 8;
    for (size_t i = 0; i < UNWIND_REGISTERS; i++)
        sample.cpu.registers[i] = STACK_AVMA + i * 8;
    sample.cpu.registers[elf_machine == EM_X86_64 ? 7 : 31] = STACK_AVMA;
    struct unwinder *unwinder;
    struct unwind_finder finder = {find_code, table};
    if (unwinder_open(elf_machine, finder, &unwinder) < 0)
        return;
    struct unwind_frames frames = {.pcs = pcs, .cfas = cfas, .capacity = MOST_PCS};
    unwind(unwinder, &sample, &frames);
    REQUIRE(frames.count >= 1 && frames.count <= MOST_PCS);
    for (size_t i = 0; i + 1 < frames.count; i++)
        REQUIRE(cfas[i]);
    unwinder_close(unwinder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t code_size, header_size;
    if (size < 4)
        return 0;
    memcpy(&code_size, data, 2);
    memcpy(&header_size, data + 2, 2);
    struct unwind_jit jit = {.data = data + 4,
                             .size = size - 4,
                             .eh_frame_hdr_size = header_size,
                             .code_size = code_size};
    static const uint16_t MACHINES[] = {EM_X86_64, EM_AARCH64};
    for (size_t i = 0; i < 2; i++) {
        struct unwind_table table;
        if (unwind_table_init_jit(&table, MACHINES[i], &jit) < 0)
            continue;
        check_table(&table, code_size);
        walk(MACHINES[i], &table, code_size);
        unwind_table_done(&table);
    }
    return 0;
}
