/* A line, and what is read of it:
 *
 *     7f1c5a000000-7f1c5a021000 r-xp 00002000 fd:01 1055   /usr/lib/libfoo.so (deleted)
 *     start        end          perm fileoff  dev   inode  path
 *
 * The kernel writes a line end inside a path as \012, and nothing else in another way than it is.
 */
#include "record/maps_text.h"

#include <string.h>

/* One line that is being read. */
struct line {
    const char *at, *end;
    bool is_wrong; /* something was not there; stays */
};

static uint64_t number(struct line *line, unsigned base)
{
    uint64_t value = 0;
    const char *start = line->at;
    for (; line->at < line->end; line->at++) {
        char c = *line->at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                                                : base;
        if (digit >= base)
            break;
        if (value > (UINT64_MAX - digit) / base)
            line->is_wrong = true;
        value = value * base + digit;
    }
    line->is_wrong |= line->at == start;
    return value;
}

static char one(struct line *line)
{
    if (line->at < line->end)
        return *line->at++;
    line->is_wrong = true;
    return '\0';
}

static void expect(struct line *line, char wanted)
{
    if (one(line) != wanted)
        line->is_wrong = true;
}

static bool drop_end(const char *start, const char **end, const char *suffix)
{
    size_t length = strlen(suffix);
    if ((size_t)(*end - start) < length || memcmp(*end - length, suffix, length) != 0)
        return false;
    *end -= length;
    return true;
}

static void take_path(struct line *line, struct maps_mapping *mapping)
{
    while (line->at < line->end && *line->at == ' ')
        line->at++;
    const char *end = line->end;
    mapping->is_deleted = drop_end(line->at, &end, " (deleted)");
    size_t length = 0;
    for (const char *at = line->at; at < end; at++) {
        char c = *at;
        if (end - at >= 4 && memcmp(at, "\\012", 4) == 0) {
            c = '\n';
            at += 3;
        }
        if (c == '\0' || length >= sizeof mapping->path - 1) {
            line->is_wrong = true;
            return;
        }
        mapping->path[length++] = c;
    }
    mapping->path[length] = '\0';
    if (length == 0)
        strcpy(mapping->path, "//anon"); /* NOLINT: there is room */
}

/* True when the line is of an executable mapping. */
static bool take_line(struct line line, struct maps_mapping *mapping)
{
    mapping->start_avma = number(&line, 16);
    expect(&line, '-');
    mapping->end_avma = number(&line, 16);
    expect(&line, ' ');
    one(&line);
    mapping->is_writable = one(&line) == 'w';
    bool is_code = one(&line) == 'x';
    one(&line);
    expect(&line, ' ');
    if (!is_code || line.is_wrong)
        return false;
    mapping->fileoff = number(&line, 16);
    expect(&line, ' ');
    mapping->device_major = (uint32_t)number(&line, 16);
    expect(&line, ':');
    mapping->device_minor = (uint32_t)number(&line, 16);
    expect(&line, ' ');
    mapping->inode = number(&line, 10);
    take_path(&line, mapping);
    return !line.is_wrong && mapping->start_avma < mapping->end_avma;
}

int maps_text_next(struct maps_text *text, struct maps_mapping *ret_mapping)
{
    while (text->at < text->end) {
        const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
        struct line line = {.at = text->at, .end = newline ? newline : text->end};
        text->at = newline ? newline + 1 : text->end;
        if (newline && take_line(line, ret_mapping))
            return 1;
    }
    return 0;
}
