/* Two code objects are the same function when name, file, line table and version of the format
 * are; these bytes, one behind the other, are the content that is compared:
 *
 *     version, first line, length of name, length of file | name | file | line table
 *
 * The object file, and the link that names it by its build-id as perf wants it:
 *
 *     ~/.debug/pitviper/1f0a…/python.code
 *     ~/.debug/.build-id/1f/0a…  ->  ../../pitviper/1f0a…/python.code
 *
 * It is written anew as a whole, under another name until it is complete. */
#include "record/python_functions.h"

#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEX_BYTES = 2 * PYTHON_IMAGE_BUILD_ID_BYTES + 1 };

static void to_hex(const uint8_t *bytes, char ret_text[HEX_BYTES])
{
    for (size_t i = 0; i < PYTHON_IMAGE_BUILD_ID_BYTES; i++)
        snprintf(ret_text + 2 * i, 3, "%02x", bytes[i]);
}

static bool fits(int written)
{
    return written > 0 && written < PATH_MAX;
}

/* Makes the folders that the file will be in. */
static int make_folders(const char *file)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", file);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return -errno;
        *slash = '/';
    }
    return 0;
}

static bool is_usable(const char *cache)
{
    char file[PATH_MAX];
    return fits(snprintf(file, sizeof file, "%s/.build-id/", cache)) && make_folders(file) == 0 &&
           access(file, W_OK | X_OK) == 0;
}

static int choose_paths(struct python_functions *functions, const char *cache, const char *output)
{
    char id[HEX_BYTES];
    to_hex(functions->build_id, id);
    char absolute[PATH_MAX];
    if (!realpath(output, absolute))
        snprintf(absolute, sizeof absolute, "%s", output);
    if (!cache || !is_usable(cache))
        return fits(snprintf(functions->path, PATH_MAX, "%s.python.code", absolute))
                   ? 0
                   : -ENAMETOOLONG;
    if (!fits(snprintf(functions->path, PATH_MAX, "%s/pitviper/%s/python.code", cache, id)) ||
        !fits(snprintf(functions->link, PATH_MAX, "%s/.build-id/%.2s/%s", cache, id, id + 2)))
        return -ENAMETOOLONG;
    return 0;
}

int python_functions_init(struct python_functions *functions, const char *cache, const char *output)
{
    *functions = (struct python_functions){0};
    if (getrandom(functions->build_id, sizeof functions->build_id, 0) !=
        (ssize_t)sizeof functions->build_id)
        return -errno;
    int error = choose_paths(functions, cache, output);
    if (error < 0)
        return error;
    error = python_image_init(&functions->image);
    if (error < 0)
        return error;
    static const char UNKNOWN[] = "[unknown]";
    struct ring_record_code unknown = {.name = UNKNOWN,
                                       .name_length = sizeof UNKNOWN - 1,
                                       .file = UNKNOWN,
                                       .file_length = sizeof UNKNOWN - 1};
    uint32_t number;
    error = python_functions_add(functions, 0, &unknown, &number);
    functions->saved_count = functions->items.count;
    if (error < 0)
        python_functions_done(functions);
    return error;
}

void python_functions_done(struct python_functions *functions)
{
    for (size_t i = 0; i < functions->items.count; i++)
        python_lines_done(&functions->items.items[i].lines);
    vector_done(&functions->items);
    vector_done(&functions->scratch);
    hashtable_done(&functions->by_content);
    arena_done(&functions->arena);
    python_image_done(&functions->image);
}

/* Makes the bytes that tell functions apart in functions->scratch. */
static int make_content(struct python_functions *functions, uint32_t python_minor,
                        const struct ring_record_code *code)
{
    uint32_t head[] = {python_minor, code->first_line, (uint32_t)code->name_length,
                       (uint32_t)code->file_length};
    size_t bytes = sizeof head + code->name_length + code->file_length + code->lines_length;
    if (vector_reserve(&functions->scratch, bytes) < 0)
        return -ENOMEM;
    functions->scratch.count = bytes;
    struct writer writer;
    writer_init(&writer, functions->scratch.items, bytes);
    writer_bytes(&writer, head, sizeof head);
    writer_bytes(&writer, code->name, code->name_length);
    writer_bytes(&writer, code->file, code->file_length);
    writer_bytes(&writer, code->lines, code->lines_length);
    return 0;
}

/* What Python leaves on the stack while it makes an object, from 3.13 on. */
static bool is_clean_up(const struct ring_record_code *code)
{
    static const char NAME[] = "__init__";
    size_t length = sizeof NAME - 1;
    return code->first_line == 0 && code->name_length == length && code->file_length == length &&
           memcmp(code->name, NAME, length) == 0 && memcmp(code->file, NAME, length) == 0;
}

static int add_to_image(struct python_functions *functions, uint32_t python_minor,
                        const struct ring_record_code *code, struct python_functions_item *item)
{
    struct python_lines_table table = {.python_minor = python_minor,
                                       .first_line = code->first_line,
                                       .bytes = code->lines,
                                       .length = python_minor ? code->lines_length : 0};
    int error = python_lines_init(&item->lines, &table);
    if (error < 0)
        return error;
    struct python_image_function function = {.name = code->name,
                                             .name_length = code->name_length,
                                             .file = code->file,
                                             .file_length = code->file_length,
                                             .first_line = code->first_line,
                                             .lines = item->lines.distinct.items,
                                             .line_count = item->lines.distinct.count};
    error = python_image_add(&functions->image, &function, &item->in_image);
    if (error < 0)
        python_lines_done(&item->lines);
    return error;
}

/* The function of the content in functions->scratch. */
static bool find(const struct python_functions *functions, uint64_t hash, uint32_t *ret_number)
{
    struct hashtable_probe probe = hashtable_probe(&functions->by_content, hash);
    uint64_t number;
    while (hashtable_next(&probe, &number)) {
        const struct python_functions_item *item = &functions->items.items[number];
        if (item->content_bytes == functions->scratch.count &&
            memcmp(item->content, functions->scratch.items, item->content_bytes) == 0) {
            *ret_number = (uint32_t)number;
            return true;
        }
    }
    return false;
}

/* The code as it is in the content: what is in the ring may change. */
static struct ring_record_code in_content(const struct ring_record_code *code,
                                          const struct python_functions_item *item)
{
    struct ring_record_code copy = *code;
    copy.lines = item->content + item->content_bytes - code->lines_length;
    copy.file = (const char *)copy.lines - code->file_length;
    copy.name = copy.file - code->name_length;
    return copy;
}

int python_functions_add(struct python_functions *functions, uint32_t python_minor,
                         const struct ring_record_code *code, uint32_t *ret_number)
{
    if (make_content(functions, python_minor, code) < 0)
        return -ENOMEM;
    uint64_t hash = hash_bytes(functions->scratch.items, functions->scratch.count);
    if (find(functions, hash, ret_number))
        return 0;
    struct python_functions_item item = {.content_bytes = functions->scratch.count};
    item.content = (const uint8_t *)arena_copy(&functions->arena, functions->scratch.items,
                                               functions->scratch.count);
    if (!item.content || vector_reserve(&functions->items, functions->items.count + 1) < 0)
        return -ENOMEM;
    struct ring_record_code copy = in_content(code, &item);
    item.is_hidden = is_clean_up(&copy);
    int error = add_to_image(functions, python_minor, &copy, &item);
    if (error < 0)
        return error;
    *ret_number = (uint32_t)functions->items.count;
    vector_push(&functions->items, item);
    return hashtable_add(&functions->by_content, hash, *ret_number);
}

uint64_t python_functions_avma(const struct python_functions *functions, uint32_t number,
                               uint32_t offset)
{
    const struct python_functions_item *item = &functions->items.items[number];
    if (item->is_hidden)
        return 0;
    int32_t line = python_lines_at(&item->lines, offset);
    return PYTHON_IMAGE_BASE_AVMA + python_image_address(&functions->image, item->in_image, line);
}

/* --- the object file ---------------------------------------------------------------------------
 */

static int make_link(const struct python_functions *functions)
{
    if (!functions->link[0])
        return 0;
    char id[HEX_BYTES], target[HEX_BYTES + 64];
    to_hex(functions->build_id, id);
    snprintf(target, sizeof target, "../../pitviper/%s/python.code", id);
    int error = make_folders(functions->link);
    if (error == 0 && symlink(target, functions->link) < 0 && errno != EEXIST)
        error = -errno;
    return error;
}

static int write_image(const struct python_functions *functions)
{
    CLEANUP(cleanup_free) uint8_t *data = NULL;
    struct python_image_bytes bytes = {0};
    int error = python_image_finish(&functions->image, functions->build_id, &bytes);
    data = bytes.data;
    struct new_file file;
    if (error == 0)
        error = make_folders(functions->path);
    if (error == 0)
        error = new_file_open(&file, functions->path, 0644);
    if (error < 0)
        return error;
    error = new_file_write(&file, data, bytes.length);
    if (error == 0)
        error = new_file_commit(&file);
    new_file_done(&file);
    return error;
}

int python_functions_save(struct python_functions *functions)
{
    if (!python_functions_are_new(functions))
        return 0;
    int error = write_image(functions);
    if (error == 0)
        error = make_link(functions);
    if (error == 0)
        functions->saved_count = functions->items.count;
    return error;
}
