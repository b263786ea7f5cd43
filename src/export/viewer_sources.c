/* The paths come out of a recording, which may be somebody else's, and the page is made to be sent
 * around. So a recording must not be able to put any file of this machine into it: only regular
 * files of a moderate size are read that are Python by their name or their first line.
 *
 * The files with the most samples matter most, but which these are depends on what is looked at;
 * the limits are such that hardly any program meets them. */
#include "export/viewer_sources.h"

#include "base/file.h"

#include <string.h>
#include <sys/stat.h>

enum { MOST_FILE_BYTES = 1 << 20, MOST_BYTES = 1 << 24 };

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* "#!/usr/bin/env python3": a program without the ending. */
static bool is_script(const struct file *file)
{
    const uint8_t *end = memchr(file->data, '\n', file->length);
    size_t length = end ? (size_t)(end - file->data) : file->length;
    return length > 2 && memcmp(file->data, "#!", 2) == 0 &&
           memmem(file->data, length, "python", strlen("python"));
}

static bool is_python(const char *path, const struct file *file)
{
    bool is_named = ends_with(path, ".py") || ends_with(path, ".pyw") || ends_with(path, ".pyx");
    return file->length && !memchr(file->data, 0, file->length) && (is_named || is_script(file));
}

static bool is_small(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= MOST_FILE_BYTES;
}

/* Adds one file; *left is how many bytes may be added still. */
static int add_file(struct viewer_tables *tables, uint32_t path_string, size_t *left)
{
    const char *path = strings_get(&tables->strings, path_string).bytes;
    struct file file;
    struct viewer_source source = {.file = path_string};
    if (path[0] != '/' || !is_small(path))
        return 0; /* "<string>", "<frozen os>", or it is gone */
    int error = file_read_regular(path, &file);
    if (error < 0)
        return error == -ENOMEM ? error : 0;
    if (file.length <= *left && is_python(path, &file)) {
        *left -= file.length;
        error = viewer_tables_text(tables, (const char *)file.data, file.length, &source.text);
        if (error == 0)
            error = vector_push(&tables->sources, source);
    }
    file_done(&file);
    return error;
}

int viewer_sources_add(struct viewer_tables *tables)
{
    size_t left = MOST_BYTES;
    bool *is_known = calloc(tables->strings.texts.count + 1, sizeof *is_known);
    if (!is_known)
        return -ENOMEM;
    int error = 0;
    for (size_t i = 0; i < tables->functions.count && error == 0; i++) {
        const struct viewer_function *function = &tables->functions.items[i];
        if (function->kind != PROFILE_FUNCTION_PYTHON || is_known[function->file])
            continue;
        is_known[function->file] = true;
        error = add_file(tables, function->file, &left);
    }
    free(is_known);
    return error;
}
