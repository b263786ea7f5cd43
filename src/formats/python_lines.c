/* All three tables list pieces of the bytecode in their order, with the line as a difference:
 *
 *     3.9    | +6 bytes, +1 line | +4, +2 | ...        line 10: bytes 0-5, line 11: 6-9, line 13:
 * on 3.10   | 6 bytes, +0 | 4, +1 | 8, no line | ...  line 10: bytes 0-5, line 11: 6-9, none: 10-17
 *     3.11   | 1 kind(4) units-1(3) | what the kind has: line difference, end line, columns | ...
 *
 * One pair of the first two can't say more than 254 bytes or 127 lines, so there are pairs of 0
 * bytes or 0 lines; spans of 0 bytes are passed over, and the result joins neighbours of one line.
 * A unit of 3.11 is two bytes; only the first byte of an entry has its top bit set, so what is not
 * needed of an entry is skipped by looking for the next. Lines are counted in 64 bits: no table is
 * long enough to leave them; a line that is no 32-bit number becomes none. */
#include "formats/python_lines.h"

#include <errno.h>
#include <string.h>

enum {
    FIRST_WITH_SPANS = 10, /* minor version */
    FIRST_WITH_LOCATIONS = 11,
    PAIR_WITHOUT_LINE = -128, /* the line difference in 3.10 */
    UNIT_BYTES = 2,
    NEW_ENTRY = 0x80, /* bit of the first byte of an entry, 3.11 */
};

/* Kinds of entries, 3.11. Below ONE_LINE_0 the line is that of the entry before. */
enum { ONE_LINE_0 = 10, ONE_LINE_2 = 12, NO_COLUMNS = 13, LONG = 14, NO_LINE = 15 };

void python_lines_walk_init(struct python_lines_walk *walk, const struct python_lines_table *table)
{
    *walk =
        (struct python_lines_walk){.python_minor = table->python_minor, .line = table->first_line};
    cursor_init(&walk->cursor, "line table", table->bytes, table->length);
    /* As 3.9 does it: without pairs everything is on the first line. */
    if (!table->length)
        walk->python_minor = 0;
}

/* The next span, of so many bytes; false when it is empty. */
static bool make_span(struct python_lines_walk *walk, uint64_t bytes, bool has_line,
                      struct python_lines_span *ret_span)
{
    uint64_t end = walk->end + bytes;
    if (end > UINT32_MAX)
        end = UINT32_MAX;
    bool has_number = has_line && walk->line >= 0 && walk->line <= INT32_MAX;
    *ret_span =
        (struct python_lines_span){.start = walk->end,
                                   .end = (uint32_t)end,
                                   .line = has_number ? (int32_t)walk->line : PYTHON_LINE_NONE};
    walk->end = (uint32_t)end;
    return ret_span->start < ret_span->end;
}

/* A span of 3.9 ends where the line changes, so the last one is that behind the table. */
static int next_of_lnotab(struct python_lines_walk *walk, struct python_lines_span *ret_span)
{
    while (cursor_left(&walk->cursor) >= 2) {
        uint8_t bytes = cursor_u8(&walk->cursor);
        int8_t lines = (int8_t)cursor_u8(&walk->cursor);
        bool is_there = make_span(walk, bytes, true, ret_span);
        walk->line += lines;
        if (is_there)
            return 1;
    }
    walk->is_ended = true;
    if (make_span(walk, UINT32_MAX, true, ret_span))
        return 1;
    return 0;
}

static int next_of_linetable(struct python_lines_walk *walk, struct python_lines_span *ret_span)
{
    while (cursor_left(&walk->cursor) >= 2) {
        uint8_t bytes = cursor_u8(&walk->cursor);
        int8_t lines = (int8_t)cursor_u8(&walk->cursor);
        if (lines != PAIR_WITHOUT_LINE)
            walk->line += lines;
        if (make_span(walk, bytes, lines != PAIR_WITHOUT_LINE, ret_span))
            return 1;
    }
    return 0;
}

/* Six bits a byte, the lowest first; bit 6 says that more follow. The lowest bit is the sign. */
static int64_t signed_number(struct cursor *cursor)
{
    enum { MORE = 0x40, MOST_SHIFT = 30 };
    uint64_t value = 0;
    uint8_t byte = MORE;
    for (unsigned shift = 0; byte & MORE && cursor_ok(cursor); shift += 6) {
        byte = cursor_u8(cursor);
        if (byte & NEW_ENTRY || shift > MOST_SHIFT)
            cursor_fail(cursor, "a number without an end");
        value |= (uint64_t)(byte & (MORE - 1)) << (shift & 63);
    }
    return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int next_of_locations(struct python_lines_walk *walk, struct python_lines_span *ret_span)
{
    struct cursor *cursor = &walk->cursor;
    if (!cursor_left(cursor))
        return 0;
    uint8_t first = cursor_u8(cursor);
    if (!(first & NEW_ENTRY))
        return -EBADMSG;
    uint8_t kind = first >> 3 & 15;
    if (kind == LONG || kind == NO_COLUMNS)
        walk->line += signed_number(cursor);
    else if (kind >= ONE_LINE_0 && kind <= ONE_LINE_2)
        walk->line += kind - ONE_LINE_0;
    if (!cursor_ok(cursor))
        return -EBADMSG;
    while (cursor_left(cursor) && !(cursor->data[cursor->offset] & NEW_ENTRY))
        cursor_skip(cursor, 1);
    return make_span(walk, ((first & 7) + 1) * UNIT_BYTES, kind != NO_LINE, ret_span);
}

int python_lines_next(struct python_lines_walk *walk, struct python_lines_span *ret_span)
{
    if (walk->is_ended)
        return 0;
    int result = walk->python_minor >= FIRST_WITH_LOCATIONS ? next_of_locations(walk, ret_span)
                 : walk->python_minor >= FIRST_WITH_SPANS   ? next_of_linetable(walk, ret_span)
                                                            : next_of_lnotab(walk, ret_span);
    /* Pairs come in twos. */
    if (result == 0 && cursor_left(&walk->cursor))
        result = -EBADMSG;
    walk->is_ended |= result != 1;
    return result;
}

/* --- the result ------------------------------------------------------------------------------ */

static int add_row(struct python_lines *lines, uint32_t offset, int32_t line)
{
    size_t count = lines->rows.count;
    if (count && lines->rows.items[count - 1].line == line)
        return 0;
    struct python_lines_row row = {.offset = offset, .line = line};
    int error = vector_push(&lines->rows, row);
    return error < 0 || line == PYTHON_LINE_NONE ? error : vector_push(&lines->distinct, line);
}

static int compare_lines(const void *left, const void *right)
{
    int32_t a = *(const int32_t *)left, b = *(const int32_t *)right;
    return (a > b) - (a < b);
}

static void make_distinct(struct python_lines *lines)
{
    int32_t *all = lines->distinct.items;
    size_t kept = 0;
    if (lines->distinct.count)
        qsort(all, lines->distinct.count, sizeof *all, compare_lines);
    for (size_t i = 0; i < lines->distinct.count; i++)
        if (!kept || all[i] != all[kept - 1])
            all[kept++] = all[i];
    lines->distinct.count = kept;
}

int python_lines_init(struct python_lines *lines, const struct python_lines_table *table)
{
    *lines = (struct python_lines){0};
    struct python_lines_walk walk;
    struct python_lines_span span;
    int result, error = 0;
    python_lines_walk_init(&walk, table);
    while (!error && (result = python_lines_next(&walk, &span)) == 1)
        error = add_row(lines, span.start, span.line);
    if (!error) {
        lines->is_damaged = result < 0;
        error = add_row(lines, walk.end, PYTHON_LINE_NONE);
    }
    if (error) {
        python_lines_done(lines);
        return error;
    }
    make_distinct(lines);
    return 0;
}

void python_lines_done(struct python_lines *lines)
{
    vector_done(&lines->rows);
    vector_done(&lines->distinct);
}

int32_t python_lines_at(const struct python_lines *lines, uint32_t offset)
{
    size_t first = 0, behind = lines->rows.count;
    while (first < behind) {
        size_t middle = first + (behind - first) / 2;
        if (lines->rows.items[middle].offset <= offset)
            first = middle + 1;
        else
            behind = middle;
    }
    return first ? lines->rows.items[first - 1].line : PYTHON_LINE_NONE;
}
