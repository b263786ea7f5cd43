/* The processed format of the Firefox Profiler, for profiler.firefox.com and `samply load`: JSON,
 * in which a thread is a set of tables by column:
 *
 *     samples  stack, time, weight            stringArray   all texts
 *     stackTable  prefix, frame, category     resourceTable libraries, by number of `libs`
 *     frameTable  func, line, category, …     funcTable     name, fileName, lineNumber, resource, …
 *
 * Version 49 of the format: the last one in which each thread has its tables for itself, which all
 * viewers of the last years read; newer ones convert it. So each thread has only the rows that its
 * samples use. Times are in milliseconds since the first sample. */
#include "base/json.h"
#include "export/export.h"
#include "profile/pairmap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { GECKO_VERSION = 24, PROCESSED_VERSION = 49, RESOURCE_LIBRARY = 1 };

/* The categories of the format are few; colours are those that it has names for. */
static const struct {
    const char *name, *colour;
} CATEGORIES[] = {{"Other", "grey"},   {"Python", "yellow"}, {"Interpreter", "blue"},
                  {"Native", "green"}, {"Kernel", "orange"}, {"GC", "purple"}};
enum { CATEGORY_COUNT = sizeof CATEGORIES / sizeof *CATEGORIES };

static unsigned category_of(enum export_place place)
{
    switch (place) {
    case EXPORT_PLACE_PYTHON:
        return 1;
    case EXPORT_PLACE_INTERPRETER:
        return 2;
    case EXPORT_PLACE_KERNEL:
        return 4;
    case EXPORT_PLACE_GC:
        return 5;
    case EXPORT_PLACE_UNKNOWN:
        return 0;
    default:
        return 3;
    }
}

/* A table of one thread: which of all things it has, and the number of each there. `number_of` is
 * valid where `owner` is the thread's. */
struct local {
    VECTOR(uint32_t) items;
    uint32_t *number_of;
    uint32_t *owner; /* thread + 1 */
};

struct frame {
    uint32_t name;
    uint32_t line;
};

struct firefox {
    const struct export_view *view;
    struct json json;
    uint32_t thread;
    struct local nodes, frames, names, modules;
    uint32_t *frame_of;              /* per node: one of all_frames */
    VECTOR(struct frame) all_frames; /* the different (name, line) */
    uint32_t *lib_of;                /* per module: number in `libs` */
    struct strings strings;          /* of the thread */
};

/* --- tables of a thread ---------------------------------------------------------------------- */

static int local_init(struct local *local, size_t count)
{
    *local = (struct local){.number_of = calloc(count + 1, sizeof *local->number_of),
                            .owner = calloc(count + 1, sizeof *local->owner)};
    return local->number_of && local->owner ? 0 : -ENOMEM;
}

static void local_done(struct local *local)
{
    vector_done(&local->items);
    free(local->number_of);
    free(local->owner);
}

/* 1 when it is new to the thread, 0 when not, or -ENOMEM. */
static int local_add(struct local *local, uint32_t item, uint32_t thread)
{
    if (local->owner[item] == thread + 1)
        return 0;
    local->owner[item] = thread + 1;
    local->number_of[item] = (uint32_t)local->items.count;
    return vector_push(&local->items, item) < 0 ? -ENOMEM : 1;
}

static int compare_numbers(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Finds all rows that the thread's samples need. Nodes in their own order: prefixes come first. */
static int collect(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    uint32_t thread = firefox->thread;
    struct local *nodes = &firefox->nodes;
    nodes->items.count = firefox->frames.items.count = 0;
    firefox->names.items.count = firefox->modules.items.count = 0;
    for (uint32_t i = view->first_of_thread[thread]; i < view->first_of_thread[thread + 1]; i++) {
        uint32_t node = view->node_of[view->profile->samples.items[view->samples[i]].stack];
        int is_new = 1;
        for (; node && is_new == 1; node = view->nodes.items[node].parent)
            is_new = local_add(nodes, node, thread);
        if (is_new < 0)
            return is_new;
    }
    if (nodes->items.count)
        qsort(nodes->items.items, nodes->items.count, sizeof *nodes->items.items, compare_numbers);
    for (uint32_t i = 0; i < nodes->items.count; i++) {
        uint32_t node = nodes->items.items[i], name = view->nodes.items[node].name;
        nodes->number_of[node] = i;
        if (local_add(&firefox->frames, firefox->frame_of[node], thread) < 0 ||
            local_add(&firefox->names, name, thread) < 0 ||
            (!view->names.items.items[name].is_python &&
             local_add(&firefox->modules, view->names.items.items[name].module, thread) < 0))
            return -ENOMEM;
    }
    return 0;
}

/* Numbers the different (name, line) of all nodes. */
static int find_frames(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    struct pairmap known = {0};
    int result = 0;
    for (uint32_t i = 1; i < view->nodes.count && result == 0; i++) {
        const struct export_node *node = &view->nodes.items[i];
        uint32_t *frame = &firefox->frame_of[i];
        if (pairmap_get(&known, node->name, node->line, frame))
            continue;
        *frame = (uint32_t)firefox->all_frames.count;
        struct frame new = {node->name, node->line};
        result = vector_push(&firefox->all_frames, new);
        if (result == 0)
            result = pairmap_set(&known, node->name, node->line, *frame);
    }
    pairmap_done(&known);
    return result;
}

/* --- columns --------------------------------------------------------------------------------- */

static void constant_column(struct firefox *firefox, const char *key, size_t count,
                            const char *value)
{
    json_begin_array(&firefox->json, key);
    for (size_t i = 0; i < count; i++)
        json_raw(&firefox->json, NULL, value);
    json_end_array(&firefox->json);
}

static void write_stack_table(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    struct json *json = &firefox->json;
    const uint32_t *nodes = firefox->nodes.items.items;
    size_t count = firefox->nodes.items.count;
    json_begin_object(json, "stackTable");
    json_number(json, "length", count);
    json_begin_array(json, "prefix");
    for (size_t i = 0; i < count; i++) {
        uint32_t parent = view->nodes.items[nodes[i]].parent;
        if (parent)
            json_number(json, NULL, firefox->nodes.number_of[parent]);
        else
            json_null(json, NULL);
    }
    json_end_array(json);
    json_begin_array(json, "frame");
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, firefox->frames.number_of[firefox->frame_of[nodes[i]]]);
    json_end_array(json);
    json_begin_array(json, "category");
    for (size_t i = 0; i < count; i++) {
        uint32_t name = view->nodes.items[nodes[i]].name;
        json_number(json, NULL, category_of(view->names.items.items[name].place));
    }
    json_end_array(json);
    constant_column(firefox, "subcategory", count, "0");
    json_end_object(json);
}

static void write_frame_table(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    struct json *json = &firefox->json;
    size_t count = firefox->frames.items.count;
    json_begin_object(json, "frameTable");
    json_number(json, "length", count);
    constant_column(firefox, "address", count, "-1");
    constant_column(firefox, "inlineDepth", count, "0");
    json_begin_array(json, "category");
    for (size_t i = 0; i < count; i++) {
        uint32_t name = firefox->all_frames.items[firefox->frames.items.items[i]].name;
        json_number(json, NULL, category_of(view->names.items.items[name].place));
    }
    json_end_array(json);
    constant_column(firefox, "subcategory", count, "0");
    json_begin_array(json, "func");
    for (size_t i = 0; i < count; i++) {
        uint32_t name = firefox->all_frames.items[firefox->frames.items.items[i]].name;
        json_number(json, NULL, firefox->names.number_of[name]);
    }
    json_end_array(json);
    json_begin_array(json, "line");
    for (size_t i = 0; i < count; i++) {
        uint32_t line = firefox->all_frames.items[firefox->frames.items.items[i]].line;
        if (line)
            json_number(json, NULL, line);
        else
            json_null(json, NULL);
    }
    json_end_array(json);
    constant_column(firefox, "column", count, "null");
    constant_column(firefox, "nativeSymbol", count, "null");
    constant_column(firefox, "innerWindowID", count, "null");
    constant_column(firefox, "implementation", count, "null");
    json_end_object(json);
}

static int write_text(struct firefox *firefox, struct strings_text text)
{
    uint32_t number;
    if (strings_intern(&firefox->strings, text.bytes, text.length, &number) < 0)
        return -ENOMEM;
    json_number(&firefox->json, NULL, number);
    return 0;
}

static int write_func_table(struct firefox *firefox)
{
    const struct export_name *names = firefox->view->names.items.items;
    const uint32_t *items = firefox->names.items.items;
    struct json *json = &firefox->json;
    size_t count = firefox->names.items.count;
    int result = 0;
    json_begin_object(json, "funcTable");
    json_number(json, "length", count);
    json_begin_array(json, "name");
    for (size_t i = 0; i < count && result == 0; i++)
        result = write_text(firefox, names[items[i]].name);
    json_end_array(json);
    constant_column(firefox, "isJS", count, "false");
    constant_column(firefox, "relevantForJS", count, "false");
    json_begin_array(json, "resource");
    for (size_t i = 0; i < count; i++)
        if (names[items[i]].is_python)
            json_raw(json, NULL, "-1");
        else
            json_number(json, NULL, firefox->modules.number_of[names[items[i]].module]);
    json_end_array(json);
    json_begin_array(json, "fileName");
    for (size_t i = 0; i < count && result == 0; i++)
        if (names[items[i]].file.length)
            result = write_text(firefox, names[items[i]].file);
        else
            json_null(json, NULL);
    json_end_array(json);
    json_begin_array(json, "lineNumber");
    for (size_t i = 0; i < count; i++)
        if (names[items[i]].line)
            json_number(json, NULL, names[items[i]].line);
        else
            json_null(json, NULL);
    json_end_array(json);
    constant_column(firefox, "columnNumber", count, "null");
    json_end_object(json);
    return result;
}

static int write_resource_table(struct firefox *firefox)
{
    const struct profile *profile = firefox->view->profile;
    const uint32_t *items = firefox->modules.items.items;
    struct json *json = &firefox->json;
    size_t count = firefox->modules.items.count;
    int result = 0;
    json_begin_object(json, "resourceTable");
    json_number(json, "length", count);
    json_begin_array(json, "lib");
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, firefox->lib_of[items[i]]);
    json_end_array(json);
    json_begin_array(json, "name");
    for (size_t i = 0; i < count && result == 0; i++)
        result = write_text(firefox,
                            strings_get(&profile->strings, profile->modules.items[items[i]].name));
    json_end_array(json);
    constant_column(firefox, "host", count, "null");
    json_begin_array(json, "type");
    for (size_t i = 0; i < count; i++)
        json_number(json, NULL, RESOURCE_LIBRARY);
    json_end_array(json);
    json_end_object(json);
    return result;
}

static void write_samples(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    const struct profile_sample *samples = view->profile->samples.items;
    struct json *json = &firefox->json;
    uint32_t begin = view->first_of_thread[firefox->thread],
             end = view->first_of_thread[firefox->thread + 1];
    bool is_time = view->unit == EXPORT_NANOSECONDS;
    json_begin_object(json, "samples");
    json_number(json, "length", end - begin);
    json_text(json, "weightType", is_time ? "tracing-ms" : "samples");
    json_begin_array(json, "stack");
    for (uint32_t i = begin; i < end; i++) {
        uint32_t node = view->node_of[samples[view->samples[i]].stack];
        if (node)
            json_number(json, NULL, firefox->nodes.number_of[node]);
        else
            json_null(json, NULL);
    }
    json_end_array(json);
    json_begin_array(json, "time");
    for (uint32_t i = begin; i < end; i++)
        json_millionths(json, NULL, samples[view->samples[i]].time_ns - view->first_ns);
    json_end_array(json);
    json_begin_array(json, "weight");
    for (uint32_t i = begin; i < end; i++) {
        uint64_t weight = export_weight(view, &samples[view->samples[i]]);
        if (is_time)
            json_millionths(json, NULL, weight);
        else
            json_number(json, NULL, weight);
    }
    json_end_array(json);
    json_end_object(json);
}

static void write_empty_tables(struct firefox *firefox)
{
    static const char *const MARKERS[] = {"data",  "name",     "startTime", "endTime",
                                          "phase", "category", NULL};
    static const char *const SYMBOLS[] = {"address", "functionSize", "libIndex", "name", NULL};
    const struct {
        const char *name;
        const char *const *columns;
    } tables[] = {{"markers", MARKERS}, {"nativeSymbols", SYMBOLS}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        json_begin_object(&firefox->json, tables[i].name);
        json_number(&firefox->json, "length", 0);
        for (const char *const *column = tables[i].columns; *column; column++)
            constant_column(firefox, *column, 0, "");
        json_end_object(&firefox->json);
    }
}

/* --- the whole ------------------------------------------------------------------------------- */

static void number_as_text(struct json *json, const char *key, int32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    json_text(json, key, text);
}

/* Times of the recording count from its first sample on; what began before it has 0. */
static void time_or(struct firefox *firefox, const char *key, uint64_t time_ns, const char *none)
{
    if (!time_ns)
        json_raw(&firefox->json, key, none);
    else
        json_millionths(&firefox->json, key,
                        time_ns > firefox->view->first_ns ? time_ns - firefox->view->first_ns : 0);
}

static void write_thread_head(struct firefox *firefox)
{
    const struct profile *profile = firefox->view->profile;
    const struct profile_thread *thread = &profile->threads.items[firefox->thread];
    const struct profile_process *process = &profile->processes.items[thread->process];
    struct strings_text name = strings_get(&profile->strings, thread->comm),
                        process_name = strings_get(&profile->strings, process->comm);
    struct json *json = &firefox->json;
    json_text(json, "processType", "default");
    json_string(json, "processName", process_name.bytes, process_name.length);
    time_or(firefox, "processStartupTime", process->start_ns, "0");
    time_or(firefox, "processShutdownTime", process->end_ns, "null");
    time_or(firefox, "registerTime", thread->start_ns, "0");
    time_or(firefox, "unregisterTime", thread->end_ns, "null");
    json_begin_array(json, "pausedRanges");
    json_end_array(json);
    json_string(json, "name", name.bytes, name.length);
    json_bool(json, "isMainThread", thread->tid == process->pid);
    number_as_text(json, "pid", process->pid);
    number_as_text(json, "tid", thread->tid);
}

static int write_thread(struct firefox *firefox, uint32_t thread)
{
    struct json *json = &firefox->json;
    firefox->thread = thread;
    int result = collect(firefox);
    if (result < 0 || strings_init(&firefox->strings) < 0)
        return -ENOMEM;
    json_begin_object(json, NULL);
    write_thread_head(firefox);
    write_samples(firefox);
    write_stack_table(firefox);
    write_frame_table(firefox);
    result = write_func_table(firefox);
    if (result == 0)
        result = write_resource_table(firefox);
    write_empty_tables(firefox);
    json_begin_array(json, "stringArray");
    for (uint32_t i = 0; i < firefox->strings.texts.count; i++) {
        struct strings_text text = strings_get(&firefox->strings, i);
        json_string(json, NULL, text.bytes, text.length);
    }
    json_end_array(json);
    json_end_object(json);
    strings_done(&firefox->strings);
    return result;
}

static void write_meta(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    const struct perfdata_info *info = &view->profile->info;
    struct json *json = &firefox->json;
    const struct profile_event *event = view->settings.event < view->profile->events.count
                                            ? &view->profile->events.items[view->settings.event]
                                            : NULL;
    uint64_t interval_ns = 1000000;
    if (event && event->frequency_hz)
        interval_ns = 1000000000 / event->frequency_hz;
    else if (event && event->period && view->unit == EXPORT_NANOSECONDS)
        interval_ns = event->period;
    json_begin_object(json, "meta");
    json_number(json, "version", GECKO_VERSION);
    json_number(json, "preprocessedProfileVersion", PROCESSED_VERSION);
    json_millionths(json, "interval", interval_ns ? interval_ns : 1);
    json_millionths(json, "startTime", export_wall_ns(view));
    json_number(json, "processType", 0);
    json_text(json, "product", view->settings.source);
    json_text(json, "importedFrom", "pitviper " PITVIPER_VERSION);
    if (info->os_release)
        json_text(json, "oscpu", info->os_release);
    json_number(json, "stackwalk", 1);
    json_bool(json, "debug", false);
    json_bool(json, "symbolicated", true);
    json_bool(json, "usesOnlyOneStackType", true);
    json_bool(json, "doesNotUseFrameImplementation", true);
    json_bool(json, "sourceCodeIsNotOnSearchfox", true);
    json_begin_array(json, "markerSchema");
    json_end_array(json);
    json_begin_object(json, "sampleUnits");
    json_text(json, "time", "ms");
    json_text(json, "eventDelay", "ms");
    json_text(json, "threadCPUDelta", "\302\265s");
    json_end_object(json);
    json_begin_array(json, "categories");
    for (size_t i = 0; i < CATEGORY_COUNT; i++) {
        json_begin_object(json, NULL);
        json_text(json, "name", CATEGORIES[i].name);
        json_text(json, "color", CATEGORIES[i].colour);
        json_begin_array(json, "subcategories");
        json_text(json, NULL, "Other");
        json_end_array(json);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
}

/* The build-id as symbol servers spell it: its first 16 bytes as a GUID of little-endian parts, and
 * an age of 0. */
static void breakpad_id(const struct profile_module *module, char text[34])
{
    static const uint8_t ORDER[16] = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
    for (size_t i = 0; i < 16; i++)
        sprintf(text + 2 * i, "%02X", module->build_id[ORDER[i]]);
    memcpy(text + 32, "0", 2);
}

static void write_lib(struct firefox *firefox, const struct profile_module *module)
{
    const struct profile *profile = firefox->view->profile;
    struct json *json = &firefox->json;
    char guid[34], code_id[2 * sizeof module->build_id + 1] = "";
    struct strings_text name = strings_get(&profile->strings, module->name),
                        path = strings_get(&profile->strings, module->path);
    breakpad_id(module, guid);
    for (size_t i = 0; i < module->build_id_size && i < sizeof module->build_id; i++)
        sprintf(code_id + 2 * i, "%02x", module->build_id[i]);
    json_begin_object(json, NULL);
    json_string(json, "name", name.bytes, name.length);
    json_string(json, "path", path.bytes, path.length);
    json_string(json, "debugName", name.bytes, name.length);
    json_string(json, "debugPath", path.bytes, path.length);
    json_text(json, "breakpadId", guid);
    json_text(json, "codeId", *code_id ? code_id : NULL);
    json_text(json, "arch", profile->info.arch);
    json_end_object(json);
}

/* Libraries that some function of the samples belongs to. */
static int write_libs(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    const struct profile *profile = view->profile;
    bool *used = calloc(profile->modules.count + 1, sizeof *used);
    if (!used)
        return -ENOMEM;
    for (size_t i = 0; i < view->names.items.count; i++)
        used[view->names.items.items[i].module] |= !view->names.items.items[i].is_python;
    uint32_t count = 0;
    json_begin_array(&firefox->json, "libs");
    for (size_t i = 0; i < profile->modules.count; i++)
        if (used[i]) {
            firefox->lib_of[i] = count++;
            write_lib(firefox, &profile->modules.items[i]);
        }
    json_end_array(&firefox->json);
    free(used);
    return 0;
}

static int write_file(struct firefox *firefox)
{
    const struct export_view *view = firefox->view;
    struct json *json = &firefox->json;
    json_begin_object(json, NULL);
    write_meta(firefox);
    int result = write_libs(firefox);
    json_begin_array(json, "pages");
    json_end_array(json);
    json_begin_array(json, "counters");
    json_end_array(json);
    json_begin_array(json, "profilerOverhead");
    json_end_array(json);
    json_begin_array(json, "threads");
    for (uint32_t i = 0; i < view->profile->threads.count && result == 0; i++)
        if (view->first_of_thread[i] != view->first_of_thread[i + 1])
            result = write_thread(firefox, i);
    json_end_array(json);
    json_end_object(json);
    return result;
}

int export_firefox(const struct export_view *view, FILE *out)
{
    struct firefox firefox = {.view = view};
    json_init_compact(&firefox.json, out);
    firefox.frame_of = calloc(view->nodes.count + 1, sizeof *firefox.frame_of);
    firefox.lib_of = calloc(view->profile->modules.count + 1, sizeof *firefox.lib_of);
    int result = firefox.frame_of && firefox.lib_of ? find_frames(&firefox) : -ENOMEM;
    if (result == 0)
        result = local_init(&firefox.nodes, view->nodes.count);
    if (result == 0)
        result = local_init(&firefox.frames, firefox.all_frames.count);
    if (result == 0)
        result = local_init(&firefox.names, view->names.items.count);
    if (result == 0)
        result = local_init(&firefox.modules, view->profile->modules.count);
    if (result == 0)
        result = write_file(&firefox);
    local_done(&firefox.nodes);
    local_done(&firefox.frames);
    local_done(&firefox.names);
    local_done(&firefox.modules);
    vector_done(&firefox.all_frames);
    free(firefox.frame_of);
    free(firefox.lib_of);
    return result;
}
