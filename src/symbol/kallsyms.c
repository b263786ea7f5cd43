/* One line per symbol, in an order that is nearly that of the addresses:
 *
 *     ffffffff81000000 T _stext
 *     ffffffffc0403000 t nf_nat_init	[nf_nat]
 *
 * Sizes are not told: a symbol reaches to the next one. perf leaves out all types but T, W, D, B
 * (of either case), and of several symbols at one address takes the last; so does this. */
#include "symbol/kallsyms.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A symbol that is the last one of its part of memory reaches this far at most. */
enum { LAST_BYTES = 4096 };

static bool read_hex(const char **at, const char *end, uint64_t *ret)
{
    const char *start = *at;
    *ret = 0;
    for (; *at < end && isxdigit((unsigned char)**at) && *at - start < 16; (*at)++) {
        int digit = tolower((unsigned char)**at);
        *ret = *ret << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return *at > start;
}

static bool is_wanted(char type)
{
    return type && strchr("TWDB", toupper((unsigned char)type)) != NULL;
}

/* Takes a line apart; false when it is no symbol that counts. */
static bool read_line(const struct kallsyms *kallsyms, const char *at, const char *end,
                      struct kallsyms_entry *ret_entry)
{
    const char *base = (const char *)kallsyms->file.data;
    *ret_entry = (struct kallsyms_entry){0};
    if (!read_hex(&at, end, &ret_entry->avma) || end - at < 4 || at[0] != ' ' || at[2] != ' ' ||
        !is_wanted(at[1]))
        return false;
    at += 3;
    const char *tab = memchr(at, '\t', (size_t)(end - at));
    const char *name_end = tab ? tab : end;
    ret_entry->name = (uint32_t)(at - base);
    ret_entry->name_length = (uint32_t)(name_end - at);
    if (tab && end - tab > 3 && tab[1] == '[' && end[-1] == ']') {
        ret_entry->module = (uint32_t)(tab + 2 - base);
        ret_entry->module_length = (uint32_t)(end - tab - 3);
    }
    return ret_entry->name_length > 0;
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
    const char *at = (const char *)kallsyms->file.data, *end = at + kallsyms->file.length;
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
    if (!is_sorted)
        qsort(kallsyms->entries.items, kallsyms->entries.count, sizeof *kallsyms->entries.items,
              compare_entries);
    return 0;
}

int kallsyms_read(struct kallsyms *kallsyms, const char *path)
{
    *kallsyms = (struct kallsyms){0};
    int error = file_read(path, &kallsyms->file);
    if (error < 0)
        return error;
    error = kallsyms->file.length > UINT32_MAX ? -EFBIG : read_lines(kallsyms);
    if (error < 0)
        kallsyms_done(kallsyms);
    return error;
}

void kallsyms_done(struct kallsyms *kallsyms)
{
    vector_done(&kallsyms->entries);
    file_done(&kallsyms->file);
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
    *ret_symbol = (struct symbol){.name = (const char *)kallsyms->file.data + entry->name,
                                  .name_length = entry->name_length,
                                  .start = entry->avma,
                                  .size = size};
    return avma - entry->avma < size;
}

uint64_t kallsyms_address(const struct kallsyms *kallsyms, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < kallsyms->entries.count; i++) {
        const struct kallsyms_entry *entry = &kallsyms->entries.items[i];
        if (entry->name_length == length && !entry->module_length &&
            memcmp(kallsyms->file.data + entry->name, name, length) == 0)
            return entry->avma;
    }
    return 0;
}
