/* The unwinding data of a jitdump is the .eh_frame of a tiny object file with a single function,
 * followed by its .eh_frame_hdr. Distances in it hold for that file only, so for an image of many
 * functions it is taken apart and put together again:
 *
 *     code, up to a multiple of 8                                             the tiny file
 *     length | 0        | version, "zR", alignments, ... | instructions       CIE
 *     length | distance | start of code, size            | instructions       FDE
 *     length | distance | start of code, size            | instructions       FDE of another part
 *
 * The instructions speak of offsets from the start of the code, so they are taken over byte by byte
 * (but for DW_CFA_set_loc, which nobody uses). Pointers to a personality and to its data mean
 * nothing to an unwinder that only walks the stack, and are left out.
 *
 * Most functions have one FDE, and writers are careless with its addresses since nobody needs them:
 * it is for all of the code. Of several, each is for its own part; those that are for no code of
 * the function, or for code that has one already, are left out. */
#include "formats/jit_frame.h"

#include "base/cursor.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

enum {
    POINTER_PCREL_SDATA4 = 0x1b,
    POINTER_OMITTED = 0xff,
    POINTER_FORMAT = 0x0f,
    POINTER_RELATION = 0x70,
    POINTER_PCREL = 0x10,
    ENTRY_ALIGNMENT = 8,
    ENTRY_ID_BYTES = 8, /* what stands before the body: length and id */
    MOST_LETTERS = 8,   /* of an augmentation */
};

/* A pointer in one of the encodings of .eh_frame, without what it is relative to. */
static uint64_t read_pointer(struct cursor *cursor, uint8_t encoding)
{
    if (encoding == POINTER_OMITTED)
        return 0;
    switch (encoding & POINTER_FORMAT) {
    case 0x01:
        return cursor_uleb128(cursor);
    case 0x09:
        return (uint64_t)cursor_sleb128(cursor);
    case 0x02:
        return cursor_u16(cursor);
    case 0x0a:
        return (uint64_t)(int16_t)cursor_u16(cursor);
    case 0x03:
        return cursor_u32(cursor);
    case 0x0b:
        return (uint64_t)(int32_t)cursor_u32(cursor);
    case 0x00:
    case 0x04:
    case 0x0c:
        return cursor_u64(cursor);
    default:
        cursor_fail(cursor, "unknown encoding of a pointer");
        return 0;
    }
}

struct cie {
    struct jit_frame frame; /* what its FDEs share */
    uint8_t encoding;       /* of their pointers */
    bool is_augmented;      /* they have a length before their instructions */
};

struct reader {
    struct cursor cursor; /* at the start of the data */
    uint64_t section;     /* offset of the data from the start of the function */
    bool has_cie;
    uint64_t cie_offset; /* of `cie` in the data */
    struct cie cie;      /* the one that was asked for last */
};

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
    uint64_t length = cursor_uleb128(body);
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
            read_pointer(body, cursor_u8(body));
        else if (*letters == 'S')
            frame->is_signal_frame = true;
    }
    cursor_seek(body, end);
}

static int read_cie(struct cursor *body, struct cie *ret_cie)
{
    struct jit_frame *frame = &ret_cie->frame;
    *ret_cie = (struct cie){0};
    uint8_t version = cursor_u8(body);
    const char *letters = (const char *)body->data + body->offset;
    size_t length =
        strnlen(letters, cursor_left(body) < MOST_LETTERS ? cursor_left(body) : MOST_LETTERS);
    cursor_skip(body, length);
    if (cursor_u8(body) != 0 || (version != 1 && version != 3) || (length && letters[0] != 'z'))
        return -EBADMSG;
    ret_cie->is_augmented = length > 0;
    frame->code_alignment = cursor_uleb128(body);
    frame->data_alignment = cursor_sleb128(body);
    frame->return_register = version == 1 ? cursor_u8(body) : cursor_uleb128(body);
    if (ret_cie->is_augmented)
        read_augmentation(body, letters + 1, frame, &ret_cie->encoding);
    take_rest(body, &frame->initial, &frame->initial_bytes);
    return cursor_ok(body) ? 0 : -EBADMSG;
}

/* Where the code of an FDE starts, as offset from the start of the function, is known when it is
 * relative to the place where it is said. Otherwise the frame is for no code. */
static int read_fde(struct reader *reader, struct entry *entry, struct jit_frame *ret_frame)
{
    struct cursor *body = &entry->body;
    uint8_t encoding = reader->cie.encoding;
    uint64_t place = reader->section + entry->offset + ENTRY_ID_BYTES;
    *ret_frame = reader->cie.frame;
    ret_frame->start = place + read_pointer(body, encoding);
    ret_frame->size = read_pointer(body, encoding & POINTER_FORMAT);
    if ((encoding & POINTER_RELATION) != POINTER_PCREL)
        ret_frame->size = 0;
    if (reader->cie.is_augmented) {
        uint64_t length = cursor_uleb128(body);
        if (length > cursor_left(body))
            return -EBADMSG;
        cursor_skip(body, (size_t)length);
    }
    take_rest(body, &ret_frame->instructions, &ret_frame->instruction_bytes);
    return cursor_ok(body) ? 0 : -EBADMSG;
}

/* Makes the CIE that an FDE names the current one. */
static bool find_cie(struct reader *reader, const struct entry *fde)
{
    uint64_t offset = fde->offset + 4 - (uint64_t)fde->id;
    if (offset >= fde->offset)
        return false;
    if (reader->has_cie && reader->cie_offset == offset)
        return true;
    struct cursor cursor = reader->cursor;
    struct entry entry;
    cursor_seek(&cursor, (size_t)offset);
    reader->cie_offset = offset;
    reader->has_cie =
        next_entry(&cursor, &entry) && entry.id == 0 && read_cie(&entry.body, &reader->cie) == 0;
    return reader->has_cie;
}

static int by_start(const void *left, const void *right)
{
    const struct jit_frame *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

/* Of several frames, those that are for a part of the code of their own. */
static void arrange(struct jit_frames *frames, uint64_t code_size)
{
    struct jit_frame *list = frames->list.items, first = list[0];
    size_t kept = 0;
    uint64_t end = 0;
    if (frames->list.count > 1)
        qsort(list, frames->list.count, sizeof *list, by_start);
    for (size_t i = 0; i < frames->list.count && frames->list.count > 1; i++) {
        if (list[i].start < end || list[i].start >= code_size || !list[i].size ||
            list[i].size > code_size - list[i].start)
            continue;
        end = list[i].start + list[i].size;
        list[kept++] = list[i];
    }
    if (!kept) {
        first.start = 0;
        first.size = code_size;
        list[kept++] = first;
    }
    frames->list.count = kept;
}

int jit_frames_parse(struct jit_frames *frames, const struct jitdump_unwinding_info *info,
                     uint64_t code_size)
{
    frames->list.count = 0;
    if (info->size <= info->eh_frame_hdr_size)
        return -ENOENT;
    struct reader reader = {.section = (code_size + ENTRY_ALIGNMENT - 1) &
                                       ~(uint64_t)(ENTRY_ALIGNMENT - 1)};
    cursor_init(&reader.cursor, "unwinding data", info->data,
                (size_t)(info->size - info->eh_frame_hdr_size));
    struct cursor cursor = reader.cursor;
    struct entry entry;
    struct jit_frame frame;
    while (next_entry(&cursor, &entry)) {
        if (entry.id != 0 && find_cie(&reader, &entry) && read_fde(&reader, &entry, &frame) == 0 &&
            vector_push(&frames->list, frame) < 0)
            return -ENOMEM;
    }
    if (!frames->list.count)
        return -EBADMSG;
    arrange(frames, code_size);
    return 0;
}

/* CFA = frame pointer + 16; the caller's frame pointer at CFA - 16, the return address at CFA - 8.
 * In numbers of DWARF registers. */
static const uint8_t X86_64_FRAME_POINTER[] = {0x0c, 6, 16, 0x80 | 6, 2, 0x80 | 16, 1};
static const uint8_t AARCH64_FRAME_POINTER[] = {0x0c, 29, 16, 0x80 | 29, 2, 0x80 | 30, 1};

int jit_frame_by_frame_pointer(uint32_t elf_machine, uint64_t code_size,
                               struct jit_frame *ret_frame)
{
    *ret_frame = (struct jit_frame){.code_alignment = 1, .data_alignment = -8, .size = code_size};
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
    writer_u32(writer, (uint32_t)(place->code + frame->start - (place->section + writer->length)));
    writer_u32(writer, (uint32_t)frame->size);
    writer_uleb(writer, 0);
    writer_bytes(writer, frame->instructions, frame->instruction_bytes);
    end_entry(writer, start);
}
