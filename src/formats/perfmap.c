/* One line at a time, without copying. What is taken for an entry is what perf takes for one: two
 * hexadecimal numbers, each followed by one blank, and a name that may contain blanks itself.
 * Beyond that, `0x` before the numbers, blanks before the line and a carriage return behind it are
 * let through, since writers in the wild produce them. */
#include "formats/perfmap.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

void perfmap_reader_init(struct perfmap_reader *reader, const char *source, const void *data,
                         size_t length)
{
    *reader = (struct perfmap_reader){0};
    cursor_init(&reader->cursor, source, data, length);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const int8_t HEX_DIGITS[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

/* Reads a number of 1 to 16 significant digits. Returns what follows it, or NULL. (A prefix with
 * nothing behind it may be the start of a number, so at the end it counts as one.) */
static const char *read_hex(const char *text, const char *end, uint64_t *ret_value)
{
    bool prefixed = end - text >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    uint64_t value = 0;
    const char *digit = text += prefixed ? 2 : 0;
    for (; digit < end && HEX_DIGITS[(uint8_t)*digit]; digit++) {
        if (value >> 60)
            return NULL;
        value = value << 4 | (uint64_t)(HEX_DIGITS[(uint8_t)*digit] - 1);
    }
    *ret_value = value;
    return digit > text || (prefixed && digit == end) ? digit : NULL;
}

/* Decodes the line [text, end), without its newline. NULL, or what is wrong with it. *ret_cut tells
 * that everything up to its end was right, and that it only ends too early. */
static const char *read_line(const char *text, const char *end, struct perfmap_entry *entry,
                             bool *ret_cut)
{
    const char *behind = read_hex(text, end, &entry->start);
    *ret_cut = behind == end;
    if (!behind || *ret_cut || !is_blank(*behind))
        return "the address is not a hexadecimal number of at most 64 bits";
    text = behind + 1;
    behind = read_hex(text, end, &entry->size);
    *ret_cut = text == end || behind == end;
    if (!behind || (!*ret_cut && !is_blank(*behind)))
        return "the size is not a hexadecimal number of at most 64 bits";
    uint64_t range_end;
    if (!checked_add_u64(entry->start, entry->size, &range_end))
        return "the range goes beyond the address space";
    *ret_cut = end - behind < 2;
    if (*ret_cut)
        return "the name is missing";
    entry->name = behind + 1;
    entry->name_length = (size_t)(end - entry->name);
    return NULL;
}

int perfmap_next(struct perfmap_reader *reader, struct perfmap_entry *ret_entry)
{
    struct cursor *cursor = &reader->cursor;
    while (cursor_left(cursor)) {
        const char *text = (const char *)cursor->data + cursor->offset;
        const char *newline = memchr(text, '\n', cursor_left(cursor));
        const char *end = newline ? newline : text + cursor_left(cursor);
        reader->line++;
        reader->line_offset = cursor->offset;
        cursor_skip(cursor, (size_t)(end - text) + (newline != NULL));

        while (text < end && is_blank(*text))
            text++;
        if (text < end && end[-1] == '\r')
            end--;
        if (text == end)
            continue;
        *ret_entry = (struct perfmap_entry){.unfinished = !newline};
        bool cut;
        reader->problem = read_line(text, end, ret_entry, &cut);
        if (!reader->problem)
            return 1;
        if (newline || !cut)
            return -EBADMSG;
        reader->problem = "the last line is incomplete";
        return -ENODATA;
    }
    return 0;
}

void perfmap_encode(struct writer *writer, const struct perfmap_entry *entry)
{
    writer_hex(writer, entry->start);
    writer_u8(writer, ' ');
    writer_hex(writer, entry->size);
    writer_u8(writer, ' ');
    const char *name = entry->name_length ? entry->name : "?";
    const char *end = name + (entry->name_length ? entry->name_length : 1);
    while (name < end) {
        const char *plain = name;
        while (name < end && *name != '\n' && *name != '\r' && *name != '\0')
            name++;
        writer_bytes(writer, plain, (size_t)(name - plain));
        if (name < end) {
            writer_bytes(writer, *name == '\n' ? "\\n" : *name == '\r' ? "\\r" : "\\0", 2);
            name++;
        }
    }
    writer_u8(writer, '\n');
}
