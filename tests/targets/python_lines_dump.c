/* Says which line each instruction is on, for code objects that an interpreter described:
 *
 *     stdin     MINOR FIRST_LINE BYTES_OF_CODE TABLE_IN_HEX|-     a line per code object
 *     stdout    LINE LINE ... | LINE LINE ...                     of each second byte (-1: none),
 * and the distinct ones
 */
#include "formats/python_lines.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

static void answer(char *question)
{
    struct python_lines_table table = {0};
    uint32_t code_bytes;
    int hex_at;
    if (sscanf(question, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %n", &table.python_minor,
               &table.first_line, &code_bytes, &hex_at) != 3)
        exit(2);
    const char *hex = question + hex_at;
    size_t length = strcspn(hex, "-\n") / 2;
    uint8_t *bytes = malloc(length ? length : 1);
    struct python_lines lines;
    if (!bytes)
        exit(1);
    for (size_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
    table.bytes = bytes;
    table.length = length;
    if (python_lines_init(&lines, &table) < 0 || lines.is_damaged)
        exit(1);
    for (uint32_t offset = 0; offset < code_bytes; offset += 2)
        printf("%" PRId32 " ", python_lines_at(&lines, offset));
    printf("|");
    for (size_t i = 0; i < lines.distinct.count; i++)
        printf(" %" PRId32, lines.distinct.items[i]);
    printf("\n");
    python_lines_done(&lines);
    free(bytes);
}

int main(void)
{
    char *question = NULL;
    size_t capacity = 0;
    while (getline(&question, &capacity, stdin) > 0)
        answer(question);
    free(question);
    return 0;
}
