/* Call frame information is written per function, in any order, by compilers, assemblers and
 * linkers that may not agree. The table is made of it in four steps:
 *
 *     run       each function's program; its rows go behind each other, and each different rule
 *               is kept once: a hundred thousand rows have a few hundred rules
 *     sort      the functions by address (most files have them sorted already)
 *     cut       what overlaps the next function
 *     flatten   into one ascending array, with rows that say "nothing" in the gaps
 *
 * Only functions in executable segments count. Others are remains of code that the linker threw
 * away, or damage. Starts are 32 bits from the lowest function on: no object has 4 GB of code. */
#include "unwind/unwind_table.h"

#include "base/checked.h"
#include "base/hashtable.h"
#include "unwind/cfi_program.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SEGMENTS = 16 };

struct range {
    uint64_t start, end;
};

struct row {
    uint32_t delta; /* from the function's start */
    uint16_t rule;
};

struct function {
    uint64_t start_svma, end_svma;
    size_t first_row, row_count;
};

struct builder {
    struct unwind_table *table;
    const struct unwind_machine *machine;
    struct range code[MOST_SEGMENTS]; /* executable, by svma */
    size_t code_count;
    VECTOR(struct function) functions;
    VECTOR(struct row) rows;
    struct hashtable rule_index;
    uint64_t function_svma; /* of the function that is being run */
    size_t function_row;    /* its first row */
};

/* --- rules ---------------------------------------------------------------------------------------
 */

/* Places behind the last one are zero in all rules: they need not be looked at. */
static size_t significant_bytes(const struct unwind_rule *rule)
{
    return offsetof(struct unwind_rule, places) + rule->place_count * sizeof rule->places[0];
}

/* The number of a rule; UNWIND_NO_RULE when there are too many. */
static int number_rule(struct builder *builder, const struct unwind_rule *rule,
                       uint16_t *ret_number)
{
    struct unwind_table *table = builder->table;
    size_t bytes = significant_bytes(rule);
    uint64_t hash = hash_bytes(rule, bytes), known;
    struct hashtable_probe probe = hashtable_probe(&builder->rule_index, hash);
    while (hashtable_next(&probe, &known)) {
        if (memcmp(&table->rules.items[known], rule, bytes) == 0) {
            *ret_number = (uint16_t)known;
            return 0;
        }
    }
    *ret_number = UNWIND_NO_RULE;
    if (table->rules.count >= UNWIND_NO_RULE)
        return 0;
    if (hashtable_add(&builder->rule_index, hash, table->rules.count) < 0 ||
        vector_push(&table->rules, *rule) < 0)
        return -ENOMEM;
    *ret_number = (uint16_t)(table->rules.count - 1);
    return 0;
}

static int take_row(void *context, uint64_t svma, const struct unwind_rule *rule)
{
    struct builder *builder = context;
    uint64_t delta = svma - builder->function_svma;
    uint16_t number;
    if (delta > UINT32_MAX)
        return -EBADMSG;
    int error = number_rule(builder, rule, &number);
    if (error < 0)
        return error;
    if (builder->rows.count > builder->function_row &&
        builder->rows.items[builder->rows.count - 1].rule == number)
        return 0;
    return vector_push(&builder->rows, ((struct row){.delta = (uint32_t)delta, .rule = number}));
}

/* --- functions -----------------------------------------------------------------------------------
 */

static bool is_in_code(const struct builder *builder, const struct cfi_function *function)
{
    for (size_t i = 0; i < builder->code_count; i++) {
        const struct range *range = &builder->code[i];
        if (function->start_svma >= range->start && function->start_svma < range->end)
            return function->size <= range->end - function->start_svma;
    }
    return false;
}

static int add_function(struct builder *builder, const struct cfi_function *function)
{
    builder->function_svma = function->start_svma;
    builder->function_row = builder->rows.count;
    int error = cfi_program_run(builder->machine, function,
                                (struct cfi_sink){.take = take_row, .context = builder});
    if (error == -EBADMSG) {
        builder->table->damaged++;
        builder->rows.count = builder->function_row;
        return 0;
    }
    if (error < 0)
        return error;
    return vector_push(
        &builder->functions,
        ((struct function){.start_svma = function->start_svma,
                           .end_svma = function->start_svma + function->size,
                           .first_row = builder->function_row,
                           .row_count = builder->rows.count - builder->function_row}));
}

/* Whether one of the first `count` functions, which are sorted, has an address. */
static bool is_covered(const struct builder *builder, size_t count, uint64_t svma)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (builder->functions.items[middle].start_svma <= svma)
            low = middle + 1;
        else
            high = middle;
    }
    return low && svma < builder->functions.items[low - 1].end_svma;
}

static int compare_functions(const void *left, const void *right)
{
    const struct function *a = left, *b = right;
    if (a->start_svma != b->start_svma)
        return a->start_svma < b->start_svma ? -1 : 1;
    return a->first_row < b->first_row ? -1 : a->first_row > b->first_row;
}

static void sort_functions(struct builder *builder)
{
    struct function *items = builder->functions.items;
    for (size_t i = 1; i < builder->functions.count; i++) {
        if (compare_functions(&items[i - 1], &items[i]) > 0) {
            qsort(items, builder->functions.count, sizeof *items, compare_functions);
            return;
        }
    }
}

/* Adds the functions of a section that none of the sections before it has. */
static int add_section(struct builder *builder, struct cfi_section *section)
{
    size_t before = builder->functions.count;
    struct cfi_function function;
    for (;;) {
        int result = cfi_next(section, &function);
        if (result == 0)
            break;
        if (result < 0) {
            builder->table->damaged++;
            continue;
        }
        if (!function.size || !is_in_code(builder, &function) ||
            is_covered(builder, before, function.start_svma))
            continue;
        if (add_function(builder, &function) < 0)
            return -ENOMEM;
    }
    sort_functions(builder);
    return 0;
}

/* --- the flat table ------------------------------------------------------------------------------
 */

static void put_row(struct unwind_table *table, uint64_t svma, uint16_t rule)
{
    uint32_t start = (uint32_t)(svma - table->base_svma);
    if (table->row_count && table->starts[table->row_count - 1] == start)
        table->row_count--;
    if (table->row_count && table->rule_of[table->row_count - 1] == rule)
        return;
    table->starts[table->row_count] = start;
    table->rule_of[table->row_count++] = rule;
}

static int flatten(struct builder *builder)
{
    struct unwind_table *table = builder->table;
    size_t count = builder->functions.count, most_rows = builder->rows.count + count + 1;
    if (!count)
        return 0;
    table->base_svma = builder->functions.items[0].start_svma;
    table->starts = calloc(most_rows, sizeof *table->starts);
    table->rule_of = calloc(most_rows, sizeof *table->rule_of);
    if (!table->starts || !table->rule_of)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        const struct function *function = &builder->functions.items[i];
        uint64_t end = function->end_svma;
        if (i + 1 < count && function[1].start_svma < end)
            end = function[1].start_svma;
        if (end - table->base_svma >= UINT32_MAX)
            break;
        for (size_t row = 0; row < function->row_count; row++) {
            const struct row *from = &builder->rows.items[function->first_row + row];
            if (from->delta >= end - function->start_svma)
                break;
            put_row(table, function->start_svma + from->delta, from->rule);
        }
        put_row(table, end, UNWIND_NO_RULE);
        table->end_svma = end;
    }
    return 0;
}

static int finish(struct builder *builder, int error)
{
    if (!error)
        error = flatten(builder);
    vector_done(&builder->functions);
    vector_done(&builder->rows);
    hashtable_done(&builder->rule_index);
    if (error < 0)
        unwind_table_done(builder->table);
    return error;
}

/* --- where the bytes are -------------------------------------------------------------------------
 */

static void find_code(struct builder *builder, const struct elf_file *elf)
{
    Elf64_Phdr segment;
    for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
        uint64_t end;
        if (segment.p_type == PT_LOAD && segment.p_flags & PF_X &&
            builder->code_count < MOST_SEGMENTS &&
            checked_add_u64(segment.p_vaddr, segment.p_memsz, &end))
            builder->code[builder->code_count++] = (struct range){segment.p_vaddr, end};
    }
}

/* .eh_frame of a file without section headers: .eh_frame_hdr, which is a segment, points to it. How
 * long it is nobody says; it ends with an entry of length 0. */
static bool eh_frame_by_segment(const struct elf_file *elf, struct cfi_section *ret_section)
{
    Elf64_Phdr header = {0}, segment;
    for (size_t i = 0; header.p_type != PT_GNU_EH_FRAME; i++) {
        if (!elf_file_segment(elf, i, &header))
            return false;
    }
    struct cursor cursor = elf->cursor;
    cursor_seek(&cursor, header.p_offset);
    cursor = cursor_sub(&cursor, header.p_filesz);
    uint8_t version = cursor_u8(&cursor), encoding = cursor_u8(&cursor);
    cursor_skip(&cursor, 2);
    uint64_t svma = cfi_pointer(&cursor, header.p_vaddr, encoding);
    if (!cursor_ok(&cursor) || version != 1)
        return false;
    for (size_t i = 0; elf_file_segment(elf, i, &segment); i++) {
        if (segment.p_type != PT_LOAD || svma < segment.p_vaddr ||
            svma - segment.p_vaddr >= segment.p_filesz)
            continue;
        struct cursor content = elf->cursor;
        cursor_seek(&content, segment.p_offset);
        cursor_skip(&content, svma - segment.p_vaddr);
        *ret_section = (struct cfi_section){
            .cursor = cursor_sub(&content, segment.p_filesz - (svma - segment.p_vaddr)),
            .svma = svma,
            .ends_at_zero = true};
        return cursor_ok(&content);
    }
    return false;
}

static bool section_of(const struct elf_file *elf, const char *name,
                       struct cfi_section *ret_section)
{
    Elf64_Shdr section;
    if (!elf_file_section_named(elf, name, &section))
        return false;
    *ret_section = (struct cfi_section){.cursor = elf_file_content(elf, &section),
                                        .svma = section.sh_addr,
                                        .is_debug_frame = strcmp(name, ".debug_frame") == 0};
    return cursor_ok(&ret_section->cursor);
}

int unwind_table_init(struct unwind_table *table, const struct elf_object *object,
                      const struct elf_object *debug)
{
    *table = (struct unwind_table){0};
    struct builder builder = {.table = table};
    struct cfi_section section;
    builder.machine = unwind_machine_of(object->elf.header.e_machine);
    if (!builder.machine)
        return -ENOTSUP;
    find_code(&builder, &object->elf);
    int error = 0;
    if (section_of(&object->elf, ".eh_frame", &section) ||
        eh_frame_by_segment(&object->elf, &section))
        error = add_section(&builder, &section);
    if (!error && section_of(&object->elf, ".debug_frame", &section))
        error = add_section(&builder, &section);
    if (!error && debug && section_of(&debug->elf, ".debug_frame", &section))
        error = add_section(&builder, &section);
    return finish(&builder, error);
}

/* The lowest address that the section's functions start at. */
static uint64_t lowest_start(struct cfi_section section)
{
    uint64_t lowest = UINT64_MAX;
    struct cfi_function function;
    for (int result; (result = cfi_next(&section, &function)) != 0;) {
        if (result > 0 && function.start_svma < lowest)
            lowest = function.start_svma;
    }
    return lowest;
}

/* perf puts .eh_frame behind the code, at the next multiple of 8, and CPython's functions point
 * back over that distance. Other writers count from elsewhere: when nothing starts inside the code,
 * the first function is taken to start where the code does. */
int unwind_table_init_jit(struct unwind_table *table, uint16_t elf_machine,
                          const struct unwind_jit *jit)
{
    *table = (struct unwind_table){0};
    struct builder builder = {.table = table, .code = {{0, jit->code_size}}, .code_count = 1};
    builder.machine = unwind_machine_of(elf_machine);
    if (!builder.machine)
        return -ENOTSUP;
    struct cfi_section section = {.svma = (jit->code_size + 7) & ~(uint64_t)7,
                                  .ends_at_zero = true};
    if (jit->eh_frame_hdr_size <= jit->size)
        cursor_init(&section.cursor, "jitdump", jit->data, jit->size - jit->eh_frame_hdr_size);
    uint64_t lowest = lowest_start(section);
    if (lowest >= jit->code_size)
        section.svma -= lowest;
    return finish(&builder, add_section(&builder, &section));
}

void unwind_table_done(struct unwind_table *table)
{
    free(table->starts);
    free(table->rule_of);
    vector_done(&table->rules);
    *table = (struct unwind_table){0};
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *table, uint64_t svma)
{
    uint64_t wanted = svma - table->base_svma;
    if (svma < table->base_svma || svma >= table->end_svma)
        return NULL;
    size_t low = 0, high = table->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->starts[middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    uint16_t rule = low ? table->rule_of[low - 1] : UNWIND_NO_RULE;
    return rule == UNWIND_NO_RULE ? NULL : &table->rules.items[rule];
}
