/* Any bytes as a line table, the first byte as the version: spans follow each other, and the rows
 * say the same as the spans. */
#include "formats/python_lines.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_distinct(const struct python_lines *lines)
{
    for (size_t i = 0; i < lines->distinct.count; i++)
        REQUIRE(lines->distinct.items[i] >= 0 &&
                (i == 0 || lines->distinct.items[i - 1] < lines->distinct.items[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    struct python_lines_table table = {.python_minor = 9 + (data[0] & 7),
                                       .first_line = data[0] >> 3,
                                       .bytes = data + 1,
                                       .length = size - 1};
    struct python_lines lines;
    if (python_lines_init(&lines, &table) < 0)
        return 0;
    struct python_lines_walk walk;
    struct python_lines_span span;
    uint32_t end = 0;
    python_lines_walk_init(&walk, &table);
    while (python_lines_next(&walk, &span) == 1) {
        REQUIRE(span.start == end && span.end > span.start);
        REQUIRE(python_lines_at(&lines, span.start) == span.line);
        REQUIRE(python_lines_at(&lines, span.end - 1) == span.line);
        end = span.end;
    }
    REQUIRE(python_lines_next(&walk, &span) == 0);
    check_distinct(&lines);
    python_lines_done(&lines);
    return 0;
}
