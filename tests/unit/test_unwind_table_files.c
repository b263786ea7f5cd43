/* The tables of real files: this program, the libraries that it uses, and some more if they are
 * here. Rules that come by .eh_frame_hdr are those that come by walking through .eh_frame; and
 * those that libdw knows, which shares no code with us. */
#include "unwind/unwind_table.h"

#include "unit.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>

enum { MOST_FILES = 64 };

static const char *const MORE[] = {
    "/usr/bin/python3",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
    "/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
    "/usr/lib64/libstdc++.so.6",
};

static char *paths[MOST_FILES];
static size_t path_count;

static int take_library(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size, (void)context;
    if (info->dlpi_name[0] == '/' && path_count < MOST_FILES)
        paths[path_count++] = strdup(info->dlpi_name);
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    paths[path_count++] = strdup("/proc/self/exe");
    dl_iterate_phdr(take_library, NULL);
    for (size_t i = 0; i < COUNT(MORE) && path_count < MOST_FILES; i++)
        if (access(MORE[i], R_OK) == 0)
            paths[path_count++] = strdup(MORE[i]);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    while (path_count)
        free(paths[--path_count]);
    return 0;
}

/* The same file without its .eh_frame_hdr. */
static struct elf_object *open_without_header(const struct elf_object *object, uint8_t **ret_bytes)
{
    uint8_t *bytes = exact_copy(object->data, object->length);
    Elf64_Ehdr header = object->elf.header;
    for (size_t i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        uint8_t *at = bytes + header.e_phoff + i * sizeof segment;
        memcpy(&segment, at, sizeof segment);
        if (segment.p_type == PT_GNU_EH_FRAME)
            segment.p_type = PT_NULL;
        memcpy(at, &segment, sizeof segment);
    }
    struct elf_object *other;
    assert_int_equal(elf_object_open_memory(object->path, bytes, object->length, &other), 0);
    *ret_bytes = bytes;
    return other;
}

static void assert_same_rule(struct unwind_table *one, struct unwind_table *other, uint64_t svma)
{
    const struct unwind_rule *rule = unwind_table_find(one, svma);
    const struct unwind_rule *same = unwind_table_find(other, svma);
    assert_int_equal(!rule, !same);
    if (!rule)
        return;
    struct unwind_rule first = *rule, second = *same;
    assert_int_equal(first.expression_bytes, second.expression_bytes);
    if (first.expression)
        assert_memory_equal(first.expression, second.expression, first.expression_bytes);
    first.expression = second.expression = NULL; /* each has its own copy of the file */
    assert_memory_equal(&first, &second, sizeof first);
}

/* At the start, in the middle, at the end of every function, and behind it. */
static size_t compare_ways(const char *path)
{
    struct elf_object *object;
    uint8_t *bytes;
    struct unwind_table by_header, by_walk;
    assert_int_equal(elf_object_open(path, &object), 0);
    struct elf_object *without = open_without_header(object, &bytes);
    assert_int_equal(unwind_table_init(&by_header, object, NULL), 0);
    assert_int_equal(unwind_table_init(&by_walk, without, NULL), 0);
    assert_same_rule(&by_header, &by_walk, by_walk.code.ranges[0].start_svma);
    assert_false(by_walk.sections[0].is_by_header);
    size_t count = by_header.sections[0].is_by_header ? by_walk.sections[0].index.entries.count : 0;
    for (size_t i = 0; i < count; i++) {
        struct cfi_range range;
        uint64_t start = by_walk.sections[0].index.entries.items[i].start_svma;
        assert_true(unwind_table_function(&by_walk, start, &range));
        assert_int_equal(range.start_svma, start);
        assert_same_rule(&by_header, &by_walk, start);
        assert_same_rule(&by_header, &by_walk, start + (range.end_svma - start) / 2);
        assert_same_rule(&by_header, &by_walk, range.end_svma - 1);
        assert_same_rule(&by_header, &by_walk, range.end_svma);
    }
    assert_int_equal(by_walk.damaged, 0);
    unwind_table_done(&by_header);
    unwind_table_done(&by_walk);
    elf_object_close(without);
    elf_object_close(object);
    free(bytes);
    return count;
}

static void rules_are_the_same_with_and_without_the_header(void **state)
{
    (void)state;
    size_t functions = 0;
    for (size_t i = 0; i < path_count; i++)
        functions += compare_ways(paths[i]);
    assert_true(functions > 1000);
}

/* --- libdw ------------------------------------------------------------------------------------ */

/* libdw's "register + offset". */
static bool is_register(const Dwarf_Op *ops, size_t count, uint8_t number, int32_t offset)
{
    if (count != 1)
        return false;
    if (ops->atom == DW_OP_bregx)
        return ops->number == number && (int64_t)ops->number2 == offset;
    return ops->atom == DW_OP_breg0 + number && (int64_t)ops->number == offset;
}

/* libdw's "at CFA + offset". */
static bool is_at_cfa(const Dwarf_Op *ops, size_t count, int32_t offset)
{
    if (!count || ops[0].atom != DW_OP_call_frame_cfa)
        return false;
    return count == 1
               ? offset == 0
               : count == 2 && ops[1].atom == DW_OP_plus_uconst && (int64_t)ops[1].number == offset;
}

/* Whether libdw has a register where a rule has it. Expressions are compared by being some. */
static bool is_in_place(Dwarf_Frame *frame, int number, const struct unwind_place *place)
{
    Dwarf_Op memory[3], *ops;
    size_t count;
    if (dwarf_frame_register(frame, number, memory, &ops, &count) < 0)
        return false;
    if (!place || place->kind == UNWIND_SAME || place->kind == UNWIND_UNDEFINED)
        return count == 0;
    return place->kind == UNWIND_AT_CFA ? is_at_cfa(ops, count, place->offset) : count > 0;
}

static const struct unwind_place *place_of(const struct unwind_rule *rule, uint8_t number)
{
    for (size_t i = 0; i < rule->place_count; i++)
        if (rule->places[i].target == number)
            return &rule->places[i];
    return NULL;
}

static bool is_as_libdw_has_it(Dwarf_Frame *frame, const struct unwind_rule *rule)
{
    static const uint8_t SAVED[] = {3, 6, 12, 13, 14, 15}; /* of x86-64 */
    Dwarf_Op *ops;
    size_t count;
    bool is_signal;
    int return_column = dwarf_frame_info(frame, NULL, NULL, &is_signal);
    if (dwarf_frame_cfa(frame, &ops, &count) < 0 || is_signal != rule->is_signal)
        return false;
    if (rule->cfa == UNWIND_CFA_REGISTER
            ? !is_register(ops, count, rule->cfa_number, rule->cfa_offset)
            : count < 2)
        return false;
    for (size_t i = 0; i < COUNT(SAVED) && rule->cfa != UNWIND_CFA_NONE; i++)
        if (!is_in_place(frame, SAVED[i], place_of(rule, SAVED[i])))
            return false;
    return is_in_place(frame, return_column, &rule->return_address);
}

/* Row by row through a function; how many there are. */
static size_t compare_rows(struct unwind_table *table, Dwarf_CFI *cfi, struct cfi_range function)
{
    size_t rows = 0;
    for (Dwarf_Addr svma = function.start_svma; svma < function.end_svma; rows++) {
        Dwarf_Frame *frame;
        Dwarf_Addr end;
        assert_int_equal(dwarf_cfi_addrframe(cfi, svma, &frame), 0);
        assert_true(dwarf_frame_info(frame, NULL, &end, NULL) >= 0 && end > svma);
        Dwarf_Addr svmas[] = {svma, (end < function.end_svma ? end : function.end_svma) - 1};
        for (size_t i = 0; i < COUNT(svmas); i++) {
            const struct unwind_rule *rule = unwind_table_find(table, svmas[i]);
            if (!rule || !is_as_libdw_has_it(frame, rule))
                fail_msg("0x%lx is not as libdw has it", (unsigned long)svmas[i]);
        }
        free(frame);
        svma = end;
    }
    return rows;
}

static size_t compare_with_libdw(const char *path)
{
    struct elf_object *object;
    struct unwind_table table;
    assert_int_equal(elf_object_open(path, &object), 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    Dwarf_CFI *cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
    size_t rows = 0;
    assert_int_equal(unwind_table_init(&table, object, NULL), 0);
    bool is_known = cfi && object->elf.header.e_machine == EM_X86_64;
    (void)unwind_table_find(&table, table.code.ranges[0].start_svma); /* opens the section */
    for (size_t i = 0; is_known && i < table.sections[0].index.entries.count; i++) {
        struct cfi_range range;
        uint64_t start = table.sections[0].index.entries.items[i].start_svma;
        if (unwind_table_function(&table, start, &range))
            rows += compare_rows(&table, cfi, range);
    }
    unwind_table_done(&table);
    dwarf_cfi_end(cfi);
    elf_end(elf);
    close(fd);
    elf_object_close(object);
    return rows;
}

static void every_row_is_as_libdw_has_it(void **state)
{
    (void)state;
    size_t rows = 0;
    elf_version(EV_CURRENT);
    for (size_t i = 0; i < path_count; i++)
        rows += compare_with_libdw(paths[i]);
#ifdef __x86_64__
    assert_true(rows > 20000);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_the_same_with_and_without_the_header),
        cmocka_unit_test(every_row_is_as_libdw_has_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
