/* One line per symbol, in an order that is nearly that of the addresses:
 *
 *     ffffffff81000000 T _stext
 *     ffffffffc0403000 t nf_nat_init	[nf_nat]
 *
 * Sizes are not told: a symbol reaches to the next one. perf leaves out all types but T, W, D, B
 * (of either case), and of several symbols at one address takes the last; so does this. */
#include "symbol/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A symbol that is the last one of its part of memory reaches this far at most. */
enum { LAST_BYTES = 4096 };

/* 1 to 16, or 0 when it is no digit. */
static unsigned digit_plus_one(char c)
{
    static const uint8_t digits[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
        ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
        ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
        ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};
    return digits[(uint8_t)c];
}

static bool read_hex(const char **at, const char *end, uint64_t *ret)
{
    const char *start = *at, *next = start, *last = end - start < 16 ? end : start + 16;
    uint64_t number = 0;
    unsigned digit;
    for (; next < last && (digit = digit_plus_one(*next)); next++)
        number = number << 4 | (digit - 1);
    *ret = number;
    *at = next;
    return next > start;
}

static bool is_wanted(char type)
{
    char letter = (char)(type & ~0x20); /* upper case */
    return letter == 'T' || letter == 'W' || letter == 'D' || letter == 'B';
}

/* Takes a line apart; false when it is no symbol that counts. */
static bool read_line(const struct kallsyms *kallsyms, const char *at, const char *end,
                      struct kallsyms_entry *ret_entry)
{
    if (!read_hex(&at, end, &ret_entry->avma) || end - at < 4 || at[0] != ' ' || at[2] != ' ' ||
        !is_wanted(at[1]) || at[3] == '\t')
        return false;
    ret_entry->name = (uint32_t)(at + 3 - kallsyms->text);
    return true;
}

/* The name of an entry, up to the tab before a module or the end of the line; its length. */
static size_t name_of(const struct kallsyms *kallsyms, const struct kallsyms_entry *entry,
                      const char **ret_name, bool *ret_in_module)
{
    const char *name = kallsyms->text + entry->name, *end = kallsyms->text + kallsyms->length;
    const char *newline = memchr(name, '\n', (size_t)(end - name));
    end = newline ? newline : end;
    const char *tab = memchr(name, '\t', (size_t)(end - name));
    *ret_name = name;
    *ret_in_module = tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']';
    return (size_t)((tab ? tab : end) - name);
}

/* By address; in the order of the file where these are equal. */
static int compare_entries(const void *left, const void *right)
{
    const struct kallsyms_entry *a = left, *b = right;
    if (a->avma != b->avma)
        return a->avma < b->avma ? -1 : 1;
    return a->name < b->name ? -1 : a->name > b->name;
}

static int read_lines(struct kallsyms *kallsyms)
{
    const char *at = kallsyms->text, *end = at + kallsyms->length;
    bool is_sorted = true;
    uint64_t last_avma = 0, all_bits = 0;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *line_end = newline ? newline : end;
        struct kallsyms_entry entry;
        if (read_line(kallsyms, at, line_end, &entry)) {
            if (vector_push(&kallsyms->entries, entry) < 0)
                return -ENOMEM;
            is_sorted &= entry.avma >= last_avma;
            last_avma = entry.avma;
            all_bits |= entry.avma;
        }
        at = line_end + 1;
    }
    kallsyms->is_hidden = kallsyms->entries.count && !all_bits;
    if (kallsyms->is_hidden)
        vector_done(&kallsyms->entries);
    else if (!is_sorted)
        qsort(kallsyms->entries.items, kallsyms->entries.count, sizeof *kallsyms->entries.items,
              compare_entries);
    return 0;
}

/* Files of /proc say that they are empty. */
static int read_text(struct kallsyms *kallsyms, const char *path)
{
    int error = mapping_open(path, &kallsyms->mapping);
    kallsyms->text = (const char *)kallsyms->mapping.data;
    kallsyms->length = kallsyms->mapping.length;
    if (error < 0 || kallsyms->length)
        return error;
    error = file_read(path, &kallsyms->file);
    kallsyms->text = (const char *)kallsyms->file.data;
    kallsyms->length = kallsyms->file.length;
    return error;
}

int kallsyms_read(struct kallsyms *kallsyms, const char *path)
{
    *kallsyms = (struct kallsyms){0};
    int error = read_text(kallsyms, path);
    if (error == 0)
        error = kallsyms->length > UINT32_MAX ? -EFBIG : read_lines(kallsyms);
    if (error < 0)
        kallsyms_done(kallsyms);
    return error;
}

void kallsyms_done(struct kallsyms *kallsyms)
{
    vector_done(&kallsyms->entries);
    file_done(&kallsyms->file);
    mapping_done(&kallsyms->mapping);
    *kallsyms = (struct kallsyms){0};
}

bool kallsyms_find(const struct kallsyms *kallsyms, uint64_t avma, struct symbol *ret_symbol)
{
    const struct kallsyms_entry *entries = kallsyms->entries.items;
    size_t first = 0, behind = kallsyms->entries.count; /* the first entry behind the address */
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (entries[middle].avma <= avma)
            first = middle + 1;
        else
            behind = middle;
    }
    if (first == 0)
        return false;
    const struct kallsyms_entry *entry = &entries[first - 1];
    uint64_t size = LAST_BYTES;
    if (first < kallsyms->entries.count)
        size = entries[first].avma - entry->avma;
    bool in_module;
    *ret_symbol = (struct symbol){.start = entry->avma, .size = size};
    ret_symbol->name_length = name_of(kallsyms, entry, &ret_symbol->name, &in_module);
    return avma - entry->avma < size;
}

uint64_t kallsyms_address(const struct kallsyms *kallsyms, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < kallsyms->entries.count; i++) {
        const struct kallsyms_entry *entry = &kallsyms->entries.items[i];
        const char *found;
        bool in_module;
        if (kallsyms->length - entry->name < length ||
            memcmp(kallsyms->text + entry->name, name, length) != 0)
            continue;
        if (name_of(kallsyms, entry, &found, &in_module) == length && !in_module)
            return entry->avma;
    }
    return 0;
}
