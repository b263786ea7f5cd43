/* A header in JSON says which columns follow, how they are encoded and how many bytes they are. So
 * all columns are measured first, then everything is written in one go: nothing is held in memory
 * but the header. */
#include "export/viewer_data.h"

#include "base/base64_file.h"
#include "base/cleanup.h"
#include "base/gzip_file.h"
#include "base/json.h"
#include "export/viewer_column.h"

#include <string.h>
#include <time.h>

static const char MAGIC[] = "PVV1";
static const uint64_t NS_PER_S = 1000000000;

enum { MOST_COLUMNS = 40, FORMAT_VERSION = 1 };

struct columns {
    struct viewer_column items[MOST_COLUMNS];
    size_t count;
    uint64_t text_bytes; /* of all strings: the column that is not made of numbers */
};

/* --- columns ---------------------------------------------------------------------------------- */

static void list_columns(const struct viewer_tables *t, struct columns *columns)
{
    const struct viewer_column list[] = {
        VIEWER_COLUMN("strings.length", &t->strings.texts, length),
        VIEWER_COLUMN("modules.name", &t->modules, name),
        VIEWER_COLUMN("modules.path", &t->modules, path),
        VIEWER_COLUMN("modules.kind", &t->modules, kind),
        VIEWER_COLUMN("functions.name", &t->functions, name),
        VIEWER_COLUMN("functions.module", &t->functions, module),
        VIEWER_COLUMN("functions.file", &t->functions, file),
        VIEWER_COLUMN("functions.line", &t->functions, line),
        VIEWER_COLUMN("functions.kind", &t->functions, kind),
        VIEWER_COLUMN("functions.place", &t->functions, place),
        VIEWER_COLUMN("frames.function", &t->frames, function),
        VIEWER_COLUMN("frames.line", &t->frames, line),
        VIEWER_COLUMN("frames.file", &t->frames, file),
        VIEWER_COLUMN("frames.inlined", &t->frames, inlined),
        VIEWER_COLUMN("stacks.parent", &t->stacks.nodes, parent),
        VIEWER_COLUMN("stacks.frame", &t->stacks.nodes, frame),
        VIEWER_COLUMN("folded.parent", &t->folded.nodes, parent),
        VIEWER_COLUMN("folded.frame", &t->folded.nodes, frame),
        {.name = "folded.of",
         .first = t->folded_of.items,
         .stride_bytes = sizeof *t->folded_of.items,
         .width_bytes = sizeof *t->folded_of.items,
         .count = t->folded_of.count},
        VIEWER_COLUMN("processes.pid", &t->processes, pid),
        VIEWER_COLUMN("processes.name", &t->processes, name),
        VIEWER_COLUMN("processes.parent", &t->processes, parent),
        VIEWER_COLUMN("threads.tid", &t->threads, tid),
        VIEWER_COLUMN("threads.process", &t->threads, process),
        VIEWER_COLUMN("threads.name", &t->threads, name),
        VIEWER_COLUMN("samples.time", &t->samples, time_ns),
        VIEWER_COLUMN("samples.stack", &t->samples, stack),
        VIEWER_COLUMN("samples.thread", &t->samples, thread),
        VIEWER_COLUMN("samples.weight", &t->samples, weight),
        VIEWER_COLUMN("samples.event", &t->samples, event),
        VIEWER_COLUMN("samples.end", &t->samples, end),
        VIEWER_COLUMN("samples.waiting", &t->samples, waiting),
        VIEWER_COLUMN("sources.file", &t->sources, file),
        VIEWER_COLUMN("sources.text", &t->sources, text),
    };
    _Static_assert(sizeof list <= sizeof columns->items, "MOST_COLUMNS is too small");
    columns->count = sizeof list / sizeof list[0];
    columns->text_bytes = 0;
    memcpy(columns->items, list, sizeof list);
    for (size_t i = 0; i < columns->count; i++)
        viewer_column_choose(&columns->items[i]);
    for (size_t i = 0; i < t->strings.texts.count; i++)
        columns->text_bytes += t->strings.texts.items[i].length;
}

static void write_columns(FILE *out, const struct viewer_tables *tables,
                          const struct columns *columns, viewer_progress *progress)
{
    uint64_t done = 0, total = columns->text_bytes;
    for (size_t i = 0; i < columns->count; i++)
        total += columns->items[i].bytes;
    for (size_t i = 0; i < columns->count; i++) {
        viewer_column_write(&columns->items[i], out);
        done += columns->items[i].bytes;
        if (progress)
            progress(NULL, done, total);
    }
    for (size_t i = 0; i < tables->strings.texts.count && !ferror(out); i++)
        fwrite(tables->strings.texts.items[i].bytes, 1, tables->strings.texts.items[i].length, out);
}

/* --- header ----------------------------------------------------------------------------------- */

/* What was recorded stands behind "--"; else the recorder's own command line has to do. */
static void put_command(struct json *json, const struct perfdata_info *info)
{
    char *command = NULL;
    size_t length = 0, first = 0;
    for (size_t i = 0; !first && i + 1 < info->argument_count; i++)
        if (strcmp(info->arguments[i], "--") == 0)
            first = i + 1;
    FILE *text = open_memstream(&command, &length);
    for (size_t i = first; text && i < info->argument_count; i++)
        fprintf(text, "%s%s", i > first ? " " : "", info->arguments[i]);
    if (text)
        fclose(text);
    json_string(json, "command", command ? command : "", command ? length : 0);
    free(command);
}

/* When the first sample was taken, where the recording knows both its clock and the wall's. */
static void put_time(struct json *json, const struct perfdata_info *info, uint64_t start_ns)
{
    char text[40] = "";
    if (info->has_clock && start_ns) {
        uint64_t wall_ns = info->clock_wall_ns + (start_ns - info->clock_ns); /* may go back */
        time_t seconds = (time_t)(wall_ns / NS_PER_S);
        struct tm parts;
        if (gmtime_r(&seconds, &parts))
            strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    }
    json_text(json, "recorded", text);
}

static const char *unit_of(const struct profile_event *event)
{
    bool is_time = event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_CPU_CLOCK ||
                                                         event->config == PERF_COUNT_SW_TASK_CLOCK);
    if (event->frequency_hz && !(event->sample_type & PERF_SAMPLE_PERIOD))
        return "samples"; /* nothing tells what a sample stands for */
    return is_time ? "ns" : "events";
}

static void put_events(struct json *json, const struct profile *profile)
{
    size_t first = 0;
    while (first + 1 < profile->events.count && !profile->events.items[first].samples)
        first++;
    json_begin_array(json, "events");
    for (size_t i = 0; i < profile->events.count; i++) {
        const struct profile_event *event = &profile->events.items[i];
        json_begin_object(json, NULL);
        json_text(json, "name", profile_text(profile, event->name));
        json_text(json, "unit", unit_of(event));
        json_number(json, "samples", event->samples);
        json_number(json, "weight", event->periods);
        json_end_object(json);
    }
    json_end_array(json);
    json_number(json, "event", first);
}

static void put_quality(struct json *json, const struct profile *profile)
{
    const struct profile_losses *losses = &profile->losses;
    char text[256];
    profile_damage(profile, text, sizeof text);
    json_begin_object(json, "quality");
    json_number(json, "samples", losses->samples);
    json_number(json, "complete", losses->complete);
    json_number(json, "truncated", losses->truncated);
    json_number(json, "broken", losses->broken);
    json_number(json, "without_stack", losses->without_stack);
    json_number(json, "lost_samples", losses->lost_samples);
    json_number(json, "lost_records", losses->lost_records);
    json_number(json, "throttles", losses->throttles);
    json_text(json, "damage", text);
    json_text(json, "trigger", profile_trigger(profile));
    json_end_object(json);
}

static void put_column(struct json *json, const char *name, uint64_t count, uint64_t bytes,
                       const char *encoding)
{
    json_begin_object(json, NULL);
    json_text(json, "name", name);
    json_number(json, "count", count);
    json_number(json, "bytes", bytes);
    json_text(json, "encoding", encoding);
    json_end_object(json);
}

static void put_header(struct json *json, const struct profile *profile,
                       const struct viewer_tables *tables, const struct columns *columns)
{
    const struct perfdata_info *info = &profile->info;
    json_begin_object(json, NULL);
    json_number(json, "version", FORMAT_VERSION);
    json_text(json, "program", "pitviper " PITVIPER_VERSION);
    put_command(json, info);
    json_text(json, "host", info->hostname ? info->hostname : "");
    json_text(json, "os", info->os_release ? info->os_release : "");
    put_time(json, info, tables->start_ns);
    json_begin_object(json, "clock");
    json_number(json, "start_ns", tables->start_ns);
    json_number(json, "end_ns", tables->end_ns);
    json_end_object(json);
    put_events(json, profile);
    put_quality(json, profile);
    json_begin_array(json, "columns");
    for (size_t i = 0; i < columns->count; i++) {
        const struct viewer_column *column = &columns->items[i];
        put_column(json, column->name, column->count, column->bytes,
                   viewer_encoding_name(column->encoding));
    }
    put_column(json, "strings.bytes", columns->text_bytes, columns->text_bytes, "bytes");
    json_end_array(json);
    json_end_object(json);
}

static int write_header(FILE *out, const struct profile *profile,
                        const struct viewer_tables *tables, const struct columns *columns)
{
    CLEANUP(cleanup_free) char *text = NULL;
    size_t length = 0;
    FILE *memory = open_memstream(&text, &length);
    if (!memory)
        return -ENOMEM;
    struct json json;
    json_init(&json, memory);
    put_header(&json, profile, tables, columns);
    bool has_failed = ferror(memory);
    if (fclose(memory) || has_failed || length > UINT32_MAX)
        return -ENOMEM;
    uint8_t size[4] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16),
                       (uint8_t)(length >> 24)};
    fputs(MAGIC, out);
    fwrite(size, 1, sizeof size, out);
    fwrite(text, 1, length, out);
    return 0;
}

int viewer_data_write(FILE *out, const struct profile *profile, const struct viewer_tables *tables,
                      viewer_progress *progress)
{
    struct columns columns;
    list_columns(tables, &columns);
    CLEANUP(cleanup_fclose) FILE *text = base64_file_open(out);
    CLEANUP(cleanup_fclose) FILE *packed = text ? gzip_file_open(text) : NULL; /* closed first */
    if (!packed)
        return -ENOMEM;
    int error = write_header(packed, profile, tables, &columns);
    if (error == 0)
        write_columns(packed, tables, &columns, progress);
    return error;
}
