/* Fields stand in the order of the kernel, see perfdata_record.c. The header comes first and has
 * the size, so a record is encoded with size 0 and corrected at the end; one that turns out too
 * large is taken back. */
#include "formats/perfdata_encode.h"

#include <errno.h>
#include <string.h>

enum { ALIGNMENT = 8, SIZE_OFFSET = 6 };
enum { MISC_COMM_EXEC = 1 << 13, MISC_MMAP_DATA = 1 << 13, MISC_MMAP_BUILD_ID = 1 << 14 };

static void put_ids(struct writer *writer, int32_t pid, int32_t tid)
{
    writer_u32(writer, (uint32_t)pid);
    writer_u32(writer, (uint32_t)tid);
}

static uint64_t id_of(const struct perfdata_event *event, const struct perfdata_record *record)
{
    if (record->type == PERF_RECORD_SAMPLE && record->sample.id)
        return record->sample.id;
    return event->id_count ? event->ids[0] : 0;
}

static void put_stack(struct writer *writer, const struct perfdata_sample *sample)
{
    size_t room = sample->user_stack_room;
    size_t padding = (ALIGNMENT - room % ALIGNMENT) % ALIGNMENT;
    writer_u64(writer, room + padding);
    if (!room)
        return;
    writer_bytes(writer, sample->user_stack, room);
    for (size_t i = 0; i < padding; i++)
        writer_u8(writer, 0);
    writer_u64(writer, sample->user_stack_length);
}

static void put_sample(struct writer *writer, const struct perfdata_event *event,
                       const struct perfdata_record *record)
{
    const struct perfdata_sample *sample = &record->sample;
    uint64_t type = event->attr.sample_type;
    if (type & PERF_SAMPLE_IDENTIFIER)
        writer_u64(writer, id_of(event, record));
    if (type & PERF_SAMPLE_IP)
        writer_u64(writer, sample->ip_avma);
    if (type & PERF_SAMPLE_TID)
        put_ids(writer, record->pid, record->tid);
    if (type & PERF_SAMPLE_TIME)
        writer_u64(writer, record->time_ns);
    if (type & PERF_SAMPLE_ADDR)
        writer_u64(writer, sample->address);
    if (type & PERF_SAMPLE_ID)
        writer_u64(writer, id_of(event, record));
    if (type & PERF_SAMPLE_STREAM_ID)
        writer_u64(writer, 0); /* of the event on one processor: not known here */
    if (type & PERF_SAMPLE_CPU)
        writer_u64(writer, record->cpu);
    if (type & PERF_SAMPLE_PERIOD)
        writer_u64(writer, sample->period);
    if (type & PERF_SAMPLE_CALLCHAIN) {
        writer_u64(writer, sample->callchain_length);
        writer_bytes(writer, sample->callchain,
                     sample->callchain_length * sizeof *sample->callchain);
    }
    if (type & PERF_SAMPLE_REGS_USER) {
        writer_u64(writer, sample->user_regs_abi);
        if (sample->user_regs_abi != PERF_SAMPLE_REGS_ABI_NONE)
            writer_bytes(writer, sample->user_regs,
                         sizeof *sample->user_regs *
                             (size_t)__builtin_popcountll(event->attr.sample_regs_user));
    }
    if (type & PERF_SAMPLE_STACK_USER)
        put_stack(writer, sample);
}

static void put_text(struct writer *writer, const char *text, size_t length)
{
    size_t start = writer->length;
    writer_bytes(writer, text, length);
    writer_u8(writer, 0);
    writer_align(writer, start, ALIGNMENT);
}

static void put_mmap(struct writer *writer, const struct perfdata_record *record)
{
    const struct perfdata_mmap *mmap = &record->mmap;
    put_ids(writer, mmap->pid, mmap->tid);
    writer_u64(writer, mmap->start_avma);
    writer_u64(writer, mmap->length);
    writer_u64(writer, mmap->fileoff);
    if (record->type == PERF_RECORD_MMAP2) {
        if (mmap->build_id_size) {
            writer_u32(writer, mmap->build_id_size);
            writer_bytes(writer, mmap->build_id, sizeof mmap->build_id);
        } else {
            writer_u32(writer, mmap->device_major);
            writer_u32(writer, mmap->device_minor);
            writer_u64(writer, mmap->inode);
            writer_u64(writer, mmap->inode_generation);
        }
        writer_u32(writer, mmap->protection);
        writer_u32(writer, mmap->flags);
    }
    put_text(writer, mmap->path, mmap->path_length);
}

static void put_task(struct writer *writer, const struct perfdata_record *record)
{
    put_ids(writer, record->task.pid, record->task.parent_pid);
    put_ids(writer, record->task.tid, record->task.parent_tid);
    writer_u64(writer, record->time_ns);
}

static int put_body(struct writer *writer, const struct perfdata_event *event,
                    const struct perfdata_record *record)
{
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        put_sample(writer, event, record);
        return 0;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        put_mmap(writer, record);
        return 0;
    case PERF_RECORD_COMM:
        put_ids(writer, record->comm.pid, record->comm.tid);
        put_text(writer, record->comm.name, record->comm.name_length);
        return 0;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        put_task(writer, record);
        return 0;
    case PERF_RECORD_LOST:
        writer_u64(writer, record->lost.id);
        writer_u64(writer, record->lost.count);
        return 0;
    case PERF_RECORD_LOST_SAMPLES:
        writer_u64(writer, record->lost.count);
        return 0;
    case PERF_RECORD_THROTTLE:
    case PERF_RECORD_UNTHROTTLE:
        writer_u64(writer, record->time_ns);
        writer_u64(writer, record->throttle.id);
        writer_u64(writer, record->throttle.stream_id);
        return 0;
    default:
        return -EINVAL;
    }
}

static void put_trailer(struct writer *writer, const struct perfdata_event *event,
                        const struct perfdata_record *record)
{
    uint64_t type = event->attr.sample_type;
    if (type & PERF_SAMPLE_TID)
        put_ids(writer, record->pid, record->tid);
    if (type & PERF_SAMPLE_TIME)
        writer_u64(writer, record->time_ns);
    if (type & PERF_SAMPLE_ID)
        writer_u64(writer, id_of(event, record));
    if (type & PERF_SAMPLE_STREAM_ID)
        writer_u64(writer, 0); /* of the event on one processor: not known here */
    if (type & PERF_SAMPLE_CPU)
        writer_u64(writer, record->cpu);
    if (type & PERF_SAMPLE_IDENTIFIER)
        writer_u64(writer, id_of(event, record));
}

static uint16_t misc_of(const struct perfdata_record *record)
{
    uint16_t misc = record->misc;
    if (record->type == PERF_RECORD_COMM && record->comm.is_exec)
        misc |= MISC_COMM_EXEC;
    if (record->type == PERF_RECORD_MMAP || record->type == PERF_RECORD_MMAP2)
        misc =
            (uint16_t)((misc & ~MISC_MMAP_BUILD_ID) | (record->mmap.is_data ? MISC_MMAP_DATA : 0) |
                       (record->type == PERF_RECORD_MMAP2 && record->mmap.build_id_size
                            ? MISC_MMAP_BUILD_ID
                            : 0));
    return misc;
}

int perfdata_encode(struct writer *writer, const struct perfdata_event *event,
                    const struct perfdata_record *record)
{
    struct writer before = *writer;
    writer_u32(writer, record->type);
    writer_u16(writer, misc_of(record));
    writer_u16(writer, 0);
    int error = put_body(writer, event, record);
    if (event->attr.sample_id_all && record->type != PERF_RECORD_SAMPLE)
        put_trailer(writer, event, record);
    size_t size = writer->length - before.length;
    if (error == 0 && size > PERFDATA_ENCODED_MOST_BYTES)
        error = -EMSGSIZE;
    if (error < 0) {
        *writer = before;
        return error;
    }
    if (writer_fits(writer)) {
        uint16_t size16 = (uint16_t)size;
        memcpy(writer->data + before.length + SIZE_OFFSET, &size16, sizeof size16);
    }
    return 0;
}
