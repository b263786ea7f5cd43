/* The processed format of the Firefox Profiler, for profiler.firefox.com and `samply load`: JSON
 * with facts about the recording, the libraries, and the tables of each thread (firefox_thread.c).
 *
 * It is version 49 of the format, in which each thread has its tables for itself; younger ones
 * share them. Viewers convert older versions to theirs, but know none that is younger. Times are in
 * milliseconds since the first sample. */
#include "export/firefox.h"

#include "export/export.h"

#include <string.h>

enum { GECKO_VERSION = 24, PROCESSED_VERSION = 49 };

static const struct {
    const char *name, *colour;
} CATEGORIES[FIREFOX_CATEGORIES] = {
    [FIREFOX_OTHER] = {"Other", "grey"},
    [FIREFOX_PYTHON] = {"Python", "yellow"},
    [FIREFOX_INTERPRETER] = {"Interpreter", "blue"},
    [FIREFOX_NATIVE] = {"Native", "green"},
    [FIREFOX_KERNEL] = {"Kernel", "orange"},
    [FIREFOX_GC] = {"GC", "purple"},
};

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
    for (size_t i = 0; i < FIREFOX_CATEGORIES; i++) {
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
            result = firefox_write_thread(firefox, i);
    json_end_array(json);
    json_end_object(json);
    return result;
}

int export_firefox(const struct export_view *view, FILE *out)
{
    struct firefox firefox;
    int result = firefox_init(&firefox, view, out);
    if (result == 0)
        result = write_file(&firefox);
    firefox_done(&firefox);
    return result;
}
