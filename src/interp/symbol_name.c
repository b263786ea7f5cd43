/* Names and file names of code objects are strings of any characters and any length: programs can
 * set them as they like (compile, code.replace, exec). In the files they must be one line of valid
 * UTF-8 that readers can hold. So lone surrogates are written as Python writes them (\udc80), line
 * ends and NUL as \n, \r and \0, and the middle of what is too long is left out:
 *
 *     py::first half of the qualified name…second half:first half of the file name…second half
 *
 * Nearly all names are ASCII, and CPython keeps such strings as plain bytes behind the object: they
 * are copied from there. Whether they really lie there is tried once, with a string of our own;
 * where not, and for all other strings, characters are read one by one through the API. */
#include "interp/symbol_name.h"

#include "base/writer.h"

#include <stdbool.h>
#include <string.h>

enum {
    MOST_BYTES_PER_CHARACTER = 6, /* \udc80 */
    /* Characters of a text that is written whole, and of each half of one that is not. */
    MOST_CHARACTERS = SYMBOL_MOST_NAME_BYTES / 2 / MOST_BYTES_PER_CHARACTER - 16,
    HALF_CHARACTERS = MOST_CHARACTERS / 2,
};

static char name_text[SYMBOL_MOST_NAME_BYTES + 1];
static char file_text[SYMBOL_MOST_NAME_BYTES + 1];

static void write_character(struct writer *writer, uint32_t c)
{
    if (c == '\n' || c == '\r' || c == 0) {
        writer_bytes(writer, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\0", 2);
    } else if (c < 0x80) {
        writer_u8(writer, (uint8_t)c);
    } else if (c < 0x800) {
        writer_u8(writer, (uint8_t)(0xc0 | c >> 6));
        writer_u8(writer, (uint8_t)(0x80 | (c & 0x3f)));
    } else if (c >= 0xd800 && c < 0xe000) {
        writer_bytes(writer, "\\u", 2);
        writer_hex(writer, c);
    } else if (c < 0x10000) {
        writer_u8(writer, (uint8_t)(0xe0 | c >> 12));
        writer_u8(writer, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        writer_u8(writer, (uint8_t)(0x80 | (c & 0x3f)));
    } else {
        writer_u8(writer, (uint8_t)(0xf0 | c >> 18));
        writer_u8(writer, (uint8_t)(0x80 | (c >> 12 & 0x3f)));
        writer_u8(writer, (uint8_t)(0x80 | (c >> 6 & 0x3f)));
        writer_u8(writer, (uint8_t)(0x80 | (c & 0x3f)));
    }
}

/* PyASCIIObject: the state is a byte with these bits when the text is compact ASCII. */
enum { STATE_OFFSET = 32, STATE_COMPACT_ASCII = 0x60, FIRST_WITH_SHORT_HEADER = 12 };

static const char *ascii_data(struct py_object *text)
{
    uint8_t state = *((const uint8_t *)text + STATE_OFFSET);
    if ((state & STATE_COMPACT_ASCII) != STATE_COMPACT_ASCII)
        return NULL;
    return (const char *)text + (py.minor < FIRST_WITH_SHORT_HEADER ? 48 : 40);
}

/* Whether ascii_data tells the truth in this interpreter. */
static bool can_read_ascii(void)
{
    enum { UNKNOWN, YES, NO };
    static int answer = UNKNOWN;
    if (answer == UNKNOWN) {
        static const char ASCII[] = "pitviper looks";
        struct py_object *ascii = py.unicode_from_string(ASCII);
        struct py_object *other = py.unicode_from_string("vip\303\250re");
        bool fits = ascii && other && !ascii_data(other) && ascii_data(ascii) &&
                    memcmp(ascii_data(ascii), ASCII, sizeof ASCII) == 0;
        py.err_clear();
        py_release(ascii);
        py_release(other);
        answer = fits ? YES : NO;
    }
    return answer == YES;
}

static void write_range(struct writer *writer, struct py_object *text, ptrdiff_t from, ptrdiff_t to)
{
    const char *ascii = can_read_ascii() ? ascii_data(text) : NULL;
    if (!ascii) {
        for (ptrdiff_t i = from; i < to; i++)
            write_character(writer, py.unicode_read(text, i));
        return;
    }
    while (from < to) {
        ptrdiff_t plain = from;
        while (from < to && ascii[from] != '\n' && ascii[from] != '\r' && ascii[from] != '\0')
            from++;
        writer_bytes(writer, ascii + plain, (size_t)(from - plain));
        if (from < to)
            write_character(writer, (uint8_t)ascii[from++]);
    }
}

static void write_text(struct writer *writer, struct py_object *text)
{
    ptrdiff_t length = text ? py.unicode_length(text) : 0;
    if (length < 0) {
        py.err_clear();
        length = 0;
    }
    if (length <= MOST_CHARACTERS) {
        if (length)
            write_range(writer, text, 0, length);
        return;
    }
    write_range(writer, text, 0, HALF_CHARACTERS);
    writer_bytes(writer, "…", strlen("…"));
    write_range(writer, text, length - HALF_CHARACTERS, length);
}

void symbol_name_of(const struct layout *layout, struct py_object *code, struct symbol *ret_symbol)
{
    struct writer file, name;
    writer_init(&file, file_text, sizeof file_text - 1);
    write_text(&file, layout_pointer(code, layout->code_filename));
    file_text[file.length] = '\0';

    writer_init(&name, name_text, sizeof name_text - 1);
    writer_bytes(&name, "py::", 4);
    write_text(&name, layout_pointer(code, layout->code_name));
    writer_u8(&name, ':');
    writer_bytes(&name, file_text, file.length);
    name_text[name.length] = '\0';

    int line = *layout_int(code, layout->code_firstlineno);
    ret_symbol->name = name_text;
    ret_symbol->name_length = name.length;
    ret_symbol->file = file_text;
    ret_symbol->line = line > 0 ? (uint32_t)line : 0;
}
