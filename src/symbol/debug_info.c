/* libdw knows the formats; what it does not have is a quick answer to "what is at this address". So
 * all units are walked once:
 *
 *     lines[]     address -> file and line         of the line tables, sorted
 *     inlines[]   [low, high) -> function, call    of DW_TAG_inlined_subroutine, sorted
 *
 *     f() at 10:  |----------------------------------|      a function (the symbol table has it)
 *                     |-- g inlined, called at 11 --|       inlines[4], enclosing none
 *                          |- h, called at 21 -|            inlines[5], enclosing 4
 *                                 ^ address, line 31        h:31, g:21, f:11
 *
 * Inlined functions nest, so each knows the one around it: from the last that starts at or before
 * the address the chain outward leads through all that have it. The line of a place is that of the
 * call which the next inner place came by.
 *
 * Damage is libdw's to find: units and entries that it can't read are left out. */
#include "symbol/debug_info.h"

#include "base/cleanup.h"
#include "base/strings.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

/* Entries nest deeper than this only in files that are damaged on purpose. */
enum { DEEPEST = 256 };

#define NONE UINT32_MAX

struct line {
    uint64_t svma;
    uint32_t file; /* string */
    uint32_t line; /* 0: behind the end of a sequence */
};

struct inlined {
    uint64_t low_svma;
    uint64_t high_svma; /* first address behind it */
    uint32_t function;  /* string */
    uint32_t call_file; /* string */
    uint32_t call_line;
    uint32_t depth;     /* of nesting, for sorting */
    uint32_t enclosing; /* index, or NONE */
};

struct debug_info {
    struct strings strings;
    VECTOR(struct line) lines;      /* ascending */
    VECTOR(struct inlined) inlines; /* ascending by low_svma, outer before inner */
};

static int intern(struct debug_info *info, const char *text, uint32_t *ret_id)
{
    *ret_id = 0;
    return text ? strings_intern(&info->strings, text, strlen(text), ret_id) : 0;
}

/* --- the walk ------------------------------------------------------------------------------------
 */

static int add_lines(struct debug_info *info, Dwarf_Die *unit)
{
    Dwarf_Lines *lines;
    size_t count;
    if (dwarf_getsrclines(unit, &lines, &count) != 0)
        return 0;
    const char *last_text = NULL;
    uint32_t last_file = 0;
    for (size_t i = 0; i < count; i++) {
        Dwarf_Line *from = dwarf_onesrcline(lines, i);
        Dwarf_Addr svma;
        int number = 0;
        bool is_end = false;
        const char *text = from ? dwarf_linesrc(from, NULL, NULL) : NULL;
        if (!from || dwarf_lineaddr(from, &svma) != 0)
            continue;
        dwarf_lineno(from, &number);
        dwarf_lineendsequence(from, &is_end);
        if (text != last_text && intern(info, text, &last_file) < 0)
            return -ENOMEM;
        last_text = text;
        struct line line = {
            .svma = svma, .file = last_file, .line = is_end || number < 0 ? 0 : (uint32_t)number};
        if (vector_push(&info->lines, line) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* The name of what an entry is an instance of; the mangled one where there is one, as perf takes.
 */
static const char *name_of(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute) ||
        dwarf_attr_integrate(die, DW_AT_name, &attribute))
        return dwarf_formstring(&attribute);
    return NULL;
}

static uint32_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
        value > UINT32_MAX)
        return 0;
    return (uint32_t)value;
}

static int add_inlined(struct debug_info *info, Dwarf_Die *die, Dwarf_Files *files, uint32_t depth)
{
    struct inlined inlined = {
        .call_line = number_of(die, DW_AT_call_line), .depth = depth, .enclosing = NONE};
    uint32_t file = number_of(die, DW_AT_call_file);
    const char *name = name_of(die);
    if (!name)
        return 0;
    if (intern(info, name, &inlined.function) < 0 ||
        intern(info, files ? dwarf_filesrc(files, file, NULL, NULL) : NULL, &inlined.call_file) < 0)
        return -ENOMEM;
    Dwarf_Addr base, low, high;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;) {
        inlined.low_svma = low;
        inlined.high_svma = high;
        if (low < high && vector_push(&info->inlines, inlined) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* Goes through the children of an entry, and theirs. */
static int walk(struct debug_info *info, Dwarf_Die *parent, Dwarf_Files *files, uint32_t depth)
{
    Dwarf_Die die;
    if (depth > DEEPEST || dwarf_child(parent, &die) != 0)
        return 0;
    do {
        int error = 0;
        switch (dwarf_tag(&die)) {
        case DW_TAG_inlined_subroutine:
            error = add_inlined(info, &die, files, depth);
            if (error == 0)
                error = walk(info, &die, files, depth + 1);
            break;
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
        case DW_TAG_namespace:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
            error = walk(info, &die, files, depth + 1);
            break;
        default:
            break;
        }
        if (error < 0)
            return error;
    } while (dwarf_siblingof(&die, &die) == 0);
    return 0;
}

static int walk_units(struct debug_info *info, Dwarf *dwarf)
{
    Dwarf_CU *unit = NULL;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0) {
        Dwarf_Files *files;
        size_t count;
        if (dwarf_tag(&die) != DW_TAG_compile_unit)
            continue;
        if (dwarf_getsrcfiles(&die, &files, &count) != 0)
            files = NULL;
        int error = add_lines(info, &die);
        if (error == 0)
            error = walk(info, &die, files, 0);
        if (error < 0)
            return error;
    }
    return 0;
}

/* --- sorting -------------------------------------------------------------------------------------
 */

/* The end of a sequence comes before the start of another at the same address. */
static int compare_lines(const void *left, const void *right)
{
    const struct line *a = left, *b = right;
    if (a->svma != b->svma)
        return a->svma < b->svma ? -1 : 1;
    return (a->line != 0) - (b->line != 0);
}

static int compare_inlines(const void *left, const void *right)
{
    const struct inlined *a = left, *b = right;
    if (a->low_svma != b->low_svma)
        return a->low_svma < b->low_svma ? -1 : 1;
    if (a->high_svma != b->high_svma)
        return a->high_svma > b->high_svma ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static void sort(struct debug_info *info)
{
    struct inlined *inlines = info->inlines.items;
    if (info->lines.count)
        qsort(info->lines.items, info->lines.count, sizeof *info->lines.items, compare_lines);
    if (info->inlines.count)
        qsort(inlines, info->inlines.count, sizeof *inlines, compare_inlines);
    uint32_t around = NONE;
    for (uint32_t i = 0; i < info->inlines.count; i++) {
        while (around != NONE && inlines[around].high_svma <= inlines[i].low_svma)
            around = inlines[around].enclosing;
        inlines[i].enclosing = around;
        around = i;
    }
}

/* --- the interface -------------------------------------------------------------------------------
 */

static void close_dwarf(Dwarf **dwarf)
{
    if (*dwarf)
        dwarf_end(*dwarf);
}

static void close_elf(Elf **elf)
{
    elf_end(*elf);
}

static int read_dwarf(Dwarf *dwarf, struct debug_info **ret_info)
{
    struct debug_info *info = calloc(1, sizeof *info);
    if (!info)
        return -ENOMEM;
    int error = strings_init(&info->strings);
    if (error < 0) {
        free(info);
        return error;
    }
    error = walk_units(info, dwarf);
    if (error < 0) {
        debug_info_close(info);
        return error;
    }
    sort(info);
    *ret_info = info;
    return 0;
}

int debug_info_open(const char *path, struct debug_info **ret_info)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    CLEANUP(close_dwarf) Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    return dwarf ? read_dwarf(dwarf, ret_info) : -ENOENT;
}

int debug_info_open_memory(const void *data, size_t length, struct debug_info **ret_info)
{
    elf_version(EV_CURRENT);
    CLEANUP(close_elf) Elf *elf = elf_memory((char *)data, length); /* only read */
    CLEANUP(close_dwarf) Dwarf *dwarf = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    return dwarf ? read_dwarf(dwarf, ret_info) : -ENOENT;
}

void debug_info_close(struct debug_info *info)
{
    if (!info)
        return;
    vector_done(&info->lines);
    vector_done(&info->inlines);
    strings_done(&info->strings);
    free(info);
}

static const char *text_of(const struct debug_info *info, uint32_t string)
{
    return string ? strings_get(&info->strings, string).bytes : NULL;
}

/* The line of an address; NULL when there is none. */
static const struct line *find_line(const struct debug_info *info, uint64_t svma)
{
    size_t first = 0, behind = info->lines.count;
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (info->lines.items[middle].svma <= svma)
            first = middle + 1;
        else
            behind = middle;
    }
    const struct line *line = first ? &info->lines.items[first - 1] : NULL;
    return line && line->line ? line : NULL;
}

/* The last inlined function that starts at or before an address, or NONE. */
static uint32_t last_inlined(const struct debug_info *info, uint64_t svma)
{
    size_t first = 0, behind = info->inlines.count;
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (info->inlines.items[middle].low_svma <= svma)
            first = middle + 1;
        else
            behind = middle;
    }
    return first ? (uint32_t)(first - 1) : NONE;
}

size_t debug_info_find(const struct debug_info *info, uint64_t svma, struct debug_place *places,
                       size_t capacity)
{
    const struct line *line = find_line(info, svma);
    const char *file = line ? text_of(info, line->file) : NULL;
    uint32_t number = line ? line->line : 0;
    size_t count = 0;
    if (!capacity)
        return 0;
    for (uint32_t i = last_inlined(info, svma); i != NONE; i = info->inlines.items[i].enclosing) {
        const struct inlined *inlined = &info->inlines.items[i];
        if (svma >= inlined->high_svma)
            continue;
        if (count + 1 < capacity)
            places[count++] = (struct debug_place){
                .function = text_of(info, inlined->function), .file = file, .line = number};
        file = text_of(info, inlined->call_file);
        number = inlined->call_line;
    }
    places[count++] = (struct debug_place){.file = file, .line = number};
    return count;
}
