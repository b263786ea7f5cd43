/* web/index.html with its placeholders filled, each a line of its own:
 *
 *     <!--{title}-->       text, escaped
 *     <!--{css}-->         <style> with all of web's CSS
 *     <!--{importmap}-->   the modules as data: URLs, under the names by which they import each
 * other
 *     <!--{profiles}-->    the data
 *
 * Names of functions, files and threads may be anything, "</script>" for one. They are inside of
 * base64 and nowhere else, so nothing in them can mean anything to a browser before our own program
 * has unpacked it. The title is the one exception, and escaped. */
#include "export/viewer_page.h"

#include "base/base64_file.h"
#include "base/text.h"
#include "export/viewer_data.h"
#include "export/viewer_sources.h"
#include "export/web_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static const char *name_of(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : text_base_name(path);
}

char *viewer_page_title(const char *path, const char *base)
{
    char *title;
    int length = asprintf(&title, "%s%s%s - pitviper", name_of(path), base ? " compared with " : "",
                          base ? name_of(base) : "");
    return length < 0 ? NULL : title;
}

/* --- the parts -------------------------------------------------------------------------------- */

static int put_title(FILE *out, const struct viewer_page *page)
{
    size_t left = strlen(page->title), size;
    for (const char *next = page->title; left; next += size, left -= size) {
        size = text_utf8_length(next, left);
        const char *instead = !size                       ? "\xef\xbf\xbd"
                              : *next == '<'              ? "&lt;"
                              : *next == '>'              ? "&gt;"
                              : *next == '&'              ? "&amp;"
                              : *next == '"'              ? "&quot;"
                              : *next == '\''             ? "&#39;"
                              : (unsigned char)*next < 32 ? " "
                                                          : NULL;
        if (instead)
            fputs(instead, out);
        else
            fwrite(next, 1, size, out);
        size = size ? size : 1;
    }
    fputc('\n', out);
    return 0;
}

static int put_css(FILE *out, const struct viewer_page *page)
{
    (void)page;
    fputs("<style>\n", out);
    for (const struct web_file *file = web_files; file->name; file++)
        if (ends_with(file->name, ".css"))
            fwrite(file->bytes, 1, file->length, out);
    fputs("</style>\n", out);
    return 0;
}

static int put_import_map(FILE *out, const struct viewer_page *page)
{
    (void)page;
    const char *before = "<script type=\"importmap\">{\"imports\": {\n";
    for (const struct web_file *file = web_files; file->name; file++) {
        if (!ends_with(file->name, ".js"))
            continue;
        fprintf(out, "%s\"pitviper/%s\": \"data:text/javascript;base64,", before, file->name);
        FILE *text = base64_file_open(out);
        if (!text)
            return -ENOMEM;
        fwrite(file->bytes, 1, file->length, text);
        fclose(text);
        fputc('"', out);
        before = ",\n";
    }
    fputs("\n}}</script>\n", out);
    return 0;
}

/* One of the page's two profiles. The source text is that of the one that is shown. */
static int put_profile(FILE *out, const struct viewer_page *page, const struct profile *profile,
                       const char *id)
{
    struct viewer_tables tables;
    int error = viewer_tables_init(&tables, profile);
    if (error < 0)
        return error;
    if (page->sources && profile == page->profile)
        error = viewer_sources_add(&tables);
    fprintf(out, "<script type=\"application/x-pitviper\" id=\"%s\">", id);
    if (error == 0)
        error = viewer_data_write(out, profile, &tables, page->progress);
    fputs("</script>\n", out);
    viewer_tables_done(&tables);
    return error;
}

static int put_profiles(FILE *out, const struct viewer_page *page)
{
    int error = put_profile(out, page, page->profile, "profile");
    if (error == 0 && page->base)
        error = put_profile(out, page, page->base, "base");
    return error;
}

/* --- the page --------------------------------------------------------------------------------- */

static const struct {
    const char *placeholder;
    int (*put)(FILE *out, const struct viewer_page *page);
} parts[] = {
    {"<!--{title}-->", put_title},
    {"<!--{css}-->", put_css},
    {"<!--{importmap}-->", put_import_map},
    {"<!--{profiles}-->", put_profiles},
};

/* A line of the skeleton, its end of line included. */
static int put_line(FILE *out, const struct viewer_page *page, const char *line, size_t length)
{
    const char *start = line;
    size_t size = length;
    while (size && strchr(" \t\r\n", start[size - 1]))
        size--;
    while (size && (*start == ' ' || *start == '\t')) {
        start++;
        size--;
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strlen(parts[i].placeholder) == size && !memcmp(parts[i].placeholder, start, size))
            return parts[i].put(out, page);
    fwrite(line, 1, length, out);
    return 0;
}

int viewer_page_write(FILE *out, const struct viewer_page *page)
{
    const struct web_file *skeleton = web_files;
    while (skeleton->name && strcmp(skeleton->name, "index.html") != 0)
        skeleton++;
    const char *line = (const char *)skeleton->bytes, *end = line + skeleton->length;
    int error = 0;
    errno = 0;
    while (line < end && error == 0 && !ferror(out)) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = newline ? (size_t)(newline + 1 - line) : (size_t)(end - line);
        error = put_line(out, page, line, length);
        line += length;
    }
    if (error == 0 && (fflush(out) != 0 || ferror(out)))
        error = errno ? -errno : -EIO;
    return error;
}
