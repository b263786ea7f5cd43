/* The unwinding data of a jitdump is the .eh_frame of a tiny object file with a single function,
 * followed by its .eh_frame_hdr. Distances in it hold for that file only, so for an image of many
 * functions it is taken apart and put together again:
 *
 *     length | 0        | version, "zR", alignments, ... | instructions       CIE
 *     length | distance | start of code, size            | instructions       FDE
 *
 * The instructions speak of offsets from the start of the code, so they are taken over byte by byte
 * (but for DW_CFA_set_loc, which nobody uses). Pointers to a personality and to its data mean
 * nothing to an unwinder that only walks the stack, and are left out. */
#include "formats/jit_frame.h"

#include "base/cursor.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
    POINTER_PCREL_SDATA4 = 0x1b,
    POINTER_OMITTED = 0xff,
    ENTRY_ALIGNMENT = 8,
};

static uint64_t read_uleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor_ok(cursor); shift += 7) {
        uint8_t byte = cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return value;
}

static int64_t read_sleb(struct cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor_ok(cursor);) {
        uint8_t byte = cursor_u8(cursor);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            if ((byte & 0x40) && shift < 64)
                value |= ~(uint64_t)0 << shift;
            break;
        }
    }
    return (int64_t)value;
}

static void skip_pointer(struct cursor *cursor, uint8_t encoding)
{
    if (encoding == POINTER_OMITTED)
        return;
    switch (encoding & 0x0f) {
    case 0x01:
    case 0x09:
        read_uleb(cursor);
        break;
    case 0x02:
    case 0x0a:
        cursor_skip(cursor, 2);
        break;
    case 0x03:
    case 0x0b:
        cursor_skip(cursor, 4);
        break;
    case 0x00:
    case 0x04:
    case 0x0c:
        cursor_skip(cursor, 8);
        break;
    default:
        cursor_fail(cursor, "unknown encoding of a pointer");
    }
}

/* One entry of .eh_frame, without its length. */
struct entry {
    struct cursor body; /* behind the id */
    size_t offset;      /* of the length */
    uint32_t id;        /* 0: a CIE; otherwise the distance from here to the CIE */
};

static bool next_entry(struct cursor *cursor, struct entry *ret_entry)
{
    ret_entry->offset = cursor->offset;
    uint32_t length = cursor_u32(cursor);
    if (!cursor_ok(cursor) || length < 4 || length > cursor_left(cursor))
        return false;
    ret_entry->id = cursor_u32(cursor);
    const uint8_t *body = cursor_bytes(cursor, length - 4);
    cursor_init(&ret_entry->body, cursor->source, body, length - 4);
    return cursor_ok(cursor);
}

static void take_rest(struct cursor *cursor, const uint8_t **ret_bytes, size_t *ret_count)
{
    *ret_count = cursor_left(cursor);
    *ret_bytes = cursor_bytes(cursor, *ret_count);
}

/* What the letters of the augmentation announce; the data ends where its length says. */
static void read_augmentation(struct cursor *body, const char *letters, struct jit_frame *frame,
                              uint8_t *ret_encoding)
{
    uint64_t length = read_uleb(body);
    if (length > cursor_left(body)) {
        cursor_fail(body, "the augmentation data is cut short");
        return;
    }
    size_t end = body->offset + (size_t)length;
    for (; *letters && cursor_ok(body); letters++) {
        if (*letters == 'R')
            *ret_encoding = cursor_u8(body);
        else if (*letters == 'L')
            cursor_skip(body, 1);
        else if (*letters == 'P')
            skip_pointer(body, cursor_u8(body));
        else if (*letters == 'S')
            frame->is_signal_frame = true;
    }
    cursor_seek(body, end);
}

static int read_cie(struct entry *entry, struct jit_frame *frame, uint8_t *ret_encoding,
                    bool *ret_augmented)
{
    struct cursor *body = &entry->body;
    uint8_t version = cursor_u8(body);
    size_t length;
    const char *letters = cursor_string(body, &length);
    if (!letters || (version != 1 && version != 3) || (length && letters[0] != 'z'))
        return -EBADMSG;
    *ret_encoding = 0;
    *ret_augmented = length > 0;
    frame->code_alignment = read_uleb(body);
    frame->data_alignment = read_sleb(body);
    frame->return_register = version == 1 ? cursor_u8(body) : read_uleb(body);
    if (*ret_augmented)
        read_augmentation(body, letters + 1, frame, ret_encoding);
    take_rest(body, &frame->initial, &frame->initial_bytes);
    return cursor_ok(body) ? 0 : -EBADMSG;
}

static int read_fde(struct entry *entry, struct jit_frame *frame, uint8_t encoding, bool augmented)
{
    struct cursor *body = &entry->body;
    skip_pointer(body, encoding);        /* where the code starts */
    skip_pointer(body, encoding & 0x0f); /* its size */
    if (augmented) {
        uint64_t length = read_uleb(body);
        if (length > cursor_left(body))
            return -EBADMSG;
        cursor_skip(body, (size_t)length);
    }
    take_rest(body, &frame->instructions, &frame->instruction_bytes);
    return cursor_ok(body) ? 0 : -EBADMSG;
}

int jit_frame_parse(const struct jitdump_unwinding_info *info, struct jit_frame *ret_frame)
{
    if (info->size <= info->eh_frame_hdr_size)
        return -ENOENT;
    *ret_frame = (struct jit_frame){0};
    struct cursor cursor;
    cursor_init(&cursor, "unwinding data", info->data,
                (size_t)(info->size - info->eh_frame_hdr_size));
    struct entry entry;
    size_t cie_offset = 0;
    bool has_cie = false, augmented = false;
    uint8_t encoding = 0;
    while (next_entry(&cursor, &entry)) {
        if (entry.id == 0) {
            *ret_frame = (struct jit_frame){0};
            cie_offset = entry.offset;
            has_cie = read_cie(&entry, ret_frame, &encoding, &augmented) == 0;
        } else if (has_cie && entry.offset + 4 - entry.id == cie_offset) {
            return read_fde(&entry, ret_frame, encoding, augmented);
        }
    }
    return -EBADMSG;
}

/* CFA = frame pointer + 16; the caller's frame pointer at CFA - 16, the return address at CFA - 8.
 * In numbers of DWARF registers. */
static const uint8_t X86_64_FRAME_POINTER[] = {0x0c, 6, 16, 0x80 | 6, 2, 0x80 | 16, 1};
static const uint8_t AARCH64_FRAME_POINTER[] = {0x0c, 29, 16, 0x80 | 29, 2, 0x80 | 30, 1};

int jit_frame_by_frame_pointer(uint32_t elf_machine, struct jit_frame *ret_frame)
{
    *ret_frame = (struct jit_frame){.code_alignment = 1, .data_alignment = -8};
    switch (elf_machine) {
    case EM_X86_64:
        ret_frame->return_register = 16;
        ret_frame->initial = X86_64_FRAME_POINTER;
        ret_frame->initial_bytes = sizeof X86_64_FRAME_POINTER;
        return 0;
    case EM_AARCH64:
        ret_frame->return_register = 30;
        ret_frame->initial = AARCH64_FRAME_POINTER;
        ret_frame->initial_bytes = sizeof AARCH64_FRAME_POINTER;
        return 0;
    default:
        return -ENOTSUP;
    }
}

/* DW_CFA_nop up to the boundary, and the length into its place. */
static void end_entry(struct writer *writer, size_t start)
{
    writer_align(writer, start, ENTRY_ALIGNMENT);
    writer_patch_u32(writer, start, (uint32_t)(writer->length - start - 4));
}

void jit_frame_encode_cie(struct writer *writer, const struct jit_frame *frame)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    writer_u32(writer, 0);
    writer_u8(writer, 1);
    const char *letters = frame->is_signal_frame ? "zRS" : "zR";
    writer_bytes(writer, letters, strlen(letters) + 1);
    writer_uleb(writer, frame->code_alignment);
    writer_sleb(writer, frame->data_alignment);
    writer_u8(writer, (uint8_t)frame->return_register);
    writer_uleb(writer, 1);
    writer_u8(writer, POINTER_PCREL_SDATA4);
    writer_bytes(writer, frame->initial, frame->initial_bytes);
    end_entry(writer, start);
}

void jit_frame_encode_fde(struct writer *writer, const struct jit_frame *frame,
                          const struct jit_frame_place *place)
{
    size_t start = writer->length;
    writer_u32(writer, 0);
    writer_u32(writer, (uint32_t)(place->section + writer->length - place->cie));
    writer_u32(writer, (uint32_t)(place->code - (place->section + writer->length)));
    writer_u32(writer, (uint32_t)place->code_size);
    writer_uleb(writer, 0);
    writer_bytes(writer, frame->instructions, frame->instruction_bytes);
    end_entry(writer, start);
}
