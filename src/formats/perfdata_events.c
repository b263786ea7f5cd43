/* A sample says nothing about its own layout: the bits of the event's `sample_type` do. Each bit
 * adds a field, in a fixed order, so that the first fields stand at places known in advance:
 *
 *     header | IDENTIFIER | IP | PID, TID | TIME | ADDR | ID | ...
 *
 * Other records keep the same facts in a trailer (`sample_id_all`), counted from the end because
 * what is before it varies in length:
 *
 *     header | ... | PID, TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER
 *
 * Where there are several events, the id in a record tells which one it belongs to. To find the id
 * before the event is known, all events must have it in the same place; perf sees to that, by
 * IDENTIFIER or by giving all events the same fields. So the first event's layout serves to find
 * the id. */
#include "formats/perfdata_events.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_BYTES = sizeof(struct perf_event_header), FIELD_BYTES = 8 };

/* attr.size of the first version of the structure. */
enum { FIRST_ATTR_BYTES = 64 };

void perfdata_events_done(struct perfdata_events *events)
{
    vector_done(&events->list);
    vector_done(&events->layouts);
    hashtable_done(&events->ids);
    arena_done(&events->arena);
}

static const char *hardware_name(uint64_t config)
{
    static const char *const names[] = {"cycles",
                                        "instructions",
                                        "cache-references",
                                        "cache-misses",
                                        "branches",
                                        "branch-misses",
                                        "bus-cycles",
                                        "stalled-cycles-frontend",
                                        "stalled-cycles-backend",
                                        "ref-cycles"};
    return config < sizeof names / sizeof *names ? names[config] : NULL;
}

static const char *software_name(uint64_t config)
{
    static const char *const names[] = {
        "cpu-clock",        "task-clock",   "page-faults",  "context-switches",
        "cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
        "emulation-faults", "dummy",        "bpf-output",   "cgroup-switches"};
    return config < sizeof names / sizeof *names ? names[config] : NULL;
}

static const char *name_of(struct arena *arena, const struct perf_event_attr *attr)
{
    const char *known = NULL;
    if (attr->type == PERF_TYPE_HARDWARE)
        known = hardware_name(attr->config);
    else if (attr->type == PERF_TYPE_SOFTWARE)
        known = software_name(attr->config);
    if (known)
        return known;
    char text[64];
    int length = snprintf(text, sizeof text, "event %u:0x%llx", attr->type, attr->config);
    return arena_copy(arena, text, (size_t)length);
}

/* Offset of the field behind those of `before` that the event has; NOWHERE without the field. */
static uint16_t sample_field(uint64_t type, uint64_t field, uint64_t before)
{
    if (!(type & field))
        return PERFDATA_NOWHERE;
    return (uint16_t)(HEADER_BYTES + FIELD_BYTES * __builtin_popcountll(type & before));
}

/* The same from the end: `behind` includes the field itself. */
static uint16_t trailer_field(uint64_t type, uint64_t field, uint64_t behind)
{
    if (!(type & field))
        return PERFDATA_NOWHERE;
    return (uint16_t)(FIELD_BYTES * __builtin_popcountll(type & behind));
}

static struct perfdata_layout layout_of(const struct perf_event_attr *attr)
{
    enum {
        BEFORE_TIME = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID,
        BEFORE_ID = BEFORE_TIME | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR,
        FROM_IDENTIFIER = PERF_SAMPLE_IDENTIFIER,
        FROM_ID = PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU | PERF_SAMPLE_IDENTIFIER,
        FROM_TIME = PERF_SAMPLE_TIME | FROM_ID,
        TRAILER = PERF_SAMPLE_TID | FROM_TIME
    };
    uint64_t type = attr->sample_type;
    bool has_identifier = type & PERF_SAMPLE_IDENTIFIER;
    struct perfdata_layout layout = {
        .sample_time = sample_field(type, PERF_SAMPLE_TIME, BEFORE_TIME),
        .sample_id = has_identifier ? HEADER_BYTES : sample_field(type, PERF_SAMPLE_ID, BEFORE_ID),
    };
    if (attr->sample_id_all) {
        layout.trailer_bytes = (uint16_t)(FIELD_BYTES * __builtin_popcountll(type & TRAILER));
        layout.trailer_time = trailer_field(type, PERF_SAMPLE_TIME, FROM_TIME);
        layout.trailer_id = has_identifier
                                ? trailer_field(type, PERF_SAMPLE_IDENTIFIER, FROM_IDENTIFIER)
                                : trailer_field(type, PERF_SAMPLE_ID, FROM_ID);
    }
    return layout;
}

/* The attribute as far as this program knows it; a longer one of a newer kernel is cut. */
static int read_attr(struct cursor bytes, struct perf_event_attr *attr)
{
    size_t length = cursor_left(&bytes);
    if (length < FIRST_ATTR_BYTES)
        return -EBADMSG;
    const uint8_t *data = cursor_bytes(&bytes, length);
    memset(attr, 0, sizeof *attr);
    memcpy(attr, data, length < sizeof *attr ? length : sizeof *attr);
    return 0;
}

static int add_ids(struct perfdata_events *events, struct cursor ids, struct perfdata_event *event)
{
    event->id_count = cursor_left(&ids) / sizeof *event->ids;
    uint64_t *copy = arena_alloc(&events->arena, event->id_count * sizeof *copy);
    if (!copy)
        return -ENOMEM;
    for (size_t i = 0; i < event->id_count; i++) {
        copy[i] = cursor_u64(&ids);
        if (hashtable_set(&events->ids, hash_u64(copy[i]), events->list.count) < 0)
            return -ENOMEM;
    }
    event->ids = copy;
    return 0;
}

int perfdata_events_add(struct perfdata_events *events, struct cursor attr, struct cursor ids)
{
    struct perfdata_event event = {0};
    if (read_attr(attr, &event.attr) < 0)
        return -EBADMSG;
    event.name = name_of(&events->arena, &event.attr);
    if (!event.name || add_ids(events, ids, &event) < 0 ||
        vector_reserve(&events->layouts, events->layouts.count + 1) < 0 ||
        vector_push(&events->list, event) < 0)
        return -ENOMEM;
    return vector_push(&events->layouts, layout_of(&event.attr));
}

int perfdata_events_rename(struct perfdata_events *events, size_t index, const char *name,
                           size_t length)
{
    const char *copy = arena_copy(&events->arena, name, length);
    if (!copy)
        return -ENOMEM;
    events->list.items[index].name = copy;
    return 0;
}

bool perfdata_events_find(const struct perfdata_events *events, uint64_t id, size_t *ret_index)
{
    uint64_t index = 0;
    if (id && !hashtable_get(&events->ids, hash_u64(id), &index))
        return false;
    *ret_index = (size_t)index;
    return index < events->list.count;
}

/* A field of a record; false when it is too short for it. */
static bool read_field(const uint8_t *record, uint16_t from_start, uint16_t from_end,
                       uint64_t *ret_value)
{
    struct perf_event_header header;
    memcpy(&header, record, sizeof header);
    bool is_sample = header.type == PERF_RECORD_SAMPLE;
    uint16_t offset = is_sample ? from_start : from_end;
    if (offset == PERFDATA_NOWHERE ||
        offset + (is_sample ? FIELD_BYTES : HEADER_BYTES) > header.size)
        return false;
    memcpy(ret_value, record + (is_sample ? offset : header.size - offset), sizeof *ret_value);
    return true;
}

bool perfdata_events_of(const struct perfdata_events *events, const uint8_t *record,
                        size_t *ret_index)
{
    *ret_index = 0;
    if (events->list.count < 2)
        return events->list.count == 1;
    const struct perfdata_layout *first = &events->layouts.items[0];
    uint64_t id;
    if (!read_field(record, first->sample_id, first->trailer_id, &id) ||
        perfdata_events_find(events, id, ret_index))
        return true;
    *ret_index = 0;
    return false;
}

uint64_t perfdata_events_time(const struct perfdata_events *events, const uint8_t *record)
{
    size_t index;
    if (!perfdata_events_of(events, record, &index) || !events->layouts.count)
        return 0;
    const struct perfdata_layout *layout = &events->layouts.items[index];
    uint64_t time_ns;
    if (!read_field(record, layout->sample_time, layout->trailer_time, &time_ns))
        return 0;
    return time_ns == UINT64_MAX ? 0 : time_ns;
}
