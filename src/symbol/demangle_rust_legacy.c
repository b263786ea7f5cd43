/* Rust's older names are those of C++ namespaces, with a hash as the last part:
 *
 *     _ZN  4core  3fmt  9write_str  17h0123456789abcdef  E
 *
 * The hash, 17 and 16 lower-case hexadecimal digits, tells them from C++. In the parts, `..` stands
 * for
 * `::`, `$LT$` for `<` and so on, `$u7e$` for the character of that number; an underscore in front
 * of a
 * `$` only keeps the part from starting with it. */
#include "symbol/demangle_rust.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_LENGTH = 17, LEAST_DIFFERENT_DIGITS = 5 };

struct part {
    const char *text;
    size_t length;
};

/* The next length-prefixed part; false at the E or at something else. */
static bool next_part(const char **position, struct part *ret_part)
{
    const char *text = *position;
    size_t length = 0;
    while (isdigit((unsigned char)*text) && length < DEMANGLE_MOST_BYTES)
        length = length * 10 + (size_t)(*text++ - '0');
    if (!length || strnlen(text, length) < length)
        return false;
    *ret_part = (struct part){text, length};
    *position = text + length;
    return true;
}

/* Hashes look random: at least a few digits differ. */
static bool is_hash(struct part part)
{
    unsigned seen = 0;
    if (part.length != HASH_LENGTH || part.text[0] != 'h')
        return false;
    for (size_t i = 1; i < HASH_LENGTH; i++) {
        char digit = part.text[i];
        if (!isdigit((unsigned char)digit) && (digit < 'a' || digit > 'f'))
            return false;
        seen |= 1u << (digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    return __builtin_popcount(seen) >= LEAST_DIFFERENT_DIGITS;
}

/* What an escape `$name$` stands for; 0 when it is none. Only ASCII is made of numbers. */
static char escaped(const char *name, size_t length)
{
    static const struct {
        const char *name;
        char meaning;
    } ESCAPES[] = {{"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
                   {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
    for (size_t i = 0; i < sizeof ESCAPES / sizeof *ESCAPES; i++) {
        if (strlen(ESCAPES[i].name) == length && memcmp(ESCAPES[i].name, name, length) == 0)
            return ESCAPES[i].meaning;
    }
    if (length != 3 || name[0] != 'u' || !isxdigit((unsigned char)name[1]) ||
        !isxdigit((unsigned char)name[2]))
        return 0;
    char digits[] = {name[1], name[2], '\0'};
    long number = strtol(digits, NULL, 16);
    return number >= ' ' && number < 0x7f ? (char)number : 0;
}

/* Never longer than the part itself. Returns the new end of the text. */
static char *append_part(char *end, struct part part)
{
    size_t i = part.length > 1 && part.text[0] == '_' && part.text[1] == '$';
    while (i < part.length) {
        const char *text = part.text + i;
        size_t left = part.length - i;
        const char *dollar = *text == '$' ? memchr(text + 1, '$', left - 1) : NULL;
        char meaning = dollar ? escaped(text + 1, (size_t)(dollar - text) - 1) : 0;
        if (meaning) {
            *end++ = meaning;
            i += (size_t)(dollar - text) + 1;
        } else if (left >= 2 && text[0] == '.' && text[1] == '.') {
            *end++ = ':';
            *end++ = ':';
            i += 2;
        } else {
            *end++ = *text;
            i++;
        }
    }
    return end;
}

char *demangle_rust_legacy(const char *name)
{
    if (strncmp(name, "_ZN", 3) != 0)
        return NULL;
    const char *position = name + 3;
    struct part part, last = {0};
    size_t count = 0;
    for (; next_part(&position, &part); count++)
        last = part;
    /* Behind the E there may be what the compiler added: .llvm.1234, .cold */
    if (count < 2 || *position != 'E' || (position[1] && position[1] != '.') || !is_hash(last))
        return NULL;
    char *text = malloc(2 * strlen(name) + 1), *end = text;
    if (!text)
        return NULL;
    position = name + 3;
    for (size_t i = 0; i + 1 < count && next_part(&position, &part); i++) {
        if (i) {
            *end++ = ':';
            *end++ = ':';
        }
        end = append_part(end, part);
    }
    *end = '\0';
    return text;
}
