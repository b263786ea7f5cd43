/* What `pitviper inspect` says about a perf.data file. One pass over all records; what is counted
 * needs memory per event, process and thread only. */
#include "base/cleanup.h"
#include "base/hashtable.h"
#include "base/json.h"
#include "base/text.h"
#include "cmd/command.h"
#include "cmd/inspect.h"
#include "formats/perfdata.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* In lower case, as JSON has them. */
static const char *const TYPE_NAMES[PERFDATA_TYPES] = {
    [PERF_RECORD_MMAP] = "mmap",
    [PERF_RECORD_LOST] = "lost",
    [PERF_RECORD_COMM] = "comm",
    [PERF_RECORD_EXIT] = "exit",
    [PERF_RECORD_THROTTLE] = "throttle",
    [PERF_RECORD_UNTHROTTLE] = "unthrottle",
    [PERF_RECORD_FORK] = "fork",
    [PERF_RECORD_READ] = "read",
    [PERF_RECORD_SAMPLE] = "sample",
    [PERF_RECORD_MMAP2] = "mmap2",
    [PERF_RECORD_AUX] = "aux",
    [PERF_RECORD_ITRACE_START] = "itrace_start",
    [PERF_RECORD_LOST_SAMPLES] = "lost_samples",
    [PERF_RECORD_SWITCH] = "switch",
    [PERF_RECORD_SWITCH_CPU_WIDE] = "switch_cpu_wide",
    [PERF_RECORD_NAMESPACES] = "namespaces",
    [PERF_RECORD_KSYMBOL] = "ksymbol",
    [PERF_RECORD_BPF_EVENT] = "bpf_event",
    [PERF_RECORD_CGROUP] = "cgroup",
    [PERF_RECORD_TEXT_POKE] = "text_poke",
    [PERFDATA_HEADER_ATTR] = "header_attr",
    [PERFDATA_EVENT_TYPE] = "event_type",
    [PERFDATA_TRACING_DATA] = "tracing_data",
    [PERFDATA_BUILD_ID] = "build_id",
    [PERFDATA_FINISHED_ROUND] = "finished_round",
    [PERFDATA_ID_INDEX] = "id_index",
    [PERFDATA_AUXTRACE_INFO] = "auxtrace_info",
    [PERFDATA_AUXTRACE] = "auxtrace",
    [PERFDATA_AUXTRACE_ERROR] = "auxtrace_error",
    [PERFDATA_THREAD_MAP] = "thread_map",
    [PERFDATA_CPU_MAP] = "cpu_map",
    [PERFDATA_STAT_CONFIG] = "stat_config",
    [PERFDATA_STAT] = "stat",
    [PERFDATA_STAT_ROUND] = "stat_round",
    [PERFDATA_EVENT_UPDATE] = "event_update",
    [PERFDATA_TIME_CONV] = "time_conv",
    [PERFDATA_HEADER_FEATURE] = "feature",
    [PERFDATA_COMPRESSED] = "compressed",
    [PERFDATA_FINISHED_INIT] = "finished_init",
    [PERFDATA_COMPRESSED2] = "compressed2",
};

struct event_totals {
    uint64_t samples;
    uint64_t period;
};

struct totals {
    struct event_totals *events; /* owned; as many as the recording has */
    size_t event_count;
    struct hashtable processes; /* of samples */
    struct hashtable threads;
    uint64_t first_ns; /* of samples */
    uint64_t last_ns;
    uint64_t lost_records;
    uint64_t lost_samples;
};

static void totals_done(struct totals *totals)
{
    free(totals->events);
    hashtable_done(&totals->processes);
    hashtable_done(&totals->threads);
}

static int count_sample(struct totals *totals, const struct perfdata_record *record)
{
    if (record->event < totals->event_count) {
        totals->events[record->event].samples++;
        totals->events[record->event].period += record->sample.period;
    }
    if (!totals->first_ns || record->time_ns < totals->first_ns)
        totals->first_ns = record->time_ns;
    if (record->time_ns > totals->last_ns)
        totals->last_ns = record->time_ns;
    if (hashtable_set(&totals->processes, hash_u64((uint32_t)record->pid), 0) < 0)
        return -ENOMEM;
    uint64_t thread = (uint64_t)(uint32_t)record->pid << 32 | (uint32_t)record->tid;
    return hashtable_set(&totals->threads, hash_u64(thread), 0);
}

static int count_records(struct perfdata_reader *reader, struct totals *totals)
{
    struct perfdata_record record;
    int result;
    totals->event_count = perfdata_info(reader)->event_count;
    totals->events = calloc(totals->event_count + 1, sizeof *totals->events);
    if (!totals->events)
        return -ENOMEM;
    while ((result = perfdata_next(reader, &record)) == 1) {
        if (record.type == PERF_RECORD_SAMPLE && count_sample(totals, &record) < 0)
            return -ENOMEM;
        if (record.type == PERF_RECORD_LOST)
            totals->lost_records += record.lost.count;
        else if (record.type == PERF_RECORD_LOST_SAMPLES)
            totals->lost_samples += record.lost.count;
    }
    return result;
}

/* --- text ---------------------------------------------------------------------------------- */

static void print_text_row(const char *label, const char *text)
{
    if (!text)
        return;
    inspect_label(label);
    text_print(stdout, text, strlen(text), INSPECT_NAME_LIMIT);
    putchar('\n');
}

static void print_header(const struct perfdata_info *info)
{
    inspect_label("written by");
    printf("perf ");
    if (info->perf_version)
        text_print(stdout, info->perf_version, strlen(info->perf_version), INSPECT_NAME_LIMIT);
    else
        printf("of unknown version");
    printf("%s%s\n", info->is_pipe_mode ? ", to a pipe" : "",
           info->is_compressed ? ", compressed" : "");
    if (!info->is_finished) {
        inspect_label("");
        puts("never finished: perf was killed or is still running");
    }
    print_text_row("host", info->hostname);
    print_text_row("kernel", info->os_release);
    print_text_row("machine", info->cpu_description ? info->cpu_description : info->arch);
    if (info->argument_count) {
        inspect_label("command");
        for (size_t i = 0; i < info->argument_count; i++) {
            printf("%s", i ? " " : "");
            text_print(stdout, info->arguments[i], strlen(info->arguments[i]), INSPECT_NAME_LIMIT);
        }
        putchar('\n');
    }
}

static void print_records(const struct perfdata_stats *stats)
{
    const char *separator = "";
    char number[TEXT_NUMBER_BYTES];
    inspect_label("records");
    for (size_t type = 0; type < PERFDATA_TYPES; type++) {
        if (!stats->records[type])
            continue;
        printf("%s%s ", separator, text_number(stats->records[type], number));
        if (TYPE_NAMES[type])
            printf("%s", TYPE_NAMES[type]);
        else
            printf("of type %zu", type);
        separator = ", ";
    }
    if (stats->other_records)
        printf("%s%s of unknown type", separator, text_number(stats->other_records, number));
    puts(*separator || stats->other_records ? "" : "none");
}

static void print_text(const struct perfdata_reader *reader, const struct totals *totals)
{
    const struct perfdata_info *info = perfdata_info(reader);
    const struct perfdata_stats *stats = perfdata_stats(reader);
    char number[TEXT_NUMBER_BYTES];
    print_header(info);
    for (size_t i = 0; i < totals->event_count; i++) {
        inspect_label(i ? "" : "events");
        text_print(stdout, info->events[i].name, strlen(info->events[i].name), INSPECT_NAME_LIMIT);
        printf(": ");
        inspect_count(totals->events[i].samples, "sample", "samples");
        printf(", period %s in all\n", text_number(totals->events[i].period, number));
    }
    inspect_label("samples of");
    inspect_count(totals->processes.count, "process", "processes");
    printf(", ");
    inspect_count(totals->threads.count, "thread", "threads");
    putchar('\n');
    inspect_label("time");
    printf("%.3f ms from the first sample to the last\n",
           (double)(totals->last_ns - totals->first_ns) / 1e6);
    print_records(stats);
    inspect_label("lost");
    inspect_count(totals->lost_samples, "sample", "samples");
    printf(", ");
    inspect_count(totals->lost_records, "record", "records");
    putchar('\n');
    if (stats->unknown_events) {
        inspect_label("");
        inspect_count(stats->unknown_events, "sample", "samples");
        puts(" of events that the file does not describe");
    }
}

/* --- JSON ---------------------------------------------------------------------------------- */

static void json_header(struct json *json, const struct perfdata_info *info)
{
    json_text(json, "mode", info->is_pipe_mode ? "pipe" : "file");
    json_bool(json, "finished", info->is_finished);
    json_bool(json, "compressed", info->is_compressed);
    json_text(json, "hostname", info->hostname);
    json_text(json, "os_release", info->os_release);
    json_text(json, "perf_version", info->perf_version);
    json_text(json, "arch", info->arch);
    json_number(json, "cpus_online", info->cpus_online);
    json_begin_array(json, "command");
    for (size_t i = 0; i < info->argument_count; i++)
        json_text(json, NULL, info->arguments[i]);
    json_end_array(json);
    json_number(json, "build_ids", info->build_id_count);
}

static void json_events(struct json *json, const struct perfdata_info *info,
                        const struct totals *totals)
{
    json_begin_array(json, "events");
    for (size_t i = 0; i < totals->event_count; i++) {
        json_begin_object(json, NULL);
        json_text(json, "name", info->events[i].name);
        json_number(json, "samples", totals->events[i].samples);
        json_number(json, "period", totals->events[i].period);
        json_end_object(json);
    }
    json_end_array(json);
}

static void json_records(struct json *json, const struct perfdata_stats *stats)
{
    uint64_t unknown = stats->other_records;
    json_begin_object(json, "records");
    for (size_t type = 0; type < PERFDATA_TYPES; type++)
        if (!TYPE_NAMES[type])
            unknown += stats->records[type];
        else if (stats->records[type])
            json_number(json, TYPE_NAMES[type], stats->records[type]);
    json_number(json, "unknown", unknown);
    json_end_object(json);
}

static void print_json(struct json *json, const struct perfdata_reader *reader,
                       const struct totals *totals)
{
    const struct perfdata_info *info = perfdata_info(reader);
    const struct perfdata_stats *stats = perfdata_stats(reader);
    json_header(json, info);
    json_events(json, info, totals);
    json_number(json, "processes", totals->processes.count);
    json_number(json, "threads", totals->threads.count);
    json_number(json, "first_sample_ns", totals->first_ns);
    json_number(json, "last_sample_ns", totals->last_ns);
    json_records(json, stats);
    json_number(json, "lost_records", totals->lost_records);
    json_number(json, "lost_samples", totals->lost_samples);
    json_number(json, "samples_of_unknown_events", stats->unknown_events);
    json_number(json, "out_of_order", stats->unordered);
    json_number(json, "private_bytes", info->private_length);
}

static int show(struct inspect *inspect, struct perfdata_reader *reader,
                const struct totals *totals)
{
    inspect->file.length = perfdata_info(reader)->bytes;
    if (!inspect->json) {
        inspect_title(inspect, "perf.data");
        print_text(reader, totals);
        return inspect_damage(inspect, NULL, perfdata_damage(reader));
    }
    struct json json;
    json_init(&json, stdout);
    json_begin_object(&json, NULL);
    json_text(&json, "file", inspect->path);
    json_text(&json, "format", "perfdata");
    json_number(&json, "bytes", inspect->file.length);
    print_json(&json, reader, totals);
    int status = inspect_damage(inspect, &json, perfdata_damage(reader));
    json_end_object(&json);
    return status;
}

int inspect_perfdata(const struct inspect *inspect)
{
    struct perfdata_reader *reader;
    const char *problem;
    const struct file *file = &inspect->file;
    int error = file->data ? perfdata_open_memory(inspect->path, file->data, file->length, &problem,
                                                  &reader)
                           : perfdata_open(inspect->path, &problem, &reader);
    if (error < 0) {
        command_error(&cmd_inspect, "%s: %s", inspect->path, problem);
        return STATUS_FAILED;
    }
    struct inspect copy = *inspect;
    CLEANUP(totals_done) struct totals totals = {0};
    int status = STATUS_FAILED;
    if (count_records(reader, &totals) < 0)
        command_error(&cmd_inspect, "%s: memory is short", inspect->path);
    else
        status = show(&copy, reader, &totals);
    perfdata_close(reader);
    return status;
}
