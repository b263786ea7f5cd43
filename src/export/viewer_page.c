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

#include "base/text.h"
#include "export/base64.h"
#include "export/viewer_data.h"
#include "export/viewer_sources.h"
#include "export/web_files.h"

#include <errno.h>
#include <string.h>

static int put(FILE *out, const void *bytes, size_t length)
{
    errno = 0;
    if (fwrite(bytes, 1, length, out) == length)
        return 0;
    return errno ? -errno : -EIO;
}

static int put_text(FILE *out, const char *text)
{
    return put(out, text, strlen(text));
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* --- the parts -------------------------------------------------------------------------------- */

static int put_title(FILE *out, const struct viewer_page *page)
{
    size_t left = strlen(page->title), size;
    int error = 0;
    for (const char *next = page->title; left && error == 0; next += size, left -= size) {
        size = text_utf8_length(next, left);
        const char *instead = !size                       ? "\xef\xbf\xbd"
                              : *next == '<'              ? "&lt;"
                              : *next == '>'              ? "&gt;"
                              : *next == '&'              ? "&amp;"
                              : *next == '"'              ? "&quot;"
                              : *next == '\''             ? "&#39;"
                              : (unsigned char)*next < 32 ? " "
                                                          : NULL;
        error = instead ? put_text(out, instead) : put(out, next, size);
        size = size ? size : 1;
    }
    return error < 0 ? error : put_text(out, "\n");
}

static int put_css(FILE *out, const struct viewer_page *page)
{
    (void)page;
    int error = put_text(out, "<style>\n");
    for (const struct web_file *file = web_files; file->name && error == 0; file++)
        if (ends_with(file->name, ".css"))
            error = put(out, file->bytes, file->length);
    return error < 0 ? error : put_text(out, "</style>\n");
}

static int put_module(FILE *out, const struct web_file *file, bool is_first)
{
    struct base64 base64;
    base64_init(&base64, out);
    int error = put_text(out, is_first ? "\n\"pitviper/" : ",\n\"pitviper/");
    if (error == 0)
        error = put_text(out, file->name);
    if (error == 0)
        error = put_text(out, "\": \"data:text/javascript;base64,");
    if (error == 0)
        error = base64_write(&base64, file->bytes, file->length);
    if (error == 0)
        error = base64_end(&base64);
    return error < 0 ? error : put_text(out, "\"");
}

static int put_import_map(FILE *out, const struct viewer_page *page)
{
    (void)page;
    int error = put_text(out, "<script type=\"importmap\">{\"imports\": {");
    bool is_first = true;
    for (const struct web_file *file = web_files; file->name && error == 0; file++) {
        if (!ends_with(file->name, ".js"))
            continue;
        error = put_module(out, file, is_first);
        is_first = false;
    }
    return error < 0 ? error : put_text(out, "\n}}</script>\n");
}

static int put_profile(FILE *out, const struct profile *profile, const char *id, bool sources)
{
    struct viewer_tables tables;
    int error = viewer_tables_init(&tables, profile);
    if (error < 0)
        return error;
    if (sources)
        error = viewer_sources_add(&tables);
    if (error == 0)
        error = put_text(out, "<script type=\"application/x-pitviper\" id=\"");
    if (error == 0)
        error = put_text(out, id);
    if (error == 0)
        error = put_text(out, "\">");
    if (error == 0)
        error = viewer_data_write(out, profile, &tables);
    viewer_tables_done(&tables);
    return error < 0 ? error : put_text(out, "</script>\n");
}

static int put_profiles(FILE *out, const struct viewer_page *page)
{
    int error = put_profile(out, page->profile, "profile", page->sources);
    if (error == 0 && page->base)
        error = put_profile(out, page->base, "base", false);
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
    return put(out, line, length);
}

int viewer_page_write(FILE *out, const struct viewer_page *page)
{
    const struct web_file *skeleton = web_files;
    while (skeleton->name && strcmp(skeleton->name, "index.html") != 0)
        skeleton++;
    const char *line = (const char *)skeleton->bytes, *end = line + skeleton->length;
    int error = 0;
    while (line < end && error == 0) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        size_t length = newline ? (size_t)(newline + 1 - line) : (size_t)(end - line);
        error = put_line(out, page, line, length);
        line += length;
    }
    errno = 0;
    if (error == 0 && fflush(out) != 0)
        error = errno ? -errno : -EIO;
    return error;
}
