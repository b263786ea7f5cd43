/* pitviper inspect [--json] FILE: what a file holds, whether it is whole, and where it is not.
 *
 * The format is told by the content; only an empty file is told by its name, since an empty perf
 * map is what a program leaves that never ran a Python function. */
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/inspect.h"
#include "formats/jitdump.h"
#include "formats/perfdata.h"
#include "formats/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { SHOWN_PLACES = 10 };

void inspect_title(const struct inspect *inspect, const char *format)
{
    char number[TEXT_NUMBER_BYTES];
    text_print(stdout, inspect->path, strlen(inspect->path), 0);
    printf(": %s, %s bytes\n", format, text_number(inspect->file.length, number));
}

void inspect_label(const char *label)
{
    printf("  %-12s", label);
}

void inspect_count(uint64_t count, const char *singular, const char *plural)
{
    char number[TEXT_NUMBER_BYTES];
    printf("%s %s", text_number(count, number), count == 1 ? singular : plural);
}

static void print_places(const struct damage *damage)
{
    size_t kept = damage->count < DAMAGE_MOST_PLACES ? damage->count : DAMAGE_MOST_PLACES;
    size_t shown = kept < SHOWN_PLACES ? kept : SHOWN_PLACES;
    for (size_t i = 0; i < shown; i++) {
        const struct damage_place *place = &damage->places[i];
        inspect_label("");
        printf("offset %zu", place->offset);
        if (place->line)
            printf(" (line %zu)", place->line);
        printf(": %s; %zu bytes skipped\n", place->problem, place->bytes);
    }
    if (damage->count > shown) {
        inspect_label("");
        printf("and %zu more\n", damage->count - shown);
    }
}

static void print_damage(const struct damage *damage)
{
    char number[TEXT_NUMBER_BYTES];
    inspect_label("damaged");
    if (damage->count) {
        inspect_count(damage->count, "place", "places");
        printf(", %s bytes skipped\n", text_number(damage->bytes, number));
        print_places(damage);
    } else {
        puts("no");
    }
    inspect_label("truncated");
    if (damage->truncated)
        printf("yes: the last entry, at offset %zu, is incomplete\n", damage->truncated_offset);
    else
        puts("no");
}

static void json_damage(struct json *json, const struct damage *damage)
{
    json_bool(json, "whole", !damage->count && !damage->truncated);
    json_bool(json, "truncated", damage->truncated);
    if (damage->truncated)
        json_number(json, "truncated_offset", damage->truncated_offset);
    json_number(json, "damaged_places", damage->count);
    json_number(json, "damaged_bytes", damage->bytes);
    json_begin_array(json, "damage");
    for (size_t i = 0; i < damage->count && i < DAMAGE_MOST_PLACES; i++) {
        json_begin_object(json, NULL);
        json_number(json, "offset", damage->places[i].offset);
        if (damage->places[i].line)
            json_number(json, "line", damage->places[i].line);
        json_number(json, "bytes", damage->places[i].bytes);
        json_text(json, "problem", damage->places[i].problem);
        json_end_object(json);
    }
    json_end_array(json);
}

int inspect_damage(const struct inspect *inspect, struct json *json, const struct damage *damage)
{
    if (json)
        json_damage(json, damage);
    else
        print_damage(damage);
    if (damage->count)
        command_error(&cmd_inspect,
                      "%s: damaged in %zu places, the first at offset %zu: %s; everything else is "
                      "shown",
                      inspect->path, damage->count, damage->places[0].offset,
                      damage->places[0].problem);
    else if (damage->truncated)
        command_error(&cmd_inspect,
                      "%s: ends inside its last entry, at offset %zu: still being written, or its "
                      "writer was killed; everything before it is shown",
                      inspect->path, damage->truncated_offset);
    return damage->count || damage->truncated ? STATUS_FAILED : STATUS_OK;
}

static void print_read_error(const char *path, int error)
{
    switch (error) {
    case -EISDIR:
        command_error(&cmd_inspect, "%s: is a folder; name a file in it", path);
        break;
    case -ENODEV:
        command_error(&cmd_inspect, "%s: is a device or a socket, not a file", path);
        break;
    case -ENOENT:
        command_error(&cmd_inspect,
                      "%s: there is no such file; programs write /tmp/perf-PID.map or "
                      "/tmp/jit-PID.dump",
                      path);
        break;
    case -EACCES:
        command_error(&cmd_inspect, "%s: permission denied; it belongs to another user", path);
        break;
    default:
        command_error(&cmd_inspect, "%s: cannot be read: %s", path, strerror(-error));
    }
}

/* Whether one of the first lines is an entry: damaged maps are maps too, other texts are not. */
static bool looks_like_perfmap(const struct inspect *inspect)
{
    enum { LINES = 16 };
    struct perfmap_reader reader;
    struct perfmap_entry entry;
    perfmap_reader_init(&reader, inspect->path, inspect->file.data, inspect->file.length);
    while (reader.line < LINES) {
        int result = perfmap_next(&reader, &entry);
        if (result == 1)
            return true;
        if (result == 0)
            break;
    }
    return false;
}

static bool is_named_like_perfmap(const char *path)
{
    const char *slash = strrchr(path, '/');
    return fnmatch("perf-[0-9]*.map", slash ? slash + 1 : path, 0) == 0;
}

static int inspect_file(const struct inspect *inspect)
{
    const struct file *file = &inspect->file;
    if (jitdump_is(file->data, file->length))
        return inspect_jitdump(inspect);
    if (perfdata_is(file->data, file->length))
        return inspect_perfdata(inspect);
    if (looks_like_perfmap(inspect) || is_named_like_perfmap(inspect->path))
        return inspect_perfmap(inspect);
    if (!file->length)
        command_error(&cmd_inspect, "%s: is empty", inspect->path);
    else
        command_error(&cmd_inspect, "%s: is neither a perf.data, a perf map nor a jitdump file",
                      inspect->path);
    return STATUS_FAILED;
}

/* Recordings may be larger than memory: they are told by their first bytes. */
static bool is_perfdata_on_disk(const char *path)
{
    struct stat status;
    char magic[8];
    if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
        return false;
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, magic, sizeof magic) == sizeof magic &&
           perfdata_is(magic, sizeof magic);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct inspect inspect = {0};
    struct options options;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return STATUS_OK;
        if (option == OPTIONS_WRONG)
            return STATUS_USAGE;
        if (option == 'j')
            inspect.json = true;
    }
    char **paths;
    if (options_rest(&options, &paths) != 1) {
        command_error(self, "takes one FILE; see 'pitviper help inspect'");
        return STATUS_USAGE;
    }
    inspect.path = paths[0];
    if (is_perfdata_on_disk(inspect.path))
        return inspect_perfdata(&inspect);
    CLEANUP(file_done) struct file file;
    int error = file_read(inspect.path, &file);
    if (error < 0) {
        print_read_error(inspect.path, error);
        return STATUS_FAILED;
    }
    inspect.file = file;
    return inspect_file(&inspect);
}

const struct command cmd_inspect = {
    .name = "inspect",
    .arguments = "FILE",
    .summary = "say what a perf.data, perf map or jitdump file holds, and what is damaged in it",
    .details = "Says what FILE holds: counts, address ranges, times, and what is damaged and\n"
               "where. FILE is a recording of perf (perf.data), a perf map (/tmp/perf-PID.map) or\n"
               "a jitdump (/tmp/jit-PID.dump); which one is told by its content.\n"
               "\n"
               "The exit status is 0 when the whole file was understood, 1 when it could not be\n"
               "read or a part of it is damaged or cut off, 2 when the command line is wrong.\n",
    .options = (const struct option_spec[]){{"json", 'j', NULL, "print JSON, for scripts"}, {0}},
    .run = run,
};
