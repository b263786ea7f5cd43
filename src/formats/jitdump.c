/* A jitdump is a header and a log of records. Each record has a prefix:
 *
 *     u32 type | u32 size of the whole record | u64 time stamp | ...
 *
 * There is no checksum and no marker between records, so the sizes are all that holds the file
 * together. Files are found damaged nevertheless: a writer was killed between two writes, a forked
 * child flushed its copy of a half-filled buffer into the middle, two threads wrote at once.
 *
 * A record is *consistent* when its fields fill its size, up to 7 bytes of padding. That alone is
 * no proof: the size may be damaged, or the end of the record may be missing and the next ones
 * stand in its place, since code may be any bytes. So a consistent record is returned when another
 * one (or the end of the file) stands right behind it; otherwise only when no record starts inside
 * it.
 *
 * Behind damage the reader looks for the next *plausible* record: a consistent one of a known type,
 * of the header's process. That is demanding enough that arbitrary bytes do not pass: a LOAD must
 * have a name that ends exactly where the code begins. If nothing plausible follows and the record
 * claims more than is left, the file ends inside it: truncated, not corrupt.
 *
 * These looks ahead may see the same bytes many times, once for each place that claims them. A file
 * made for the purpose would make that quadratic, so all of them together may look at SEARCH_FACTOR
 * times the length of the file. A file that is whole needs that length once; when the allowance is
 * used up, records are taken at their word, and what follows damage counts as damaged. */
#include "formats/jitdump.h"

#include "base/checked.h"

#include <byteswap.h>
#include <errno.h>
#include <string.h>

static const uint32_t MAGIC = 0x4a695444;         /* "JiTD" where the high byte comes first */
static const uint32_t MAGIC_SWAPPED = 0x4454694a; /* the same, written by the other byte order */

enum { HEADER_BYTES = 40, PREFIX_BYTES = 16, KNOWN_VERSION = 1 };

/* Records may be padded to a multiple of 8. */
enum { MOST_PADDING_BYTES = 7 };

enum { SEARCH_FACTOR = 16, SEARCH_MINIMUM_BYTES = 1 << 20 };

/* In a DEBUG_INFO record this file name stands for "the same as before". */
static const char SAME_FILE[] = "\xff";

bool jitdump_is(const void *data, size_t length)
{
    uint32_t magic;
    if (length < sizeof magic)
        return false;
    memcpy(&magic, data, sizeof magic);
    return magic == MAGIC || magic == MAGIC_SWAPPED;
}

int jitdump_open(struct jitdump_reader *reader, const char *source, const void *data, size_t length)
{
    *reader = (struct jitdump_reader){0};
    struct cursor *cursor = &reader->cursor;
    cursor_init(cursor, source, data, length);
    if (!checked_mul(length, SEARCH_FACTOR, &reader->search_bytes_left))
        reader->search_bytes_left = length;
    reader->search_bytes_left += SEARCH_MINIMUM_BYTES;
    if (!jitdump_is(data, length)) {
        reader->problem = "this is not a jitdump file (its magic number is missing)";
        return -EBADMSG;
    }
    cursor->swapped = cursor_u32(cursor) == MAGIC_SWAPPED;
    reader->header.version = cursor_u32(cursor);
    uint32_t header_bytes = cursor_u32(cursor);
    reader->header.elf_machine = cursor_u32(cursor);
    cursor_skip(cursor, 4);
    reader->header.pid = cursor_u32(cursor);
    reader->header.timestamp = cursor_u64(cursor);
    reader->header.flags = cursor_u64(cursor);
    if (!cursor_ok(cursor) || header_bytes > length) {
        reader->problem = "the file ends inside its header";
        return -ENODATA;
    }
    if (reader->header.version != KNOWN_VERSION) {
        reader->problem = "the version of the file is unknown (only version 1 is)";
        return -ENOTSUP;
    }
    if (header_bytes < HEADER_BYTES) {
        reader->problem = "the header states a size that is too small";
        return -EBADMSG;
    }
    cursor_seek(cursor, header_bytes);
    return 0;
}

static void read_load(struct cursor *body, struct jitdump_load *load)
{
    load->pid = cursor_u32(body);
    load->tid = cursor_u32(body);
    load->vma = cursor_u64(body);
    load->code_avma = cursor_u64(body);
    load->code_size = cursor_u64(body);
    load->code_index = cursor_u64(body);
    load->name = cursor_string(body, &load->name_length);
    if (load->code_size <= cursor_left(body))
        load->code = cursor_bytes(body, load->code_size);
    else if (cursor_left(body) > MOST_PADDING_BYTES)
        cursor_fail(body, "the size of the code does not agree with the size of the record");
    uint64_t end;
    if (!checked_add_u64(load->code_avma, load->code_size, &end))
        cursor_fail(body, "the code goes beyond the address space");
}

static void read_move(struct cursor *body, struct jitdump_move *move)
{
    move->pid = cursor_u32(body);
    move->tid = cursor_u32(body);
    move->vma = cursor_u64(body);
    move->old_avma = cursor_u64(body);
    move->new_avma = cursor_u64(body);
    move->code_size = cursor_u64(body);
    move->code_index = cursor_u64(body);
    uint64_t end;
    if (!checked_add_u64(move->new_avma, move->code_size, &end) ||
        !checked_add_u64(move->old_avma, move->code_size, &end))
        cursor_fail(body, "the code goes beyond the address space");
}

static void read_line(struct cursor *lines, struct jitdump_line *line)
{
    size_t length;
    line->avma = cursor_u64(lines);
    line->line = cursor_u32(lines);
    line->discriminator = cursor_u32(lines);
    line->file = cursor_string(lines, &length);
}

/* Walks the lines once, so that jitdump_next_line can't fail later. */
static void read_debug_info(struct cursor *body, struct jitdump_debug_info *info)
{
    info->code_avma = cursor_u64(body);
    info->count = cursor_u64(body);
    info->lines = *body;
    info->last_file = "";
    for (uint64_t i = 0; i < info->count && cursor_ok(body); i++) {
        struct jitdump_line line;
        read_line(body, &line);
    }
}

int jitdump_next_line(struct jitdump_debug_info *info, struct jitdump_line *ret_line)
{
    if (!info->count)
        return 0;
    info->count--;
    read_line(&info->lines, ret_line);
    if (strcmp(ret_line->file, SAME_FILE) == 0)
        ret_line->file = info->last_file;
    info->last_file = ret_line->file;
    return 1;
}

static void read_unwinding_info(struct cursor *body, struct jitdump_unwinding_info *info)
{
    info->size = cursor_u64(body);
    info->eh_frame_hdr_size = cursor_u64(body);
    info->mapped_size = cursor_u64(body);
    info->data = cursor_bytes(body, info->size);
    if (info->eh_frame_hdr_size > info->size)
        cursor_fail(body, "the unwinding data is smaller than a part of it");
}

/* Decodes what stands behind the prefix. NULL, or what is wrong. */
static const char *read_body(struct cursor body, struct jitdump_record *record)
{
    switch (record->type) {
    case JITDUMP_LOAD:
        read_load(&body, &record->load);
        break;
    case JITDUMP_MOVE:
        read_move(&body, &record->move);
        break;
    case JITDUMP_DEBUG_INFO:
        read_debug_info(&body, &record->debug_info);
        break;
    case JITDUMP_UNWINDING_INFO:
        read_unwinding_info(&body, &record->unwinding_info);
        break;
    case JITDUMP_CLOSE:
        break;
    default:
        return NULL; /* nobody knows what is in it */
    }
    if (cursor_left(&body) > MOST_PADDING_BYTES)
        cursor_fail(&body, "a record is larger than what is in it");
    return body.error;
}

/* Reads the record at `offset`, which is consistent when NULL is returned; otherwise what is wrong.
 * *ret_cut tells that the file is too short for what the record claims. */
static const char *read_record(const struct jitdump_reader *reader, size_t offset,
                               struct jitdump_record *record, bool *ret_cut)
{
    struct cursor cursor = reader->cursor;
    *record = (struct jitdump_record){.offset = offset};
    *ret_cut = false;
    cursor_seek(&cursor, offset);
    record->type = cursor_u32(&cursor);
    record->size = cursor_u32(&cursor);
    record->timestamp = cursor_u64(&cursor);
    if (!cursor_ok(&cursor)) {
        *ret_cut = true;
        return "the file ends inside the prefix of a record";
    }
    if (record->size < PREFIX_BYTES)
        return "a record states a size that is too small";
    struct cursor body = cursor_sub(&cursor, record->size - PREFIX_BYTES);
    if (!cursor_ok(&body)) {
        *ret_cut = true;
        return "a record states a size that is larger than the rest of the file";
    }
    return read_body(body, record);
}

/* read_record for looking ahead: false as well when the allowance for that is used up. */
static bool look_at(struct jitdump_reader *reader, size_t offset, struct jitdump_record *record)
{
    bool cut;
    if (!reader->search_bytes_left)
        return false;
    const char *problem = read_record(reader, offset, record, &cut);
    size_t looked_at = cut || record->size < PREFIX_BYTES ? 1 : record->size;
    reader->search_bytes_left -=
        looked_at < reader->search_bytes_left ? looked_at : reader->search_bytes_left;
    return !problem;
}

/* Whether a consistent record that no other one pointed at may be taken for one. */
static bool is_plausible(const struct jitdump_reader *reader, const struct jitdump_record *record)
{
    switch (record->type) {
    case JITDUMP_LOAD:
        return record->load.pid == reader->header.pid && record->load.name_length > 0;
    case JITDUMP_MOVE:
        return record->move.pid == reader->header.pid;
    case JITDUMP_DEBUG_INFO:
        return record->debug_info.count > 0;
    case JITDUMP_UNWINDING_INFO:
        return record->unwinding_info.size > 0;
    default:
        return false; /* too little in it to tell */
    }
}

static uint32_t peek_u32(const struct cursor *cursor, size_t offset)
{
    uint32_t value;
    memcpy(&value, cursor->data + offset, sizeof value);
    return cursor->swapped ? bswap_32(value) : value;
}

/* Two numbers tell of almost every place that no record starts there: a search looks at each byte
 * behind damage, and would be ten times slower without this. */
static bool may_start(const struct jitdump_reader *reader, size_t offset)
{
    size_t left = reader->cursor.length - offset;
    if (left < PREFIX_BYTES || peek_u32(&reader->cursor, offset) >= JITDUMP_TYPES)
        return false;
    uint32_t size = peek_u32(&reader->cursor, offset + 4);
    return size >= PREFIX_BYTES && size <= left;
}

/* The first offset in [offset, end) at which a plausible record starts, or `end`. */
static size_t find_record(struct jitdump_reader *reader, size_t offset, size_t end)
{
    struct jitdump_record record;
    for (; offset < end && reader->search_bytes_left; offset++) {
        if (!may_start(reader, offset))
            reader->search_bytes_left--;
        else if (look_at(reader, offset, &record) && is_plausible(reader, &record))
            return offset;
    }
    return end;
}

/* Whether the file ends at `offset`, or a consistent record of a known type stands there. */
static bool is_border(struct jitdump_reader *reader, size_t offset)
{
    struct jitdump_record record;
    return offset == reader->cursor.length ||
           (look_at(reader, offset, &record) && record.type < JITDUMP_TYPES);
}

int jitdump_next(struct jitdump_reader *reader, struct jitdump_record *ret_record)
{
    struct cursor *cursor = &reader->cursor;
    if (!cursor_left(cursor))
        return 0;
    size_t offset = cursor->offset, next;
    bool cut;
    const char *problem = read_record(reader, offset, ret_record, &cut);
    if (!problem) {
        size_t end = offset + ret_record->size;
        next = is_border(reader, end) ? end : find_record(reader, offset + 1, end);
        cursor_seek(cursor, next);
        if (next == end)
            return 1;
        problem = "a record is torn: another one starts inside it";
    } else {
        next = find_record(reader, offset + 1, cursor->length);
        cursor_seek(cursor, next);
    }
    reader->problem = problem;
    reader->problem_offset = offset;
    reader->skipped_bytes = next - offset;
    bool searched = reader->search_bytes_left > 0;
    return cut && searched && next == cursor->length ? -ENODATA : -EBADMSG;
}

void jitdump_encode_header(struct writer *writer, const struct jitdump_header *header)
{
    writer_u32(writer, MAGIC);
    writer_u32(writer, KNOWN_VERSION);
    writer_u32(writer, HEADER_BYTES);
    writer_u32(writer, header->elf_machine);
    writer_u32(writer, 0);
    writer_u32(writer, header->pid);
    writer_u64(writer, header->timestamp);
    writer_u64(writer, header->flags);
}

/* Starts a record and returns where; its size is filled in by end_record. */
static size_t begin_record(struct writer *writer, enum jitdump_type type, uint64_t timestamp)
{
    size_t start = writer->length;
    writer_u32(writer, type);
    writer_u32(writer, 0);
    writer_u64(writer, timestamp);
    return start;
}

/* A record of 4 GiB can't state its size: then the writer is made to not fit. */
static void end_record(struct writer *writer, size_t start)
{
    if (writer->length - start > UINT32_MAX)
        writer->length = SIZE_MAX;
    writer_patch_u32(writer, start + 4, (uint32_t)(writer->length - start));
}

void jitdump_encode_load(struct writer *writer, uint64_t timestamp, const struct jitdump_load *load)
{
    size_t start = begin_record(writer, JITDUMP_LOAD, timestamp);
    writer_u32(writer, load->pid);
    writer_u32(writer, load->tid);
    writer_u64(writer, load->vma);
    writer_u64(writer, load->code_avma);
    writer_u64(writer, load->code_size);
    writer_u64(writer, load->code_index);
    writer_bytes(writer, load->name, load->name_length);
    writer_u8(writer, 0);
    if (load->code)
        writer_bytes(writer, load->code, load->code_size);
    end_record(writer, start);
}

void jitdump_encode_move(struct writer *writer, uint64_t timestamp, const struct jitdump_move *move)
{
    size_t start = begin_record(writer, JITDUMP_MOVE, timestamp);
    writer_u32(writer, move->pid);
    writer_u32(writer, move->tid);
    writer_u64(writer, move->vma);
    writer_u64(writer, move->old_avma);
    writer_u64(writer, move->new_avma);
    writer_u64(writer, move->code_size);
    writer_u64(writer, move->code_index);
    end_record(writer, start);
}

void jitdump_encode_debug_info(struct writer *writer, uint64_t timestamp, uint64_t code_avma,
                               const struct jitdump_line *lines, size_t count)
{
    size_t start = begin_record(writer, JITDUMP_DEBUG_INFO, timestamp);
    writer_u64(writer, code_avma);
    writer_u64(writer, count);
    for (size_t i = 0; i < count; i++) {
        writer_u64(writer, lines[i].avma);
        writer_u32(writer, lines[i].line);
        writer_u32(writer, lines[i].discriminator);
        writer_bytes(writer, lines[i].file, strlen(lines[i].file) + 1);
    }
    writer_align(writer, start, 8);
    end_record(writer, start);
}

void jitdump_encode_unwinding_info(struct writer *writer, uint64_t timestamp,
                                   const struct jitdump_unwinding_info *info)
{
    size_t start = begin_record(writer, JITDUMP_UNWINDING_INFO, timestamp);
    writer_u64(writer, info->size);
    writer_u64(writer, info->eh_frame_hdr_size);
    writer_u64(writer, info->mapped_size);
    writer_bytes(writer, info->data, info->size);
    writer_align(writer, start, 8);
    end_record(writer, start);
}

void jitdump_encode_close(struct writer *writer, uint64_t timestamp)
{
    end_record(writer, begin_record(writer, JITDUMP_CLOSE, timestamp));
}
