/* Both sections are lists of entries, each with its length in front:
 *
 *     CIE   length  id  version  "zR"  code factor  data factor  return column  …  instructions
 *     FDE   length  where its CIE is   start  size  …  instructions
 *
 * .eh_frame is what programs use themselves, for exceptions: pointers are encoded in one of many
 * ways, usually relative to their own place, and the CIE is so many bytes before. .debug_frame is
 * for debuggers: addresses are plain, and the CIE is at an offset from the section's start.
 *
 * Code that the linker threw away leaves entries behind that start at 0; whoever knows the segments
 * sorts them out. */
#include "unwind/cfi.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

/* How pointers are written (DW_EH_PE_…). */
enum {
    FORMAT_MASK = 0x0f,
    FORMAT_ABSOLUTE = 0x00,
    FORMAT_ULEB128 = 0x01,
    FORMAT_U16 = 0x02,
    FORMAT_U32 = 0x03,
    FORMAT_U64 = 0x04,
    FORMAT_SLEB128 = 0x09,
    FORMAT_S16 = 0x0a,
    FORMAT_S32 = 0x0b,
    FORMAT_S64 = 0x0c,
    RELATIVE_MASK = 0x70,
    RELATIVE_TO_NOTHING = 0x00,
    RELATIVE_TO_ITSELF = 0x10,
    INDIRECT = 0x80,
    OMITTED = 0xff,
};

/* What functions have in common is a handful of bytes. A large CIE that very many functions share
 * would be there to waste time. */
enum { MOST_COMMON_BYTES = 512 };

static uint64_t read_format(struct cursor *cursor, uint8_t encoding)
{
    switch (encoding & FORMAT_MASK) {
    case FORMAT_ABSOLUTE:
    case FORMAT_U64:
    case FORMAT_S64:
        return cursor_u64(cursor);
    case FORMAT_ULEB128:
        return cursor_uleb128(cursor);
    case FORMAT_SLEB128:
        return (uint64_t)cursor_sleb128(cursor);
    case FORMAT_U16:
        return cursor_u16(cursor);
    case FORMAT_S16:
        return (uint64_t)(int64_t)(int16_t)cursor_u16(cursor);
    case FORMAT_U32:
        return cursor_u32(cursor);
    case FORMAT_S32:
        return (uint64_t)(int64_t)(int32_t)cursor_u32(cursor);
    default:
        cursor_fail(cursor, "a pointer is encoded in an unknown way");
        return 0;
    }
}

uint64_t cfi_pointer(struct cursor *cursor, uint64_t svma, uint8_t encoding)
{
    uint64_t own_svma = svma + cursor->offset;
    uint64_t value = read_format(cursor, encoding);
    if (encoding & INDIRECT)
        cursor_fail(cursor, "a pointer leads through memory");
    switch (encoding & RELATIVE_MASK) {
    case RELATIVE_TO_NOTHING:
        return value;
    case RELATIVE_TO_ITSELF:
        return value + own_svma;
    default:
        cursor_fail(cursor, "a pointer is relative to something unknown");
        return 0;
    }
}

/* An entry's header. */
struct entry {
    struct cursor content; /* behind the id */
    uint64_t content_svma;
    uint64_t place;     /* of its length, from the section's start */
    uint64_t id_offset; /* from the section's start */
    uint64_t id;
    bool is_common;
    bool is_empty; /* of length 0: nothing else is valid */
};

/* Reads the entry at the cursor and moves behind it; false when there is no whole one. */
static bool read_entry(const struct cfi_section *section, struct cursor *cursor,
                       struct entry *ret_entry)
{
    uint64_t place = cursor->offset, length = cursor_u32(cursor);
    bool is_wide = length == UINT32_MAX;
    if (is_wide)
        length = cursor_u64(cursor);
    *ret_entry = (struct entry){.place = place, .id_offset = cursor->offset, .is_empty = !length};
    struct cursor content = cursor_sub(cursor, length);
    if (!length || !cursor_ok(cursor))
        return cursor_ok(cursor);
    /* In .eh_frame the id has 4 bytes even behind a wide length. */
    bool is_wide_id = is_wide && section->is_debug_frame;
    ret_entry->id = is_wide_id ? cursor_u64(&content) : cursor_u32(&content);
    uint64_t common_id = section->is_debug_frame ? (is_wide_id ? UINT64_MAX : UINT32_MAX) : 0;
    ret_entry->is_common = ret_entry->id == common_id;
    ret_entry->content_svma = section->svma + ret_entry->id_offset;
    ret_entry->content = content;
    return true;
}

/* The letters behind the 'z': what the augmentation data of the CIE consists of. */
static void read_augmentation(struct cursor *cursor, const char *letters, struct cfi_common *common)
{
    struct cursor data = cursor_sub(cursor, cursor_uleb128(cursor));
    for (; *letters; letters++) {
        switch (*letters) {
        case 'R':
            common->pointer_encoding = cursor_u8(&data);
            break;
        case 'L':
            cursor_skip(&data, 1);
            break;
        case 'P': { /* only to get behind it */
            uint8_t encoding = cursor_u8(&data);
            if (encoding != OMITTED)
                read_format(&data, encoding);
            break;
        }
        case 'S':
            common->is_signal = true;
            break;
        default: /* 'B' and others say nothing about the layout of what is read here */
            break;
        }
    }
    if (!cursor_ok(&data))
        cursor_fail(cursor, "the augmentation data of a CIE ends too early");
}

static bool read_common(const struct entry *entry, struct cfi_common *ret_common)
{
    struct cursor cursor = entry->content;
    if (cursor_left(&cursor) > MOST_COMMON_BYTES)
        return false;
    struct cfi_common common = {.pointer_encoding = FORMAT_ABSOLUTE};
    uint8_t version = cursor_u8(&cursor);
    size_t length;
    const char *augmentation = cursor_string(&cursor, &length);
    if (!augmentation || (version != 1 && version != 3 && version != 4))
        return false;
    if (version == 4) {
        uint8_t address_bytes = cursor_u8(&cursor), segment_bytes = cursor_u8(&cursor);
        if (address_bytes != 8 || segment_bytes)
            return false;
    }
    common.code_factor = cursor_uleb128(&cursor);
    common.data_factor = cursor_sleb128(&cursor);
    common.return_column = version == 1 ? cursor_u8(&cursor) : cursor_uleb128(&cursor);
    common.has_augmentation_data = augmentation[0] == 'z';
    if (common.has_augmentation_data)
        read_augmentation(&cursor, augmentation + 1, &common);
    else if (augmentation[0])
        return false; /* what follows is anybody's guess */
    common.instructions = cursor_sub(&cursor, cursor_left(&cursor));
    *ret_common = common;
    return cursor_ok(&cursor);
}

static bool find_common(struct cfi_section *section, const struct entry *function,
                        struct cfi_common *ret_common)
{
    if (!section->is_debug_frame && function->id > function->id_offset)
        return false;
    uint64_t place = section->is_debug_frame ? function->id : function->id_offset - function->id;
    if (!section->has_common || section->common_place != place) {
        struct cursor cursor = section->cursor;
        struct entry entry;
        cursor_seek(&cursor, place);
        section->has_common = cursor_ok(&cursor) && read_entry(section, &cursor, &entry) &&
                              !entry.is_empty && entry.is_common &&
                              read_common(&entry, &section->common);
        section->common_place = place;
    }
    *ret_common = section->common;
    return section->has_common;
}

static bool read_function(struct cfi_section *section, const struct entry *entry,
                          struct cfi_function *ret_function)
{
    struct cfi_function function = {.place = entry->place};
    if (!find_common(section, entry, &function.common))
        return false;
    struct cursor cursor = entry->content;
    uint8_t encoding = function.common.pointer_encoding;
    function.pointer_encoding = encoding;
    function.start_svma = cfi_pointer(&cursor, entry->content_svma, encoding);
    function.size = read_format(&cursor, encoding);
    if (function.common.has_augmentation_data)
        cursor_skip(&cursor, cursor_uleb128(&cursor));
    function.instructions = cursor_sub(&cursor, cursor_left(&cursor));
    uint64_t end;
    *ret_function = function;
    return cursor_ok(&cursor) && checked_add_u64(function.start_svma, function.size, &end);
}

/* The next entry of a function: as cfi_next, but not understood yet. */
static int next_entry(struct cfi_section *section, struct entry *ret_entry)
{
    while (cursor_left(&section->cursor) >= sizeof(uint32_t)) {
        struct cursor cursor = section->cursor;
        if (!read_entry(section, &cursor, ret_entry)) {
            section->cursor.offset = section->cursor.length;
            return -EBADMSG;
        }
        section->cursor = cursor;
        if (ret_entry->is_empty && section->ends_at_zero)
            return 0;
        if (!ret_entry->is_empty && !ret_entry->is_common)
            return 1;
    }
    return 0;
}

int cfi_next(struct cfi_section *section, struct cfi_function *ret_function)
{
    struct entry entry;
    int result = next_entry(section, &entry);
    if (result == 1 && !read_function(section, &entry, ret_function))
        return -EBADMSG;
    return result;
}

size_t cfi_count(struct cfi_section section)
{
    size_t count = 0;
    struct entry entry;
    while (next_entry(&section, &entry) != 0)
        count++;
    return count;
}

bool cfi_at(struct cfi_section *section, uint64_t place, struct cfi_function *ret_function)
{
    struct cursor cursor = section->cursor;
    struct entry entry;
    cursor_seek(&cursor, place);
    return cursor_ok(&cursor) && read_entry(section, &cursor, &entry) && !entry.is_empty &&
           !entry.is_common && read_function(section, &entry, ret_function);
}
