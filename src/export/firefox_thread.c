/* A thread in the Firefox Profiler's format: a set of tables by column, which name each other's
 * rows.
 *
 *     samples  stack, time, weight, …         stringArray   all texts
 *     stackTable  prefix, frame, category     resourceTable libraries, by number of `libs`
 *     frameTable  func, line, category, …     funcTable     name, fileName, lineNumber, resource, …
 *
 * Each thread has only the rows that its samples use: they are collected first, numbered, and then
 * written column by column. */
#include "export/firefox.h"

#include <stdio.h>
#include <string.h>

enum { RESOURCE_LIBRARY = 1 };

static unsigned category_of(enum export_place place)
{
    switch (place) {
    case EXPORT_PLACE_PYTHON:
        return FIREFOX_PYTHON;
    case EXPORT_PLACE_INTERPRETER:
        return FIREFOX_INTERPRETER;
    case EXPORT_PLACE_KERNEL:
        return FIREFOX_KERNEL;
    case EXPORT_PLACE_GC:
        return FIREFOX_GC;
    case EXPORT_PLACE_UNKNOWN:
        return FIREFOX_OTHER;
    default:
        return FIREFOX_NATIVE;
    }
}

/* --- which rows ------------------------------------------------------------------------------ */

static int table_init(struct firefox_table *table, size_t count)
{
    *table = (struct firefox_table){.number_of = calloc(count + 1, sizeof *table->number_of),
                                    .owner = calloc(count + 1, sizeof *table->owner)};
    return table->number_of && table->owner ? 0 : -ENOMEM;
}

static void table_done(struct firefox_table *table)
{
    vector_done(&table->items);
    free(table->number_of);
    free(table->owner);
}

/* 1 when it is new to the thread, 0 when not, or -ENOMEM. */
static int table_add(struct firefox_table *table, uint32_t item, uint32_t thread)
{
    if (table->owner[item] == thread + 1)
        return 0;
    table->owner[item] = thread + 1;
    table->number_of[item] = (uint32_t)table->items.count;
    return vector_push(&table->items, item) < 0 ? -ENOMEM : 1;
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
    struct firefox_table *nodes = &firefox->nodes;
    nodes->items.count = firefox->frames.items.count = 0;
    firefox->names.items.count = firefox->modules.items.count = 0;
    for (uint32_t i = view->first_of_thread[thread]; i < view->first_of_thread[thread + 1]; i++) {
        uint32_t node = view->node_of[view->profile->samples.items[view->samples[i]].stack];
        int is_new = 1;
        for (; node && is_new == 1; node = view->nodes.items[node].parent)
            is_new = table_add(nodes, node, thread);
        if (is_new < 0)
            return is_new;
    }
    if (nodes->items.count)
        qsort(nodes->items.items, nodes->items.count, sizeof *nodes->items.items, compare_numbers);
    for (uint32_t i = 0; i < nodes->items.count; i++) {
        uint32_t node = nodes->items.items[i], name = view->nodes.items[node].name;
        nodes->number_of[node] = i;
        if (table_add(&firefox->frames, firefox->all_frames.of_node[node], thread) < 0 ||
            table_add(&firefox->names, name, thread) < 0 ||
            (!view->names.items.items[name].is_python &&
             table_add(&firefox->modules, view->names.items.items[name].module, thread) < 0))
            return -ENOMEM;
    }
    return 0;
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
        json_number(json, NULL, firefox->frames.number_of[firefox->all_frames.of_node[nodes[i]]]);
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
        uint32_t name = firefox->all_frames.items.items[firefox->frames.items.items[i]].name;
        json_number(json, NULL, category_of(view->names.items.items[name].place));
    }
    json_end_array(json);
    constant_column(firefox, "subcategory", count, "0");
    json_begin_array(json, "func");
    for (size_t i = 0; i < count; i++) {
        uint32_t name = firefox->all_frames.items.items[firefox->frames.items.items[i]].name;
        json_number(json, NULL, firefox->names.number_of[name]);
    }
    json_end_array(json);
    json_begin_array(json, "line");
    for (size_t i = 0; i < count; i++) {
        uint32_t line = firefox->all_frames.items.items[firefox->frames.items.items[i]].line;
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
    if (is_time && strncmp(export_event_name(view), "wall", 4) != 0) {
        /* Microseconds on a CPU since the sample before: what the timeline draws. */
        json_begin_array(json, "threadCPUDelta");
        for (uint32_t i = begin; i < end; i++)
            json_number(json, NULL, samples[view->samples[i]].period / 1000);
        json_end_array(json);
    }
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

/* --- a thread -------------------------------------------------------------------------------- */

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

int firefox_write_thread(struct firefox *firefox, uint32_t thread)
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

int firefox_init(struct firefox *firefox, const struct export_view *view, FILE *out)
{
    *firefox = (struct firefox){.view = view};
    json_init_compact(&firefox->json, out);
    firefox->lib_of = calloc(view->profile->modules.count + 1, sizeof *firefox->lib_of);
    if (!firefox->lib_of || export_frames_init(&firefox->all_frames, view) < 0 ||
        table_init(&firefox->nodes, view->nodes.count) < 0 ||
        table_init(&firefox->frames, firefox->all_frames.items.count) < 0 ||
        table_init(&firefox->names, view->names.items.count) < 0 ||
        table_init(&firefox->modules, view->profile->modules.count) < 0)
        return -ENOMEM;
    return 0;
}

void firefox_done(struct firefox *firefox)
{
    table_done(&firefox->nodes);
    table_done(&firefox->frames);
    table_done(&firefox->names);
    table_done(&firefox->modules);
    export_frames_done(&firefox->all_frames);
    free(firefox->lib_of);
}
