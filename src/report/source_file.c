#include "report/source_file.h"

#include <string.h>

void source_file_open(struct source_file *source, const char *path)
{
    if (path[0] != '/' || file_read_regular(path, &source->file) < 0)
        source->file = (struct file){0}; /* "<string>", "<frozen os>", or it is gone */
}

void source_file_done(struct source_file *source)
{
    file_done(&source->file);
}

struct source_line source_file_line(const struct source_file *source, uint32_t number)
{
    const char *at = (const char *)source->file.data;
    const char *end = at ? at + source->file.length : at;
    for (uint32_t line = 1; at && line < number; line++) {
        at = memchr(at, '\n', (size_t)(end - at));
        if (at)
            at++;
    }
    if (!at || !number)
        return (struct source_line){.bytes = ""};
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    end = newline ? newline : end;
    while (at < end && (*at == ' ' || *at == '\t'))
        at++;
    while (end > at && (end[-1] == '\r' || end[-1] == ' ' || end[-1] == '\t'))
        end--;
    return (struct source_line){.bytes = at, .length = (size_t)(end - at)};
}
