/* What `pitviper inspect` says about a perf map. */
#include "base/checked.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/inspect.h"
#include "formats/perfmap_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How CPython's perf support, and ours, begins the names of Python functions. */
static const char PYTHON_PREFIX[] = "py::";

struct totals {
    uint64_t lowest;  /* avma */
    uint64_t highest; /* avma behind the last byte */
    uint64_t code_bytes;
    size_t python_functions;
};

static struct totals count_entries(const struct perfmap_index *map)
{
    struct totals totals = {.lowest = UINT64_MAX};
    size_t prefix_length = strlen(PYTHON_PREFIX);
    for (size_t i = 0; i < map->entries.count; i++) {
        const struct perfmap_entry *entry = &map->entries.items[i];
        if (entry->start < totals.lowest)
            totals.lowest = entry->start;
        if (entry->start + entry->size > totals.highest)
            totals.highest = entry->start + entry->size;
        if (!checked_add_u64(totals.code_bytes, entry->size, &totals.code_bytes))
            totals.code_bytes = UINT64_MAX;
        if (entry->name_length > prefix_length &&
            memcmp(entry->name, PYTHON_PREFIX, prefix_length) == 0)
            totals.python_functions++;
    }
    return totals;
}

static void print_entry(const char *label, const struct perfmap_entry *entry)
{
    inspect_label(label);
    printf("%" PRIx64 " +%" PRIx64 "  ", entry->start, entry->size);
    text_print(stdout, entry->name, entry->name_length, INSPECT_NAME_LIMIT);
    putchar('\n');
}

static void print_text(const struct perfmap_index *map, const struct totals *totals)
{
    char number[TEXT_NUMBER_BYTES];
    inspect_label("entries");
    printf("%s, ", text_number(map->entries.count, number));
    inspect_count(totals->python_functions, "Python function", "Python functions");
    putchar('\n');
    if (!map->entries.count)
        return;
    inspect_label("addresses");
    printf("%" PRIx64 " to %" PRIx64 ", %s bytes of code\n", totals->lowest, totals->highest,
           text_number(totals->code_bytes, number));
    inspect_label("overlapping");
    printf("%s (the later line wins)\n", text_number(map->ranges.overlap_count, number));
    print_entry("first", &map->entries.items[0]);
    print_entry("last", &map->entries.items[map->entries.count - 1]);
}

static void json_entry(struct json *json, const char *key, const struct perfmap_entry *entry)
{
    json_begin_object(json, key);
    json_address(json, "start", entry->start);
    json_number(json, "size", entry->size);
    json_string(json, "name", entry->name, entry->name_length);
    json_end_object(json);
}

static void print_json(struct json *json, const struct perfmap_index *map,
                       const struct totals *totals)
{
    json_number(json, "entries", map->entries.count);
    json_number(json, "python_functions", totals->python_functions);
    json_number(json, "overlapping", map->ranges.overlap_count);
    json_number(json, "code_bytes", totals->code_bytes);
    if (!map->entries.count)
        return;
    json_address(json, "lowest", totals->lowest);
    json_address(json, "highest", totals->highest);
    json_entry(json, "first", &map->entries.items[0]);
    json_entry(json, "last", &map->entries.items[map->entries.count - 1]);
}

int inspect_perfmap(const struct inspect *inspect)
{
    struct perfmap_index map;
    if (perfmap_index_init(&map, inspect->path, inspect->file.data, inspect->file.length) < 0) {
        command_error(&cmd_inspect, "%s: memory is short for a file of this size", inspect->path);
        return STATUS_FAILED;
    }
    struct totals totals = count_entries(&map);
    struct json json;
    int status;
    if (inspect->json) {
        json_init(&json, stdout);
        json_begin_object(&json, NULL);
        json_text(&json, "file", inspect->path);
        json_text(&json, "format", "perfmap");
        json_number(&json, "bytes", inspect->file.length);
        print_json(&json, &map, &totals);
        status = inspect_damage(inspect, &json, &map.damage);
        json_end_object(&json);
    } else {
        inspect_title(inspect, "perf map");
        print_text(&map, &totals);
        status = inspect_damage(inspect, NULL, &map.damage);
    }
    perfmap_index_done(&map);
    return status;
}
