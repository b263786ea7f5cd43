/* Feature sections are small and each has a layout of its own. Texts in them are
 *
 *     u32 length | that many bytes, padded with NULs
 *
 * In pipe mode the same bytes come in HEADER_FEATURE records, and attributes, names and build-ids
 * in records of their own. Everything is copied: the sections are unaligned and few. */
#include "formats/perfdata_features.h"

#include <errno.h>
#include <string.h>

/* Texts are not longer than this in any file that perf wrote. */
enum { MOST_TEXT_BYTES = 1 << 20 };

enum { MISC_BUILD_ID_SIZE = 1 << 15, RECORD_HEADER_BYTES = sizeof(struct perf_event_header) };

/* What EVENT_UPDATE records can change. */
enum { UPDATE_NAME = 2 };

void perfdata_facts_done(struct perfdata_facts *facts)
{
    perfdata_events_done(&facts->events);
    vector_done(&facts->build_ids);
    arena_done(&facts->arena);
}

/* `info` shows what the vectors hold now. */
static void publish(struct perfdata_facts *facts)
{
    facts->info.events = facts->events.list.items;
    facts->info.event_count = facts->events.list.count;
    facts->info.build_ids = facts->build_ids.items;
    facts->info.build_id_count = facts->build_ids.count;
}

/* The bytes of a text and its length without the padding; NULL when it is not there. */
static const char *read_text(struct cursor *cursor, size_t *ret_length)
{
    uint32_t length = cursor_u32(cursor);
    const char *text = NULL;
    *ret_length = 0;
    if (length > MOST_TEXT_BYTES)
        cursor_fail(cursor, "a text is too long");
    else
        text = (const char *)cursor_bytes(cursor, length);
    if (text)
        *ret_length = strnlen(text, length);
    return text;
}

static int copy_text(struct perfdata_facts *facts, struct cursor *cursor, const char **ret_text)
{
    size_t length;
    const char *text = read_text(cursor, &length);
    if (!text)
        return -EBADMSG;
    const char *copy = arena_copy(&facts->arena, text, length);
    if (!copy)
        return -ENOMEM;
    *ret_text = copy;
    return 0;
}

static int read_command(struct perfdata_facts *facts, struct cursor *cursor)
{
    uint32_t count = cursor_u32(cursor);
    if (count > cursor_left(cursor) / sizeof(uint32_t))
        return -EBADMSG;
    const char **arguments = arena_alloc(&facts->arena, count * sizeof *arguments);
    if (!arguments)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        int error = copy_text(facts, cursor, &arguments[i]);
        if (error < 0)
            return error;
    }
    facts->info.arguments = arguments;
    facts->info.argument_count = count;
    return 0;
}

/* Names of events. Each belongs to the event that has its first id; without ids, their order
 * counts. */
static int read_event_names(struct perfdata_facts *facts, struct cursor *cursor)
{
    uint32_t count = cursor_u32(cursor);
    uint32_t attr_bytes = cursor_u32(cursor);
    for (uint32_t i = 0; i < count && cursor_ok(cursor); i++) {
        cursor_skip(cursor, attr_bytes);
        uint32_t id_count = cursor_u32(cursor);
        size_t length;
        const char *name = read_text(cursor, &length);
        size_t index = i;
        bool is_known = i < facts->events.list.count;
        if (id_count > cursor_left(cursor) / sizeof(uint64_t))
            return -EBADMSG;
        struct cursor ids = cursor_sub(cursor, id_count * sizeof(uint64_t));
        if (id_count)
            is_known = perfdata_events_find(&facts->events, cursor_u64(&ids), &index);
        if (cursor_ok(cursor) && is_known && length &&
            perfdata_events_rename(&facts->events, index, name, length) < 0)
            return -ENOMEM;
    }
    return cursor_ok(cursor) ? 0 : -EBADMSG;
}

/* A build-id, in a record or in the section, which is a list of records. */
static int read_build_id(struct perfdata_facts *facts, struct cursor record, uint16_t misc)
{
    struct perfdata_build_id build_id = {.misc = misc & PERF_RECORD_MISC_CPUMODE_MASK};
    build_id.pid = (int32_t)cursor_u32(&record);
    const uint8_t *id = cursor_bytes(&record, sizeof build_id.id);
    uint8_t id_length = cursor_u8(&record);
    cursor_skip(&record, 3);
    size_t length = cursor_left(&record);
    const char *path = (const char *)cursor_bytes(&record, length);
    if (!path || id_length > sizeof build_id.id)
        return -EBADMSG;
    build_id.id_length = misc & MISC_BUILD_ID_SIZE ? id_length : sizeof build_id.id;
    memcpy(build_id.id, id, sizeof build_id.id);
    build_id.path = arena_copy(&facts->arena, path, strnlen(path, length));
    if (!build_id.path)
        return -ENOMEM;
    return vector_push(&facts->build_ids, build_id);
}

static int read_build_ids(struct perfdata_facts *facts, struct cursor *cursor)
{
    while (cursor_left(cursor)) {
        cursor_u32(cursor); /* the type, 0 in old files */
        uint16_t misc = cursor_u16(cursor);
        uint16_t size = cursor_u16(cursor);
        if (!cursor_ok(cursor) || size < RECORD_HEADER_BYTES)
            return -EBADMSG;
        struct cursor record = cursor_sub(cursor, size - RECORD_HEADER_BYTES);
        int error = read_build_id(facts, record, misc);
        if (error < 0)
            return error;
    }
    return 0;
}

/* The sections that are a few numbers. */
static int read_numbers(struct perfdata_info *info, unsigned feature, struct cursor *cursor)
{
    switch (feature) {
    case PERFDATA_FEATURE_NRCPUS:
        info->cpus_available = cursor_u32(cursor);
        info->cpus_online = cursor_u32(cursor);
        break;
    case PERFDATA_FEATURE_TOTAL_MEM:
        info->memory_kilobytes = cursor_u64(cursor);
        break;
    case PERFDATA_FEATURE_SAMPLE_TIME:
        info->first_sample_ns = cursor_u64(cursor);
        info->last_sample_ns = cursor_u64(cursor);
        break;
    case PERFDATA_FEATURE_COMPRESSED:
        info->is_compressed = true;
        break;
    case PERFDATA_FEATURE_CLOCK_DATA:
        cursor_u32(cursor); /* version, always 1 so far */
        info->clock_id = cursor_u32(cursor);
        info->clock_wall_ns = cursor_u64(cursor);
        info->clock_ns = cursor_u64(cursor);
        info->has_clock = cursor_ok(cursor);
        break;
    default:
        break; /* unknown: only its bit is kept */
    }
    return cursor_ok(cursor) ? 0 : -EBADMSG;
}

static int read_feature(struct perfdata_facts *facts, unsigned feature, struct cursor *cursor)
{
    struct perfdata_info *info = &facts->info;
    switch (feature) {
    case PERFDATA_FEATURE_BUILD_ID:
        return read_build_ids(facts, cursor);
    case PERFDATA_FEATURE_HOSTNAME:
        return copy_text(facts, cursor, &info->hostname);
    case PERFDATA_FEATURE_OSRELEASE:
        return copy_text(facts, cursor, &info->os_release);
    case PERFDATA_FEATURE_VERSION:
        return copy_text(facts, cursor, &info->perf_version);
    case PERFDATA_FEATURE_ARCH:
        return copy_text(facts, cursor, &info->arch);
    case PERFDATA_FEATURE_CPUDESC:
        return copy_text(facts, cursor, &info->cpu_description);
    case PERFDATA_FEATURE_CPUID:
        return copy_text(facts, cursor, &info->cpu_id);
    case PERFDATA_FEATURE_CMDLINE:
        return read_command(facts, cursor);
    case PERFDATA_FEATURE_EVENT_DESC:
        return read_event_names(facts, cursor);
    default:
        return read_numbers(info, feature, cursor);
    }
}

int perfdata_facts_feature(struct perfdata_facts *facts, unsigned feature, struct cursor section)
{
    if (feature >= PERFDATA_FEATURES)
        return 0;
    facts->info.features[feature / 64] |= UINT64_C(1) << feature % 64;
    int error = read_feature(facts, feature, &section);
    publish(facts);
    return error;
}

static int read_attr_record(struct perfdata_facts *facts, struct cursor *cursor)
{
    struct cursor peek = *cursor;
    cursor_skip(&peek, offsetof(struct perf_event_attr, size));
    uint32_t attr_bytes = cursor_u32(&peek);
    struct cursor attr = cursor_sub(cursor, attr_bytes);
    if (!cursor_ok(&peek) || !cursor_ok(cursor))
        return -EBADMSG;
    return perfdata_events_add(&facts->events, attr, *cursor);
}

static int read_event_update(struct perfdata_facts *facts, struct cursor *cursor)
{
    uint64_t what = cursor_u64(cursor);
    uint64_t id = cursor_u64(cursor);
    size_t length = cursor_left(cursor);
    const char *name = (const char *)cursor_bytes(cursor, length);
    size_t index;
    if (!name)
        return -EBADMSG;
    if (what != UPDATE_NAME || !perfdata_events_find(&facts->events, id, &index))
        return 0;
    return perfdata_events_rename(&facts->events, index, name, strnlen(name, length));
}

int perfdata_facts_record(struct perfdata_facts *facts, const uint8_t *record, size_t length)
{
    struct perf_event_header header;
    struct cursor cursor;
    memcpy(&header, record, sizeof header);
    cursor_init(&cursor, NULL, record, length);
    cursor_skip(&cursor, sizeof header);
    int error = 0;
    switch (header.type) {
    case PERFDATA_HEADER_ATTR:
        error = read_attr_record(facts, &cursor);
        break;
    case PERFDATA_EVENT_UPDATE:
        error = read_event_update(facts, &cursor);
        break;
    case PERFDATA_BUILD_ID:
        error = read_build_id(facts, cursor, header.misc);
        break;
    case PERFDATA_HEADER_FEATURE: {
        uint64_t feature = cursor_u64(&cursor);
        if (cursor_ok(&cursor) && feature < PERFDATA_FEATURES)
            error = perfdata_facts_feature(facts, (unsigned)feature, cursor);
        break;
    }
    default:
        break;
    }
    publish(facts);
    return error;
}
