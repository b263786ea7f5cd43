/* Each record starts with u32 type, u16 misc, u16 size of the whole; the sizes are all that holds
 * the file together. Two of perf's own records have more behind them than their size says:
 * AUXTRACE, whose payload can be gigabytes, and TRACING_DATA.
 *
 * A header is *familiar* when its type is in the range of those that exist and its size can be. A
 * record is taken at its word when the header behind it is familiar too, which costs next to
 * nothing. Otherwise it is decoded here; if its fields agree with its size, what is behind it is
 * damaged, else the record itself is.
 *
 * Behind damage the search goes on in steps of 8 bytes, to which everything is aligned (but not
 * behind compressed records and in pipe mode: there byte by byte), to a record that decodes and has
 * a familiar header behind it. A search may look at the same bytes several times, once for each
 * place that claims them; all of them together may look at as many bytes as perfdata.c allows, so
 * that no file can make it quadratic. */
#include "formats/perfdata_span.h"

#include "formats/perfdata_record.h"

#include <errno.h>
#include <string.h>

enum { HEADER_BYTES = sizeof(struct perf_event_header), ALIGNMENT = 8 };
enum { FIRST_OF_PERF = PERFDATA_HEADER_ATTR };

const uint8_t *perfdata_judge_align(const struct perfdata_judge *judge, const uint8_t *record,
                                    size_t length)
{
    if ((uintptr_t)record % ALIGNMENT == 0)
        return record;
    return memcpy(judge->aligned, record, length);
}

static bool can_have_size(const struct perf_event_header *header)
{
    return header->size >= HEADER_BYTES &&
           (header->size % ALIGNMENT == 0 || header->type >= FIRST_OF_PERF);
}

static bool is_familiar(const struct perf_event_header *header)
{
    return header->type > 0 && header->type < PERFDATA_TYPES && can_have_size(header);
}

static bool read_header(const struct perfdata_span *span, size_t position,
                        struct perf_event_header *ret_header)
{
    if (span->length - position < HEADER_BYTES)
        return false;
    memcpy(ret_header, span->data + position, sizeof *ret_header);
    return true;
}

/* The size of the record at `position` with what is behind it; SIZE_MAX when that is more than any
 * file could have. Only for records that are in the span themselves. */
static size_t extent_of(const struct perfdata_span *span, size_t position,
                        const struct perf_event_header *header)
{
    uint64_t behind = 0;
    uint32_t behind32;
    const uint8_t *field = span->data + position + HEADER_BYTES;
    if (header->type == PERFDATA_AUXTRACE && header->size >= HEADER_BYTES + sizeof behind) {
        memcpy(&behind, field, sizeof behind);
    } else if (header->type == PERFDATA_TRACING_DATA &&
               header->size >= HEADER_BYTES + sizeof behind32) {
        memcpy(&behind32, field, sizeof behind32);
        behind = behind32;
    }
    return behind > SIZE_MAX - header->size ? SIZE_MAX : header->size + behind;
}

/* Whether a record may start here, or the span ends here. */
static bool can_go_on(const struct perfdata_span *span, size_t position)
{
    struct perf_event_header header;
    if (!read_header(span, position, &header))
        return position == span->length || span->goes_on || span->may_be_cut;
    return is_familiar(&header);
}

static bool decodes(const struct perfdata_judge *judge, const uint8_t *record, size_t length)
{
    struct perfdata_record decoded;
    const char *problem;
    return perfdata_record_decode(judge->events, perfdata_judge_align(judge, record, length),
                                  length, &decoded, &problem) == 1;
}

/* Whether there is no doubt about a record at this position, in the middle of damage. */
static bool is_certain(const struct perfdata_span *span, struct perfdata_judge *judge,
                       size_t position)
{
    struct perf_event_header header;
    if (!read_header(span, position, &header) || !is_familiar(&header))
        return false;
    size_t left = span->length - position;
    if (header.size > left)
        return false;
    size_t extent = extent_of(span, position, &header);
    if (extent > left || !can_go_on(span, position + extent))
        return false;
    if (header.type == PERFDATA_FINISHED_ROUND)
        return header.size == HEADER_BYTES;
    if (header.type == PERFDATA_COMPRESSED || header.type == PERFDATA_COMPRESSED2)
        return position + extent < span->length;
    if (judge->search_bytes_left < header.size)
        return false;
    judge->search_bytes_left -= header.size;
    return perfdata_record_is_decoded(header.type) &&
           decodes(judge, span->data + position, header.size);
}

/* The next position with a certain record; the end of the span when there is none. */
static size_t find_record(const struct perfdata_span *span, struct perfdata_judge *judge,
                          size_t position)
{
    size_t step = judge->is_unaligned && !span->goes_on ? 1 : ALIGNMENT;
    while (span->length - position >= HEADER_BYTES) {
        if (is_certain(span, judge, position))
            return position;
        if (span->length - position < step)
            break;
        position += step;
    }
    return span->length;
}

static int skip_damage(struct perfdata_span *span, struct perfdata_judge *judge,
                       struct perfdata_raw *raw)
{
    size_t step = span->length - raw->position < ALIGNMENT ? span->length - raw->position
                  : judge->is_unaligned && !span->goes_on  ? 1
                                                           : ALIGNMENT;
    span->position = find_record(span, judge, raw->position + step);
    raw->extent = span->position - raw->position;
    return -EBADMSG;
}

/* The record goes beyond the end of the span. */
static int end_inside(struct perfdata_span *span, struct perfdata_judge *judge,
                      struct perfdata_raw *raw)
{
    raw->problem = "a record goes beyond the end of the data";
    raw->extent = span->length - raw->position;
    if (span->goes_on)
        return -ENODATA;
    if (!span->may_be_cut)
        return skip_damage(span, judge, raw);
    if (raw->extent < HEADER_BYTES ||
        find_record(span, judge, raw->position + ALIGNMENT) == span->length)
        return -ENODATA;
    return skip_damage(span, judge, raw);
}

int perfdata_span_next(struct perfdata_span *span, struct perfdata_judge *judge,
                       struct perfdata_raw *ret_raw)
{
    struct perf_event_header *header = &ret_raw->header;
    *ret_raw = (struct perfdata_raw){.position = span->position};
    if (span->position == span->length)
        return 0;
    if (!read_header(span, span->position, header))
        return end_inside(span, judge, ret_raw);
    size_t left = span->length - span->position;
    ret_raw->problem = "the header of a record can't be";
    if (!can_have_size(header))
        return skip_damage(span, judge, ret_raw);
    if (header->size > left)
        return is_familiar(header) ? end_inside(span, judge, ret_raw)
                                   : skip_damage(span, judge, ret_raw);
    ret_raw->extent = extent_of(span, span->position, header);
    if (ret_raw->extent > left)
        return end_inside(span, judge, ret_raw);
    ret_raw->record = span->data + span->position;
    ret_raw->problem = "a record leads nowhere, and its fields do not agree with its size";
    if (!can_go_on(span, span->position + ret_raw->extent) &&
        !(is_familiar(header) && decodes(judge, ret_raw->record, header->size)))
        return skip_damage(span, judge, ret_raw);
    span->position += ret_raw->extent;
    return 1;
}
