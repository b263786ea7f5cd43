/* Decoding one record. Which fields a sample has is told by its event (see perfdata_events.c); they
 * stand in the order of the functions read_sample_start and read_sample_rest below. A sample must
 * be used up by its fields, unless its event has fields that this program does not know: that is
 * what finds damaged ones. Other records may be longer than what is known of them: kernels append
 * fields.
 *
 * Numbers that are handed out as arrays stay where they are, so they must be aligned. The kernel
 * pads everything to 8 bytes; a record that breaks that is damaged. */
#include "formats/perfdata_record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { HEADER_BYTES = sizeof(struct perf_event_header) };

/* Of linux/perf_event.h, which may be older than the recording. */
enum {
    SAMPLE_WEIGHT_STRUCT = 1 << 24,
    SAMPLE_KNOWN = (1 << 25) - 1,
    READ_FORMAT_LOST = 1 << 4,
    BRANCH_HW_INDEX = 1 << 17,
    BRANCH_COUNTERS = 1 << 19,
    MISC_MMAP_DATA = 1 << 13,
    MISC_MMAP_BUILD_ID = 1 << 14,
    MISC_COMM_EXEC = 1 << 13
};

bool perfdata_record_is_decoded(uint32_t type)
{
    switch (type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_LOST:
    case PERF_RECORD_COMM:
    case PERF_RECORD_EXIT:
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
    case PERF_RECORD_FORK:
    case PERF_RECORD_SAMPLE:
    case PERF_RECORD_MMAP2:
    case PERF_RECORD_LOST_SAMPLES:
        return true;
    default:
        return false;
    }
}

static int32_t read_id(struct cursor *cursor)
{
    return (int32_t)cursor_u32(cursor);
}

/* `count` numbers of 8 bytes, in place. */
static const uint64_t *read_numbers(struct cursor *cursor, uint64_t count)
{
    if (count > cursor_left(cursor) / sizeof(uint64_t)) {
        cursor_fail(cursor, "a record is too short for the numbers it claims to have");
        return NULL;
    }
    const uint8_t *bytes = cursor_bytes(cursor, count * sizeof(uint64_t));
    if ((uintptr_t)bytes % sizeof(uint64_t)) {
        cursor_fail(cursor, "the fields of a record are not aligned");
        return NULL;
    }
    return (const uint64_t *)bytes;
}

/* What PERF_SAMPLE_READ adds: values of counters. */
static void skip_read_values(struct cursor *cursor, uint64_t format)
{
    uint64_t times = (format & PERF_FORMAT_TOTAL_TIME_ENABLED ? 1u : 0u) +
                     (format & PERF_FORMAT_TOTAL_TIME_RUNNING ? 1u : 0u);
    uint64_t each =
        1u + (format & PERF_FORMAT_ID ? 1u : 0u) + (format & READ_FORMAT_LOST ? 1u : 0u);
    uint64_t values = 1;
    if (format & PERF_FORMAT_GROUP)
        values = cursor_u64(cursor);
    if (values > cursor_left(cursor) / sizeof(uint64_t))
        cursor_fail(cursor, "a sample claims more counters than fit into it");
    else
        cursor_skip(cursor, (times + values * each) * sizeof(uint64_t));
}

static void skip_branches(struct cursor *cursor, uint64_t format)
{
    enum { BRANCH_NUMBERS = 3 };
    uint64_t count = cursor_u64(cursor);
    if (format & BRANCH_HW_INDEX)
        cursor_u64(cursor);
    if (count > cursor_left(cursor) / sizeof(uint64_t)) {
        cursor_fail(cursor, "a sample claims more branches than fit into it");
        return;
    }
    uint64_t numbers = BRANCH_NUMBERS + (format & BRANCH_COUNTERS ? 1u : 0u);
    cursor_skip(cursor, count * numbers * sizeof(uint64_t));
}

static void read_stack(struct cursor *cursor, struct perfdata_sample *sample)
{
    uint64_t room = cursor_u64(cursor);
    if (!room)
        return;
    sample->user_stack = cursor_bytes(cursor, room);
    uint64_t valid = cursor_u64(cursor);
    if (valid > room)
        cursor_fail(cursor, "a sample claims more stack than was copied");
    sample->user_stack_room = room;
    sample->user_stack_length = valid;
}

/* The fields of fixed size. */
static void read_sample_start(struct cursor *cursor, struct perfdata_record *record)
{
    struct perfdata_sample *sample = &record->sample;
    uint64_t type = sample->type;
    if (type & PERF_SAMPLE_IDENTIFIER)
        sample->id = cursor_u64(cursor);
    if (type & PERF_SAMPLE_IP)
        sample->ip_avma = cursor_u64(cursor);
    if (type & PERF_SAMPLE_TID) {
        record->pid = read_id(cursor);
        record->tid = read_id(cursor);
    }
    if (type & PERF_SAMPLE_TIME)
        record->time_ns = cursor_u64(cursor);
    if (type & PERF_SAMPLE_ADDR)
        sample->address = cursor_u64(cursor);
    if (type & PERF_SAMPLE_ID)
        sample->id = cursor_u64(cursor);
    if (type & PERF_SAMPLE_STREAM_ID)
        cursor_u64(cursor);
    if (type & PERF_SAMPLE_CPU) {
        record->cpu = cursor_u32(cursor);
        cursor_u32(cursor);
    }
    if (type & PERF_SAMPLE_PERIOD)
        sample->period = cursor_u64(cursor);
}

/* The fields up to the user stack, most of which vary in size. */
static void read_sample_stacks(struct cursor *cursor, const struct perf_event_attr *attr,
                               struct perfdata_sample *sample)
{
    uint64_t type = sample->type;
    if (type & PERF_SAMPLE_READ)
        skip_read_values(cursor, attr->read_format);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        uint64_t count = cursor_u64(cursor);
        sample->callchain = read_numbers(cursor, count);
        sample->callchain_length = count;
    }
    if (type & PERF_SAMPLE_RAW)
        cursor_skip(cursor, cursor_u32(cursor));
    if (type & PERF_SAMPLE_BRANCH_STACK)
        skip_branches(cursor, attr->branch_sample_type);
    if (type & PERF_SAMPLE_REGS_USER) {
        sample->user_regs_abi = cursor_u64(cursor);
        if (sample->user_regs_abi != PERF_SAMPLE_REGS_ABI_NONE) {
            sample->user_regs_mask = attr->sample_regs_user;
            sample->user_regs =
                read_numbers(cursor, (uint64_t)__builtin_popcountll(attr->sample_regs_user));
        }
    }
    if (type & PERF_SAMPLE_STACK_USER)
        read_stack(cursor, sample);
}

/* What stands behind the stack: nothing that is needed, but its size is checked. */
static void skip_sample_end(struct cursor *cursor, const struct perf_event_attr *attr)
{
    enum {
        BEFORE = PERF_SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_DATA_SRC |
                 PERF_SAMPLE_TRANSACTION,
        BEHIND = 1 << 19 | 1 << 21 | 1 << 22 | 1 << 23, /* PHYS_ADDR, CGROUP, page sizes */
        AUX = 1 << 20
    };
    uint64_t type = attr->sample_type;
    cursor_skip(cursor, sizeof(uint64_t) * (size_t)__builtin_popcountll(type & BEFORE));
    if (type & PERF_SAMPLE_REGS_INTR && cursor_u64(cursor) != PERF_SAMPLE_REGS_ABI_NONE)
        cursor_skip(cursor,
                    sizeof(uint64_t) * (size_t)__builtin_popcountll(attr->sample_regs_intr));
    cursor_skip(cursor, sizeof(uint64_t) * (size_t)__builtin_popcountll(type & BEHIND));
    if (type & AUX)
        cursor_skip(cursor, cursor_u64(cursor));
}

static void read_sample(struct cursor *cursor, const struct perf_event_attr *attr,
                        struct perfdata_record *record)
{
    record->sample.type = attr->sample_type;
    read_sample_start(cursor, record);
    read_sample_stacks(cursor, attr, &record->sample);
    skip_sample_end(cursor, attr);
    if (cursor_left(cursor) && !(attr->sample_type & ~(uint64_t)SAMPLE_KNOWN))
        cursor_fail(cursor, "a sample is larger than its fields");
    if (!(attr->sample_type & PERF_SAMPLE_PERIOD))
        record->sample.period = attr->sample_period; /* as perf does, a frequency too */
}

/* The fields that MMAP2 has between the address and the path. */
static void read_mmap2_fields(struct cursor *cursor, uint16_t misc, struct perfdata_mmap *mmap)
{
    if (misc & MISC_MMAP_BUILD_ID) {
        uint8_t size = cursor_u8(cursor);
        cursor_skip(cursor, 3);
        const uint8_t *id = cursor_bytes(cursor, sizeof mmap->build_id);
        if (size > sizeof mmap->build_id)
            cursor_fail(cursor, "a build-id is longer than build-ids can be");
        else if (id)
            memcpy(mmap->build_id, id, sizeof mmap->build_id);
        mmap->build_id_size = size;
    } else {
        mmap->device_major = cursor_u32(cursor);
        mmap->device_minor = cursor_u32(cursor);
        mmap->inode = cursor_u64(cursor);
        mmap->inode_generation = cursor_u64(cursor);
    }
    mmap->has_protection = true;
    mmap->protection = cursor_u32(cursor);
    mmap->flags = cursor_u32(cursor);
}

static void read_mmap(struct cursor *cursor, struct perfdata_record *record)
{
    struct perfdata_mmap *mmap = &record->mmap;
    mmap->pid = read_id(cursor);
    mmap->tid = read_id(cursor);
    mmap->start_avma = cursor_u64(cursor);
    mmap->length = cursor_u64(cursor);
    mmap->fileoff = cursor_u64(cursor);
    if (record->type == PERF_RECORD_MMAP2)
        read_mmap2_fields(cursor, record->misc, mmap);
    mmap->path = cursor_string(cursor, &mmap->path_length);
    mmap->is_data =
        record->misc & MISC_MMAP_DATA || (mmap->has_protection && !(mmap->protection & PROT_EXEC));
    /* The kernel's own mapping may be said to go on for ever. */
    if (mmap->length > UINT64_MAX - mmap->start_avma)
        mmap->length = UINT64_MAX - mmap->start_avma;
}

static void read_comm(struct cursor *cursor, struct perfdata_record *record)
{
    struct perfdata_comm *comm = &record->comm;
    comm->pid = read_id(cursor);
    comm->tid = read_id(cursor);
    comm->is_exec = record->misc & MISC_COMM_EXEC;
    comm->name = cursor_string(cursor, &comm->name_length);
}

static void read_task(struct cursor *cursor, struct perfdata_task *task)
{
    task->pid = read_id(cursor);
    task->parent_pid = read_id(cursor);
    task->tid = read_id(cursor);
    task->parent_tid = read_id(cursor);
    cursor_u64(cursor); /* the time, which the trailer has too */
}

static void read_body(struct cursor *cursor, struct perfdata_record *record)
{
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        read_mmap(cursor, record);
        break;
    case PERF_RECORD_COMM:
        read_comm(cursor, record);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        read_task(cursor, &record->task);
        break;
    case PERF_RECORD_LOST:
        record->lost.id = cursor_u64(cursor);
        record->lost.count = cursor_u64(cursor);
        break;
    case PERF_RECORD_LOST_SAMPLES:
        record->lost.count = cursor_u64(cursor);
        break;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        cursor_u64(cursor); /* the time */
        record->throttle.id = cursor_u64(cursor);
        record->throttle.stream_id = cursor_u64(cursor);
        break;
    default:
        break;
    }
}

static void read_trailer(struct cursor *cursor, uint64_t type, struct perfdata_record *record)
{
    uint64_t id = 0;
    if (type & PERF_SAMPLE_TID) {
        record->pid = read_id(cursor);
        record->tid = read_id(cursor);
    }
    if (type & PERF_SAMPLE_TIME)
        record->time_ns = cursor_u64(cursor);
    if (type & PERF_SAMPLE_ID)
        id = cursor_u64(cursor);
    if (type & PERF_SAMPLE_STREAM_ID)
        cursor_u64(cursor);
    if (type & PERF_SAMPLE_CPU) {
        record->cpu = cursor_u32(cursor);
        cursor_u32(cursor);
    }
    if (type & PERF_SAMPLE_IDENTIFIER)
        id = cursor_u64(cursor);
    if (record->type == PERF_RECORD_LOST_SAMPLES)
        record->lost.id = id;
}

/* A record that is no sample: a body, then the trailer at its end. */
static const char *read_other(struct cursor cursor, const struct perf_event_attr *attr,
                              size_t trailer_bytes, struct perfdata_record *record)
{
    if (cursor_left(&cursor) < trailer_bytes)
        return "a record is too short for its trailer";
    struct cursor body = cursor_sub(&cursor, cursor_left(&cursor) - trailer_bytes);
    read_body(&body, record);
    if (trailer_bytes)
        read_trailer(&cursor, attr->sample_type, record);
    return body.error;
}

int perfdata_record_decode(const struct perfdata_events *events, const uint8_t *bytes,
                           size_t length, struct perfdata_record *ret_record,
                           const char **ret_problem)
{
    static const struct perf_event_attr NO_ATTR;
    struct perf_event_header header;
    memcpy(&header, bytes, sizeof header);
    *ret_record = (struct perfdata_record){.type = header.type,
                                           .misc = header.misc,
                                           .size = (uint32_t)length,
                                           .cpu = UINT32_MAX,
                                           .pid = -1,
                                           .tid = -1};
    if (!perfdata_record_is_decoded(header.type))
        return 0;
    size_t event;
    bool has_event = perfdata_events_of(events, bytes, &event);
    bool is_sample = header.type == PERF_RECORD_SAMPLE;
    if (!has_event && is_sample)
        return -ENOENT;
    bool has_attr = events->list.count > 0;
    ret_record->event = (uint32_t)event;
    const struct perf_event_attr *attr = has_attr ? &events->list.items[event].attr : &NO_ATTR;
    struct cursor cursor;
    cursor_init(&cursor, NULL, bytes, length);
    cursor_skip(&cursor, HEADER_BYTES);
    if (is_sample) {
        read_sample(&cursor, attr, ret_record);
        *ret_problem = cursor.error;
    } else {
        size_t trailer_bytes = has_attr ? events->layouts.items[event].trailer_bytes : 0;
        *ret_problem = read_other(cursor, attr, trailer_bytes, ret_record);
    }
    if (ret_record->time_ns == UINT64_MAX)
        ret_record->time_ns = 0;
    return *ret_problem ? -EBADMSG : 1;
}
