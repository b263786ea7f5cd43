/* Every part of a record is a multiple of 8 bytes long, so all words in it are aligned. */
#include "record/ring_record.h"

#include <errno.h>
#include <string.h>

/* Takes the next part of a record, of which `bytes` count and the rest pads. NULL when it is not
 * there. */
static const void *take(struct ring_record *record, uint64_t bytes)
{
    if (bytes > SAMPLE_RING_RECORD_MOST || ((bytes + 7) & ~UINT64_C(7)) > record->body_bytes)
        return NULL;
    size_t whole = ((size_t)bytes + 7) & ~(size_t)7;
    const void *part = record->body;
    record->body += whole;
    record->body_bytes -= whole;
    return part;
}

static int decode_sample(struct ring_record *record)
{
    struct ring_record_sample *sample = &record->sample;
    struct sample_body body;
    const void *start = take(record, sizeof body);
    if (!start)
        return -EBADMSG;
    memcpy(&body, start, sizeof body);
    if (body.frame_count > SAMPLE_RING_RECORD_MOST / sizeof(uint64_t) ||
        body.kept_frames > SAMPLE_RING_RECORD_MOST / sizeof(uint64_t) ||
        body.kernel_words > SAMPLE_RING_RECORD_MOST / sizeof(uint64_t))
        return -EBADMSG;
    sample->weight_ns = body.weight_ns;
    sample->kernel_weight_ns = body.kernel_weight_ns;
    sample->kernel_words = (size_t)body.kernel_words;
    sample->kernel = take(record, body.kernel_words * sizeof(uint64_t));
    memcpy(sample->registers, body.registers, sizeof body.registers);
    sample->frame_count = (size_t)body.frame_count;
    sample->kept_frames = body.kept_frames;
    sample->deep_number = body.deep_number;
    sample->frames = take(record, body.frame_count * sizeof(uint64_t));
    sample->red_zone_bytes = record->flags & SAMPLE_RED_ZONE ? SAMPLE_RED_ZONE_BYTES : 0;
    const uint8_t *copy = take(record, record->extra);
    if (!sample->kernel || !sample->frames || !copy || record->extra < sample->red_zone_bytes)
        return -EBADMSG;
    sample->stack = copy + sample->red_zone_bytes;
    sample->stack_bytes = record->extra - sample->red_zone_bytes;
    return 0;
}

int ring_record_next_chain(const struct ring_record_sample *sample, size_t *position,
                           struct ring_record_chain *ret_chain)
{
    const volatile uint64_t *head = sample->kernel + *position;
    size_t left = sample->kernel_words - *position;
    if (left < 3)
        return 0;
    uint64_t count = head[1];
    if (count == 0 || count > left - 2)
        return 0;
    *ret_chain = (struct ring_record_chain){
        .time_ns = head[0], .addresses = sample->kernel + *position + 2, .count = (size_t)count};
    *position += 2 + (size_t)count;
    return 1;
}

static int decode_code(struct ring_record *record)
{
    struct ring_record_code *code = &record->code;
    struct sample_code head;
    const void *start = take(record, sizeof head);
    if (!start || record->extra == 0 || record->extra > INT32_MAX)
        return -EBADMSG;
    memcpy(&head, start, sizeof head);
    code->number = record->extra;
    code->first_line = head.first_line;
    code->name = take(record, code->name_length = head.name_bytes);
    code->file = take(record, code->file_length = head.file_bytes);
    code->lines = take(record, code->lines_length = head.lines_bytes);
    return code->name && code->file && code->lines ? 0 : -EBADMSG;
}

static int decode_text(struct ring_record *record)
{
    record->text.length = record->extra;
    record->text.bytes = take(record, record->extra);
    return record->text.bytes ? 0 : -EBADMSG;
}

int ring_record_decode(const struct sample_record *record, size_t most_bytes,
                       struct ring_record *ret_record)
{
    struct sample_record head;
    memcpy(&head, record, sizeof head);
    if (head.bytes < sizeof head || head.bytes > most_bytes)
        return -EBADMSG;
    *ret_record = (struct ring_record){.type = head.type,
                                       .flags = head.flags,
                                       .tid = head.tid,
                                       .time_ns = head.time_ns,
                                       .extra = head.extra,
                                       .body = (const uint8_t *)(record + 1),
                                       .body_bytes = head.bytes - sizeof head};
    switch (head.type) {
    case SAMPLE_RECORD_SAMPLE:
        return decode_sample(ret_record);
    case SAMPLE_RECORD_CODE:
        return decode_code(ret_record);
    case SAMPLE_RECORD_THREAD:
    case SAMPLE_RECORD_MAPS:
    case SAMPLE_RECORD_PROGRAM:
        return decode_text(ret_record);
    default:
        return -ENOTSUP;
    }
}
