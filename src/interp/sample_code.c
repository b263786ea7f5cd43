/* Names and line tables are copied when a function is met first, so that they outlive the code
 * object. They are read from the objects themselves: no function of Python's may be called here.
 * Strings are kept as characters of 1, 2 or 4 bytes and become UTF-8. */
#include "interp/sample_code.h"

#include "base/clock.h"

#include <string.h>

enum { MOST_NAME_BYTES = 16 << 10, MOST_LINES_BYTES = 256 << 10, PRINT_BYTES = 256 };

struct text {
    const uint8_t *data;
    size_t length; /* in characters */
    size_t width;  /* of a character, in bytes; 0: not readable */
    bool is_ascii;
};

static void *pointer_at(const void *object, size_t offset)
{
    return *(void *const *)((const char *)object + offset);
}

static struct text text_of(const struct sample_layout *layout, const char *object)
{
    enum { COMPACT = 1 << 5, ASCII = 1 << 6 };
    struct text text = {0};
    if (!object)
        return text;
    uint8_t state = (uint8_t)object[TEXT_STATE];
    if (!(state & COMPACT))
        return text;
    text.is_ascii = state & ASCII;
    text.width = state >> 2 & 7;
    text.length = (size_t)pointer_at(object, TEXT_LENGTH);
    text.data = (const uint8_t *)object + (text.is_ascii ? layout->text_ascii : layout->text_other);
    return text;
}

static uint32_t character(const struct text *text, size_t index)
{
    uint16_t two;
    uint32_t four;
    const uint8_t *at = text->data + index * text->width;
    switch (text->width) {
    case 1:
        return *at;
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    default:
        memcpy(&four, at, sizeof four);
        return four;
    }
}

static size_t utf8_bytes(uint32_t c)
{
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

static size_t put_utf8(uint8_t *out, uint32_t c)
{
    size_t bytes = utf8_bytes(c);
    static const uint8_t FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (bytes == 1) {
        out[0] = (uint8_t)c;
        return 1;
    }
    for (size_t i = bytes - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (uint8_t)(FIRST[bytes] | c);
    return bytes;
}

/* How many bytes the text takes in UTF-8; it is cut to what is allowed. */
static size_t measure(struct text *text)
{
    size_t bytes = 0;
    if (text->width != 1 && text->width != 2 && text->width != 4)
        text->length = 0;
    if (text->is_ascii) {
        if (text->length > MOST_NAME_BYTES)
            text->length = MOST_NAME_BYTES;
        return text->length;
    }
    for (size_t i = 0; i < text->length; i++) {
        size_t more = utf8_bytes(character(text, i));
        if (bytes + more > MOST_NAME_BYTES) {
            text->length = i;
            break;
        }
        bytes += more;
    }
    return bytes;
}

static void put_text(uint8_t *out, const struct text *text)
{
    if (text->is_ascii) {
        memcpy(out, text->data, text->length);
        return;
    }
    for (size_t i = 0; i < text->length; i++)
        out += put_utf8(out, character(text, i));
}

static size_t padded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

bool sample_code_write(struct sample_ring *ring, const struct sample_layout *layout,
                       const char *code, uint32_t number)
{
    struct text name = text_of(layout, pointer_at(code, layout->code_name));
    struct text file = text_of(layout, pointer_at(code, layout->code_file));
    const char *lines = pointer_at(code, layout->code_lines);
    struct sample_code body = {.name_bytes = (uint32_t)measure(&name),
                               .file_bytes = (uint32_t)measure(&file)};
    memcpy(&body.first_line, code + layout->code_first_line, sizeof body.first_line);
    size_t lines_bytes = lines ? (size_t)pointer_at(lines, BYTES_LENGTH) : 0;
    body.lines_bytes = lines_bytes <= MOST_LINES_BYTES ? (uint32_t)lines_bytes : 0;
    if (layout->code_bytes) {
        const char *bytes = pointer_at(code, layout->code_bytes);
        body.code_bytes = bytes ? (uint32_t)(size_t)pointer_at(bytes, BYTES_LENGTH) : 0;
    }
    size_t name_at = sizeof(struct sample_record) + sizeof body;
    size_t file_at = name_at + padded(body.name_bytes);
    size_t lines_at = file_at + padded(body.file_bytes);
    uint64_t position;
    struct sample_record *record =
        sample_ring_take(ring, lines_at + padded(body.lines_bytes), SAMPLE_RECORD_CODE, &position);
    if (!record)
        return false;
    record->time_ns = clock_ns(CLOCK_MONOTONIC);
    record->tid = 0;
    record->extra = number;
    uint8_t *out = (uint8_t *)record;
    memcpy(out + sizeof *record, &body, sizeof body);
    put_text(out + name_at, &name);
    put_text(out + file_at, &file);
    memcpy(out + lines_at, lines ? lines + BYTES_DATA : "", body.lines_bytes);
    sample_ring_give(ring, record, position);
    return true;
}

/* --- prints ---------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* All of a name, and the beginning and end of a very long one. */
static uint64_t mix_text(uint64_t print, struct text text)
{
    size_t bytes = text.length * text.width, most = bytes < PRINT_BYTES ? bytes : PRINT_BYTES;
    uint64_t word = 0;
    print = mix(print, bytes);
    for (size_t i = 0; i + sizeof word <= most; i += sizeof word) {
        memcpy(&word, text.data + i, sizeof word);
        print = mix(print, word);
    }
    word = 0;
    if (bytes)
        memcpy(&word, text.data + (bytes < sizeof word ? 0 : bytes - sizeof word),
               bytes < sizeof word ? bytes : sizeof word);
    return mix(print, word);
}

uint64_t sample_code_print(const struct sample_layout *layout, const char *code)
{
    const char *file = pointer_at(code, layout->code_file);
    const char *name = pointer_at(code, layout->code_name);
    const char *lines = pointer_at(code, layout->code_lines);
    uint32_t first_line;
    memcpy(&first_line, code + layout->code_first_line, sizeof first_line);
    uint64_t print = mix(mix(first_line, (uintptr_t)file), (uintptr_t)name);
    print = mix_text(mix_text(print, text_of(layout, file)), text_of(layout, name));
    return mix(mix(print, (uintptr_t)lines),
               lines ? (uintptr_t)pointer_at(lines, BYTES_LENGTH) : 0);
}
