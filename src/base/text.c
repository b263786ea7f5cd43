#include "base/text.h"

#include <stdbool.h>
#include <string.h>

size_t text_utf8_length(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (!length)
        return 0;
    if (b[0] < 0x80)
        return 1;
    size_t size = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
    if (b[0] < 0xc2 || b[0] > 0xf4 || size > length)
        return 0;
    for (size_t i = 1; i < size; i++) {
        if ((b[i] & 0xc0) != 0x80)
            return 0;
    }
    bool overlong = (b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xf0 && b[1] < 0x90);
    bool surrogate = b[0] == 0xed && b[1] >= 0xa0;
    bool too_large = b[0] == 0xf4 && b[1] >= 0x90;
    return overlong || surrogate || too_large ? 0 : size;
}

/* C0, DEL and, as U+0080 to U+009F, C1: what a terminal would obey rather than show. */
static bool is_control(const char *character, size_t size)
{
    unsigned char first = (unsigned char)character[0];
    if (size == 1)
        return first < 0x20 || first == 0x7f;
    return size == 2 && first == 0xc2 && (unsigned char)character[1] < 0xa0;
}

/* How many bytes can be shown as they are. */
static size_t plain_length(const char *bytes, size_t length)
{
    size_t plain = 0;
    while (plain < length) {
        size_t size = text_utf8_length(bytes + plain, length - plain);
        if (!size || is_control(bytes + plain, size))
            break;
        plain += size;
    }
    return plain;
}

static void print_part(FILE *out, const char *bytes, size_t length)
{
    while (length) {
        size_t size = plain_length(bytes, length);
        if (size) {
            fwrite(bytes, 1, size, out);
        } else {
            size = text_utf8_length(bytes, length);
            size = size ? size : 1;
            for (size_t i = 0; i < size; i++)
                fprintf(out, "\\x%02x", (unsigned char)bytes[i]);
        }
        bytes += size;
        length -= size;
    }
}

/* Whether a cut before this byte would go through a character. */
static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

void text_print(FILE *out, const char *bytes, size_t length, size_t limit)
{
    if (!limit || length <= limit) {
        print_part(out, bytes, length);
        return;
    }
    /* Both parts may shrink by the rest of a character, which is 3 bytes at most; where there are
     * more such bytes the text is not UTF-8, and it does not matter. */
    size_t head = limit * 2 / 3, tail = limit - head;
    for (int i = 0; i < 3 && head && is_inside_character(bytes[head]); i++)
        head--;
    for (int i = 0; i < 3 && tail && is_inside_character(bytes[length - tail]); i++)
        tail--;
    print_part(out, bytes, head);
    fputs("…", out);
    print_part(out, bytes + length - tail, tail);
}

const char *text_number(uint64_t value, char buffer[TEXT_NUMBER_BYTES])
{
    char *next = buffer + TEXT_NUMBER_BYTES;
    *--next = '\0';
    for (int digits = 0;; digits++) {
        if (digits && digits % 3 == 0)
            *--next = ',';
        *--next = (char)('0' + value % 10);
        value /= 10;
        if (!value)
            return next;
    }
}

enum { LONGEST_WORD = 32 };

/* Edit distance with insertions, deletions, replacements and swaps of neighbours. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][LONGEST_WORD + 1], a_length = strlen(a), b_length = strlen(b);
    if (a_length > LONGEST_WORD || b_length > LONGEST_WORD)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3], *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best)
                best = last[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *text_nearest(const char *wrong, const char *const *words, size_t count)
{
    const char *nearest = NULL;
    size_t length = strlen(wrong), shortest = length / 3 + 2; /* "near" grows with the word */
    for (size_t i = 0; i < count; i++) {
        size_t edits = distance(wrong, words[i]);
        bool is_start = length > 1 && strncmp(wrong, words[i], length) == 0;
        if (is_start)
            edits = 0;
        if (edits < shortest) {
            shortest = edits;
            nearest = words[i];
        }
    }
    return nearest;
}

const char *text_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
