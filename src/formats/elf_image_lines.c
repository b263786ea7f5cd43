/* Rows of all functions of an image, from the jitdump's records; dwarf_lines.c writes them. Each
 * function is a sequence of its own, since there is room between functions. */
#include "formats/elf_image_lines.h"

#include "formats/dwarf_lines.h"

#include <string.h>

static int compare_rows(const void *left, const void *right)
{
    const struct elf_image_row *a = left, *b = right;
    if (a->svma != b->svma)
        return a->svma < b->svma ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

/* Rows should ascend; the few writers that mix them up pay for a sort. */
static void sort_rows(struct elf_image_row *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (rows[i].svma < rows[i - 1].svma) {
            qsort(rows, count, sizeof *rows, compare_rows);
            return;
        }
    }
}

static int add_function(struct elf_image_lines *lines, const struct elf_image_source *source,
                        uint32_t function, uint64_t base_avma)
{
    const struct elf_image_function *f = &source->functions[function];
    struct jitdump_debug_info info = f->code->debug;
    struct jitdump_line line;
    size_t first = lines->rows.count;
    if (!info.count)
        return 0;
    while (jitdump_next_line(&info, &line) == 1) {
        uint64_t offset = line.avma - info.code_avma;
        if (offset >= f->code->load.code_size || !line.file[0])
            continue;
        struct elf_image_row row = {
            .svma = f->avma - base_avma + offset, .line = line.line, .function = function};
        int error = strings_intern(&lines->files, line.file, strlen(line.file), &row.file);
        if (!error)
            error = vector_push(&lines->rows, row);
        if (error)
            return error;
    }
    if (lines->rows.count > first)
        sort_rows(lines->rows.items + first, lines->rows.count - first);
    return 0;
}

int elf_image_lines_init(struct elf_image_lines *lines, const struct elf_image_source *source,
                         uint64_t base_avma)
{
    *lines = (struct elf_image_lines){0};
    int error = strings_init(&lines->files);
    if (error < 0)
        return error;
    for (size_t i = 0; i < source->count && !error; i++)
        error = add_function(lines, source, (uint32_t)i, base_avma);
    if (error)
        elf_image_lines_done(lines);
    return error;
}

void elf_image_lines_done(struct elf_image_lines *lines)
{
    vector_done(&lines->rows);
    strings_done(&lines->files);
}

void elf_image_encode_debug_line(struct writer *writer, const struct elf_image_lines *lines,
                                 const struct elf_image_source *source, uint64_t base_avma)
{
    struct dwarf_lines program;
    dwarf_lines_begin(&program, writer, &lines->files);
    for (size_t i = 0; i < lines->rows.count; i++) {
        const struct elf_image_row *row = &lines->rows.items[i];
        if (i == 0 || row->function != row[-1].function)
            dwarf_lines_start(&program, row->svma);
        dwarf_lines_row(&program, row->svma, row->file, row->line);
        if (i + 1 == lines->rows.count || row[1].function != row->function) {
            const struct elf_image_function *f = &source->functions[row->function];
            dwarf_lines_stop(&program, f->avma - base_avma + f->code->load.code_size);
        }
    }
    dwarf_lines_end(&program);
}
