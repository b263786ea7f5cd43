/* Rust's newer names (_R…) are a prefix notation of paths and types:
 *
 *     _RNvNtCs1234_7mycrate3foo3bar            mycrate::foo::bar
 *       N v  Nt C s1234_ 7mycrate 3foo 3bar    N: nested in a path, C: a crate, s…_: its hash
 *
 * with back references (B…_) to what was written before. It is read by descent, and written as it
 * is read. Names may be hostile: depth and length of what is written are bounded, and the first
 * thing that does not fit the grammar ends it: the name stays as it is then. Hashes and the types
 * of constants are left out, as c++filt and perf do it. */
#include "symbol/demangle_rust.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 128, MOST_STEPS = 20000 };

struct reader {
    const char *text; /* behind the _R; back references count from here */
    size_t offset;
    char *output;
    size_t length; /* of the output */
    bool failed;
    int silent; /* > 0: nothing is written */
    int depth;
    int steps;          /* back references could make a short name run for ever */
    uint64_t lifetimes; /* that are bound by for<…> */
};

static void read_path(struct reader *reader, bool in_value);
static void read_type(struct reader *reader);

static void put_bytes(struct reader *reader, const char *bytes, size_t length)
{
    if (reader->silent || reader->failed)
        return;
    if (length > DEMANGLE_MOST_BYTES - reader->length) {
        reader->failed = true;
        return;
    }
    memcpy(reader->output + reader->length, bytes, length);
    reader->length += length;
}

static void put(struct reader *reader, const char *text)
{
    put_bytes(reader, text, strlen(text));
}

static void put_number(struct reader *reader, uint64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    put(reader, text);
}

static char peek(const struct reader *reader)
{
    return reader->failed ? '\0' : reader->text[reader->offset];
}

static bool eat(struct reader *reader, char wanted)
{
    if (peek(reader) != wanted || !wanted)
        return false;
    reader->offset++;
    return true;
}

static char next(struct reader *reader)
{
    char character = peek(reader);
    if (character)
        reader->offset++;
    else
        reader->failed = true;
    return character;
}

/* "_" is 0, "0_" is 1, … */
static uint64_t read_base62(struct reader *reader)
{
    uint64_t value = 0;
    if (eat(reader, '_'))
        return 0;
    while (!eat(reader, '_')) {
        char c = next(reader);
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36
                                                : 62;
        if (digit > 61 || __builtin_mul_overflow(value, 62, &value) ||
            __builtin_add_overflow(value, digit, &value)) {
            reader->failed = true;
            return 0;
        }
    }
    return value + 1;
}

/* A number behind a letter that may be missing: 0 then. */
static uint64_t read_optional(struct reader *reader, char letter)
{
    return eat(reader, letter) ? read_base62(reader) + 1 : 0;
}

struct identifier {
    const char *text;
    size_t length;
    uint64_t disambiguator;
    bool is_punycode;
};

static struct identifier read_identifier(struct reader *reader)
{
    struct identifier identifier = {.disambiguator = read_optional(reader, 's')};
    identifier.is_punycode = eat(reader, 'u');
    size_t length = 0;
    if (!isdigit((unsigned char)peek(reader)))
        reader->failed = true;
    if (!eat(reader, '0')) {
        while (isdigit((unsigned char)peek(reader)) && length < DEMANGLE_MOST_BYTES)
            length = length * 10 + (size_t)(next(reader) - '0');
    }
    eat(reader, '_');
    if (reader->failed || strnlen(reader->text + reader->offset, length) < length) {
        reader->failed = true;
        return identifier;
    }
    identifier.text = reader->text + reader->offset;
    identifier.length = length;
    reader->offset += length;
    return identifier;
}

static void put_identifier(struct reader *reader, const struct identifier *identifier)
{
    if (identifier->is_punycode)
        put(reader, "punycode{");
    if (identifier->length)
        put_bytes(reader, identifier->text, identifier->length);
    if (identifier->is_punycode)
        put(reader, "}");
}

static bool enter(struct reader *reader)
{
    if (++reader->depth > MOST_DEPTH || ++reader->steps > MOST_STEPS)
        reader->failed = true;
    return !reader->failed;
}

static void leave(struct reader *reader)
{
    reader->depth--;
}

/* Goes back to what was written before, reads it with `read`, and returns. */
static void follow_back(struct reader *reader, void (*read)(struct reader *, bool), bool flag)
{
    size_t start = reader->offset - 1;
    uint64_t target = read_base62(reader);
    size_t after = reader->offset;
    if (target >= start)
        reader->failed = true;
    if (reader->failed || reader->silent)
        return;
    reader->offset = target;
    read(reader, flag);
    reader->offset = after;
}

static void read_type_back(struct reader *reader, bool unused)
{
    (void)unused;
    read_type(reader);
}

static void put_lifetime(struct reader *reader, uint64_t index)
{
    put(reader, "'");
    if (!index) {
        put(reader, "_");
        return;
    }
    if (index > reader->lifetimes) {
        reader->failed = true;
        return;
    }
    uint64_t depth = reader->lifetimes - index;
    char letter = (char)('a' + depth % 26);
    put_bytes(reader, &letter, 1);
    if (depth >= 26)
        put_number(reader, depth / 26);
}

/* for<'a, 'b>; returns how many, which are bound until the caller unbinds them. */
static uint64_t read_binder(struct reader *reader)
{
    uint64_t count = read_optional(reader, 'G');
    if (count > 64)
        reader->failed = true;
    if (!count || reader->failed)
        return 0;
    put(reader, "for<");
    for (uint64_t i = 0; i < count; i++) {
        reader->lifetimes++;
        put(reader, i ? ", " : "");
        put_lifetime(reader, 1);
    }
    put(reader, "> ");
    return count;
}

static void read_constant(struct reader *reader, bool unused)
{
    (void)unused;
    if (eat(reader, 'B')) {
        follow_back(reader, read_constant, false);
        return;
    }
    char type = next(reader);
    if (type == 'p') {
        put(reader, "_");
        return;
    }
    if (!type || !strchr("abcehijlmnostxyz", type) || type == 'e')
        reader->failed = true;
    if (eat(reader, 'n'))
        put(reader, "-");
    uint64_t value = 0;
    size_t start = reader->offset;
    while (!reader->failed && !eat(reader, '_')) {
        char digit = next(reader);
        if (!isdigit((unsigned char)digit) && (digit < 'a' || digit > 'f'))
            reader->failed = true;
        value = value << 4 | (uint64_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    }
    size_t digits = reader->offset - start - 1;
    if (reader->failed)
        return;
    if (type == 'b') {
        put(reader, value ? "true" : "false");
    } else if (type == 'c' && value >= ' ' && value < 0x7f) {
        char quoted[] = {'\'', (char)value, '\'', '\0'};
        put(reader, quoted);
    } else if (digits > 16 || type == 'c') {
        put(reader, "0x");
        put_bytes(reader, reader->text + start, digits);
    } else {
        put_number(reader, value);
    }
}

static void read_arguments(struct reader *reader)
{
    for (bool first = true; !reader->failed && !eat(reader, 'E'); first = false) {
        put(reader, first ? "" : ", ");
        if (eat(reader, 'L'))
            put_lifetime(reader, read_base62(reader));
        else if (eat(reader, 'K'))
            read_constant(reader, false);
        else
            read_type(reader);
    }
}

/* Namespaces with a capital letter have no names of their own: closures, shims. */
static void read_nested(struct reader *reader, bool in_value)
{
    char space = next(reader);
    if (!isalpha((unsigned char)space))
        reader->failed = true;
    read_path(reader, in_value);
    struct identifier identifier = read_identifier(reader);
    if (islower((unsigned char)space)) {
        put(reader, identifier.length ? "::" : "");
        put_identifier(reader, &identifier);
        return;
    }
    char letter[] = {space, '\0'};
    put(reader, "::{");
    put(reader, space == 'C' ? "closure" : space == 'S' ? "shim" : letter);
    if (identifier.length) {
        put(reader, ":");
        put_identifier(reader, &identifier);
    }
    put(reader, "#");
    put_number(reader, identifier.disambiguator);
    put(reader, "}");
}

/* Where an impl is, which nobody wants to know. */
static void skip_impl_path(struct reader *reader)
{
    reader->silent++;
    read_optional(reader, 's');
    read_path(reader, false);
    reader->silent--;
}

static void read_impl(struct reader *reader, char kind)
{
    if (kind != 'Y')
        skip_impl_path(reader);
    put(reader, "<");
    read_type(reader);
    if (kind != 'M') {
        put(reader, " as ");
        read_path(reader, false);
    }
    put(reader, ">");
}

static void read_path(struct reader *reader, bool in_value)
{
    if (!enter(reader))
        return;
    char kind = next(reader);
    struct identifier crate;
    switch (kind) {
    case 'C':
        crate = read_identifier(reader);
        put_identifier(reader, &crate);
        break;
    case 'N':
        read_nested(reader, in_value);
        break;
    case 'M':
    case 'X':
    case 'Y':
        read_impl(reader, kind);
        break;
    case 'I':
        read_path(reader, in_value);
        put(reader, in_value ? "::<" : "<");
        read_arguments(reader);
        put(reader, ">");
        break;
    case 'B':
        follow_back(reader, read_path, in_value);
        break;
    default:
        reader->failed = true;
    }
    leave(reader);
}

/* fn(A, B) -> C */
static void read_function(struct reader *reader)
{
    uint64_t bound = read_binder(reader);
    put(reader, eat(reader, 'U') ? "unsafe " : "");
    if (eat(reader, 'K')) {
        put(reader, "extern \"");
        if (eat(reader, 'C')) {
            put(reader, "C");
        } else {
            struct identifier abi = read_identifier(reader);
            for (size_t i = 0; i < abi.length; i++)
                put_bytes(reader, abi.text[i] == '_' ? "-" : &abi.text[i], 1);
        }
        put(reader, "\" ");
    }
    put(reader, "fn(");
    for (bool first = true; !reader->failed && !eat(reader, 'E'); first = false) {
        put(reader, first ? "" : ", ");
        read_type(reader);
    }
    put(reader, ")");
    if (!eat(reader, 'u')) {
        put(reader, " -> ");
        read_type(reader);
    }
    reader->lifetimes -= bound;
}

/* A trait behind dyn, with its associated types: Iterator<Item = u8>. The path's own < may be open.
 */
static void read_dyn_trait(struct reader *reader)
{
    bool is_open = false;
    if (eat(reader, 'I')) {
        read_path(reader, false);
        put(reader, "<");
        read_arguments(reader);
        is_open = true;
    } else {
        read_path(reader, false);
    }
    while (eat(reader, 'p')) {
        put(reader, is_open ? ", " : "<");
        is_open = true;
        struct identifier name = read_identifier(reader);
        put_identifier(reader, &name);
        put(reader, " = ");
        read_type(reader);
    }
    put(reader, is_open ? ">" : "");
}

static void read_dyn(struct reader *reader)
{
    put(reader, "dyn ");
    uint64_t bound = read_binder(reader);
    for (bool first = true; !reader->failed && !eat(reader, 'E'); first = false) {
        put(reader, first ? "" : " + ");
        read_dyn_trait(reader);
    }
    reader->lifetimes -= bound;
    if (!eat(reader, 'L')) {
        reader->failed = true;
        return;
    }
    uint64_t lifetime = read_base62(reader);
    if (lifetime) {
        put(reader, " + ");
        put_lifetime(reader, lifetime);
    }
}

static const char *basic_type(char letter)
{
    static const char *const TYPES[26] = {"i8",   "bool",  "char",  "f64", "str", "f32", NULL,
                                          "u8",   "isize", "usize", NULL,  "i32", "u32", "i128",
                                          "u128", "_",     NULL,    NULL,  "i16", "u16", "()",
                                          "...",  NULL,    "i64",   "u64", "!"};
    return letter >= 'a' && letter <= 'z' ? TYPES[letter - 'a'] : NULL;
}

static void read_reference(struct reader *reader, char kind)
{
    put(reader, "&");
    if (eat(reader, 'L')) {
        uint64_t lifetime = read_base62(reader);
        if (lifetime) {
            put_lifetime(reader, lifetime);
            put(reader, " ");
        }
    }
    put(reader, kind == 'Q' ? "mut " : "");
    read_type(reader);
}

static void read_tuple(struct reader *reader)
{
    size_t count = 0;
    put(reader, "(");
    for (; !reader->failed && !eat(reader, 'E'); count++) {
        put(reader, count ? ", " : "");
        read_type(reader);
    }
    put(reader, count == 1 ? ",)" : ")");
}

static void read_type(struct reader *reader)
{
    if (!enter(reader))
        return;
    char kind = next(reader);
    const char *basic = basic_type(kind);
    switch (kind) {
    case 'A':
    case 'S':
        put(reader, "[");
        read_type(reader);
        if (kind == 'A') {
            put(reader, "; ");
            read_constant(reader, false);
        }
        put(reader, "]");
        break;
    case 'T':
        read_tuple(reader);
        break;
    case 'R':
    case 'Q':
        read_reference(reader, kind);
        break;
    case 'P':
    case 'O':
        put(reader, kind == 'P' ? "*const " : "*mut ");
        read_type(reader);
        break;
    case 'F':
        read_function(reader);
        break;
    case 'D':
        read_dyn(reader);
        break;
    case 'B':
        follow_back(reader, read_type_back, false);
        break;
    default:
        if (basic) {
            put(reader, basic);
        } else if (kind) {
            reader->offset--;
            read_path(reader, false);
        }
    }
    leave(reader);
}

char *demangle_rust_v0(const char *name)
{
    if (strncmp(name, "_R", 2) != 0 || !isupper((unsigned char)name[2]))
        return NULL;
    struct reader reader = {.text = name + 2, .output = malloc(DEMANGLE_MOST_BYTES + 1)};
    if (!reader.output)
        return NULL;
    read_path(&reader, true);
    reader.silent++;
    if (isupper((unsigned char)peek(&reader))) /* the crate that made this instance */
        read_path(&reader, false);
    char rest = peek(&reader);
    if (reader.failed || (rest && rest != '.')) {
        free(reader.output);
        return NULL;
    }
    reader.output[reader.length] = '\0';
    char *fitting = realloc(reader.output, reader.length + 1);
    return fitting ? fitting : reader.output;
}
