/* Call frame information is written per function, in any order, by compilers, assemblers and
 * linkers that may not agree. libLLVM has 95,000 functions, of which a program meets some hundreds;
 * running all of their programs takes longer than the rings of a recording last. So only those are
 * run that are asked for:
 *
 *     index     where each function starts, and where its description is (cfi_index.c)
 *     run       the program of a function that is asked for the first time; its rows go behind
 *               those of others, and each different rule is kept once: a hundred thousand rows have
 *               a few hundred rules
 *     look up   the function in the index, the row in the function
 *
 * The answers are the same as if all had been run: a function ends where the next one starts, if
 * not before. What .eh_frame does not describe may be in .debug_frame, which is not opened before
 * that; a function of .debug_frame that starts inside one of .eh_frame does not count, and none
 * goes on behind the start of one.
 *
 * .eh_frame_hdr gives the index for less than the section itself, but can be wrong or incomplete.
 * What it leads to is a description that says itself which function it is for; if it is not the
 * one, or if no function has the address and there are more than the header has, the section is
 * walked through after all, once. What is damaged has no rules, and covers nothing.
 *
 * Only functions in executable segments count. Others are remains of code that the linker threw
 * away, or damage. */
#include "unwind/unwind_table.h"

#include "unwind/cfi_program.h"
#include "unwind/unwind_machine.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* --- rules ------------------------------------------------------------------------------------ */

/* How far below the CFA a place is; 0 when that is not what it is. */
static uint32_t bytes_below_cfa(const struct unwind_place *place)
{
    return place->kind == UNWIND_AT_CFA && place->offset <= -(int32_t)sizeof(uint64_t)
               ? (uint32_t) - (int64_t)place->offset
               : 0;
}

uint32_t unwind_rule_plain_bytes(const struct unwind_rule *rule)
{
    uint32_t most = bytes_below_cfa(&rule->return_address);
    if (!most || rule->cfa != UNWIND_CFA_REGISTER || rule->is_signal)
        return 0;
    for (unsigned i = 0; i < rule->place_count; i++) {
        uint32_t bytes = bytes_below_cfa(&rule->places[i]);
        if (!bytes)
            return 0;
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* Places behind the last one are zero in all rules: they need not be looked at. */
static size_t significant_bytes(const struct unwind_rule *rule)
{
    return offsetof(struct unwind_rule, places) + rule->place_count * sizeof rule->places[0];
}

static int add_rule(struct unwind_table *table, const struct unwind_rule *rule, uint64_t hash)
{
    struct unwind_rule *kept = arena_alloc(&table->arena, sizeof *kept);
    if (!kept || vector_reserve(&table->rules, table->rules.count + 1) < 0 ||
        hashtable_add(&table->rule_index, hash, table->rules.count) < 0)
        return -ENOMEM;
    *kept = *rule;
    return vector_push(&table->rules, kept);
}

/* The number of a rule; UNWIND_NO_RULE when there are too many. */
static int number_rule(struct unwind_table *table, const struct unwind_rule *rule,
                       uint16_t *ret_number)
{
    size_t bytes = significant_bytes(rule);
    uint64_t hash = hash_bytes(rule, bytes), known;
    struct hashtable_probe probe = hashtable_probe(&table->rule_index, hash);
    while (hashtable_next(&probe, &known)) {
        if (memcmp(table->rules.items[known], rule, bytes) == 0) {
            *ret_number = (uint16_t)known;
            return 0;
        }
    }
    *ret_number = UNWIND_NO_RULE;
    if (table->rules.count >= UNWIND_NO_RULE)
        return 0;
    if (add_rule(table, rule, hash) < 0)
        return -ENOMEM;
    *ret_number = (uint16_t)(table->rules.count - 1);
    return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

/* A function that is being run. */
struct run {
    struct unwind_table *table;
    struct unwind_section *section;
    struct unwind_function function;
};

/* Each row takes a byte of the section at least. More of them mean descriptions that lie in each
 * other, where an index leads to that is there to waste memory. */
static int take_row(void *context, uint64_t svma, const struct unwind_rule *rule)
{
    struct run *run = context;
    struct unwind_section *section = run->section;
    uint64_t delta = svma - run->function.start_svma;
    uint16_t number;
    if (delta > UINT32_MAX || section->rows.count >= section->bytes.section.cursor.length)
        return -EBADMSG;
    int error = number_rule(run->table, rule, &number);
    if (error < 0)
        return error;
    if (section->rows.count > run->function.first_row &&
        section->rows.items[section->rows.count - 1].rule == number)
        return 0;
    return vector_push(&section->rows,
                       ((struct unwind_row){.delta = (uint32_t)delta, .rule = number}));
}

/* Runs the program of an entry's function, and keeps it. One that is damaged is kept as one without
 * rows. -EBADMSG when the entry is not that of a function. */
static int run_function(struct unwind_table *table, struct unwind_section *section,
                        struct cfi_index_entry *entry)
{
    struct cfi_function described;
    if (!cfi_at(&section->bytes.section, entry->place, &described) ||
        described.start_svma != entry->start_svma || !cfi_code_has(&table->code, &described))
        return -EBADMSG;
    struct run run = {.table = table, .section = section};
    uint64_t end = described.start_svma + described.size;
    uint64_t next = cfi_index_next_start(&section->index, entry);
    run.function = (struct unwind_function){.start_svma = described.start_svma,
                                            .end_svma = next < end ? next : end,
                                            .first_row = section->rows.count};
    int error = cfi_program_run(table->machine, &described,
                                (struct cfi_sink){.take = take_row, .context = &run});
    if (error == -EBADMSG) {
        section->rows.count = run.function.first_row;
        run.function.end_svma = run.function.start_svma;
    }
    run.function.row_count = section->rows.count - run.function.first_row;
    if (error == -ENOMEM || section->functions.count >= UINT32_MAX ||
        vector_push(&section->functions, run.function) < 0) {
        section->rows.count = run.function.first_row;
        return -ENOMEM;
    }
    table->damaged += error == -EBADMSG;
    entry->number = (uint32_t)section->functions.count;
    return 0;
}

/* --- sections --------------------------------------------------------------------------------- */

static void close_section(struct unwind_section *section)
{
    cfi_bytes_done(&section->bytes);
    cfi_index_done(&section->index);
    vector_done(&section->functions);
    vector_done(&section->rows);
    *section = (struct unwind_section){0};
}

/* Makes the index of what is in the section. Functions get new numbers; rules stay. */
static int walk_section(struct unwind_table *table, struct unwind_section *section)
{
    int error =
        cfi_index_by_walk(&section->index, section->bytes.section, &table->code, &table->damaged);
    if (error < 0)
        return error;
    section->is_by_header = false;
    section->functions.count = 0;
    section->rows.count = 0;
    return 0;
}

/* The bytes of a section of the object; results as cfi_object_eh_frame. */
static int find_bytes(const struct unwind_table *table, size_t number, struct cfi_bytes *ret_bytes)
{
    const struct elf_object *object = number == 2 ? table->debug : table->object;
    if (!object)
        return 0;
    return number == 0 ? cfi_object_eh_frame(object, ret_bytes)
                       : cfi_object_debug_frame(object, ret_bytes);
}

/* Opens a section when it is needed the first time. Without one, or with one that can't be read, it
 * is empty. */
static int open_section(struct unwind_table *table, size_t number)
{
    struct unwind_section *section = &table->sections[number];
    struct cfi_header header;
    if (section->is_open)
        return 0;
    int result = find_bytes(table, number, &section->bytes);
    if (result == -ENOMEM)
        return result;
    section->is_open = true;
    if (result <= 0) {
        section->bytes = (struct cfi_bytes){0};
        table->damaged += result < 0;
        return 0;
    }
    int error = -ENOTSUP;
    if (number == 0 && cfi_object_header(table->object, &header))
        error = cfi_index_by_header(&section->index, &header, &section->bytes.section);
    section->is_by_header = !error;
    if (error == -ENOTSUP)
        error = walk_section(table, section);
    if (error < 0)
        close_section(section);
    return error;
}

/* --- look-up ---------------------------------------------------------------------------------- */

/* The last function that starts at or before an address. -ENOENT when there is none, -EBADMSG when
 * its entry of the index is wrong, -ENOMEM. */
static int find_nearest(struct unwind_table *table, struct unwind_section *section, uint64_t svma,
                        const struct unwind_function **ret_function)
{
    struct cfi_index_entry *entry = cfi_index_find(&section->index, svma);
    if (!entry)
        return -ENOENT;
    int error = entry->number ? 0 : run_function(table, section, entry);
    if (!error)
        *ret_function = &section->functions.items[entry->number - 1];
    return error;
}

/* Whether .eh_frame_hdr is said to have all there is. Much code has no description (_init, in every
 * library), and counting takes a tenth of the time of walking. */
static bool has_all(struct unwind_section *section)
{
    if (!section->is_complete)
        section->is_complete = cfi_count(section->bytes.section) == section->index.entries.count;
    return section->is_complete;
}

/* As find_nearest, in a section that may not be open yet, and whatever .eh_frame_hdr says. */
static int find_in_section(struct unwind_table *table, size_t number, uint64_t svma,
                           const struct unwind_function **ret_function)
{
    struct unwind_section *section = &table->sections[number];
    int error = open_section(table, number);
    if (error < 0)
        return error;
    error = find_nearest(table, section, svma, ret_function);
    if (!section->is_by_header || error == -ENOMEM || (!error && svma < (*ret_function)->end_svma))
        return error;
    if (error != -EBADMSG && has_all(section))
        return error;
    error = walk_section(table, section);
    return error < 0 ? error : find_nearest(table, section, svma, ret_function);
}

static bool is_code(const struct unwind_table *table, uint64_t svma)
{
    struct cfi_function byte = {.start_svma = svma, .size = 1};
    return cfi_code_has(&table->code, &byte);
}

/* The function at an address, and the section that describes it; NULL when there is none. */
static const struct unwind_function *find_function(struct unwind_table *table, uint64_t svma,
                                                   const struct unwind_section **ret_section)
{
    uint64_t taken_svma = 0; /* where that ends which sections before have */
    for (size_t i = 0; i < UNWIND_SECTIONS && is_code(table, svma); i++) {
        const struct unwind_function *function;
        int error = find_in_section(table, i, svma, &function);
        if (error == -ENOMEM)
            break;
        if (error || function->start_svma < taken_svma)
            continue;
        *ret_section = &table->sections[i];
        if (svma < function->end_svma)
            return function;
        if (function->row_count)
            taken_svma = function->end_svma;
    }
    return NULL;
}

const struct unwind_rule *unwind_table_find(struct unwind_table *table, uint64_t svma)
{
    const struct unwind_section *section;
    const struct unwind_function *function = find_function(table, svma, &section);
    if (!function)
        return NULL;
    const struct unwind_row *rows = section->rows.items + function->first_row;
    size_t low = 0, high = function->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (rows[middle].delta <= svma - function->start_svma)
            low = middle + 1;
        else
            high = middle;
    }
    uint16_t rule = low ? rows[low - 1].rule : UNWIND_NO_RULE;
    return rule == UNWIND_NO_RULE ? NULL : table->rules.items[rule];
}

bool unwind_table_function(struct unwind_table *table, uint64_t svma, struct cfi_range *ret_range)
{
    const struct unwind_section *section;
    const struct unwind_function *function = find_function(table, svma, &section);
    if (!function)
        return false;
    *ret_range = (struct cfi_range){function->start_svma, function->end_svma};
    return true;
}

/* --- tables ----------------------------------------------------------------------------------- */

int unwind_table_init(struct unwind_table *table, const struct elf_object *object,
                      const struct elf_object *debug)
{
    *table = (struct unwind_table){.object = object, .debug = debug};
    table->machine = unwind_machine_of(object->elf.header.e_machine);
    if (!table->machine)
        return -ENOTSUP;
    cfi_object_code(object, &table->code);
    return 0;
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
    *table = (struct unwind_table){.code = {.ranges = {{0, jit->code_size}}, .count = 1}};
    table->machine = unwind_machine_of(elf_machine);
    if (!table->machine)
        return -ENOTSUP;
    struct unwind_section *section = &table->sections[0];
    struct cfi_section *cfi = &section->bytes.section;
    section->is_open = true;
    cfi->svma = (jit->code_size + 7) & ~(uint64_t)7;
    cfi->ends_at_zero = true;
    if (jit->eh_frame_hdr_size <= jit->size)
        cursor_init(&cfi->cursor, "jitdump", jit->data, jit->size - jit->eh_frame_hdr_size);
    uint64_t lowest = lowest_start(*cfi);
    if (lowest >= jit->code_size)
        cfi->svma -= lowest;
    int error = cfi_bytes_keep(&section->bytes);
    if (!error)
        error = walk_section(table, section);
    if (error < 0)
        unwind_table_done(table);
    return error;
}

void unwind_table_done(struct unwind_table *table)
{
    for (size_t i = 0; i < UNWIND_SECTIONS; i++)
        close_section(&table->sections[i]);
    vector_done(&table->rules);
    hashtable_done(&table->rule_index);
    arena_done(&table->arena);
    *table = (struct unwind_table){0};
}
