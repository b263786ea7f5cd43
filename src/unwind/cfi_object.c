/* The two sections are found by name. In files without section headers .eh_frame is found by
 * .eh_frame_hdr, which is a segment of its own: programs need it when they run. */
#include "unwind/cfi_object.h"

#include "base/checked.h"
#include "elf/elf_compressed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void cfi_object_code(const struct elf_object *object, struct cfi_code *ret_code)
{
    Elf64_Phdr segment;
    *ret_code = (struct cfi_code){0};
    for (size_t i = 0; elf_file_segment(&object->elf, i, &segment); i++) {
        uint64_t end;
        if (segment.p_type == PT_LOAD && segment.p_flags & PF_X &&
            ret_code->count < CFI_CODE_RANGES &&
            checked_add_u64(segment.p_vaddr, segment.p_memsz, &end))
            ret_code->ranges[ret_code->count++] = (struct cfi_range){segment.p_vaddr, end};
    }
}

bool cfi_object_header(const struct elf_object *object, struct cfi_header *ret_header)
{
    Elf64_Phdr segment = {0};
    for (size_t i = 0; segment.p_type != PT_GNU_EH_FRAME; i++) {
        if (!elf_file_segment(&object->elf, i, &segment))
            return false;
    }
    struct cursor cursor = object->elf.cursor;
    cursor_seek(&cursor, segment.p_offset);
    cursor = cursor_sub(&cursor, segment.p_filesz);
    uint8_t version = cursor_u8(&cursor), encoding = cursor_u8(&cursor);
    *ret_header = (struct cfi_header){.svma = segment.p_vaddr};
    ret_header->count_encoding = cursor_u8(&cursor);
    ret_header->table_encoding = cursor_u8(&cursor);
    ret_header->eh_frame_svma = cfi_pointer(&cursor, segment.p_vaddr, encoding);
    ret_header->cursor = cursor;
    return cursor_ok(&cursor) && version == 1;
}

/* How long .eh_frame is the header does not say; it ends with an entry of length 0. */
static bool eh_frame_by_header(const struct elf_object *object, struct cfi_section *ret_section)
{
    struct cfi_header header;
    Elf64_Phdr segment;
    if (!cfi_object_header(object, &header))
        return false;
    uint64_t svma = header.eh_frame_svma;
    for (size_t i = 0; elf_file_segment(&object->elf, i, &segment); i++) {
        if (segment.p_type != PT_LOAD || svma < segment.p_vaddr ||
            svma - segment.p_vaddr >= segment.p_filesz)
            continue;
        struct cursor content = object->elf.cursor;
        cursor_seek(&content, segment.p_offset);
        cursor_skip(&content, svma - segment.p_vaddr);
        *ret_section = (struct cfi_section){
            .cursor = cursor_sub(&content, segment.p_filesz - (svma - segment.p_vaddr)),
            .svma = svma,
            .ends_at_zero = true};
        return cursor_ok(&content);
    }
    return false;
}

int cfi_bytes_keep(struct cfi_bytes *bytes)
{
    struct cursor *cursor = &bytes->section.cursor;
    if (bytes->owned || !cursor->length)
        return 0;
    bytes->owned = malloc(cursor->length);
    if (!bytes->owned)
        return -ENOMEM;
    memcpy(bytes->owned, cursor->data, cursor->length);
    cursor->data = bytes->owned;
    return 0;
}

void cfi_bytes_done(struct cfi_bytes *bytes)
{
    free(bytes->owned);
    *bytes = (struct cfi_bytes){0};
}

static int find_section(const struct elf_object *object, const char *name,
                        struct cfi_bytes *ret_bytes)
{
    Elf64_Shdr header;
    *ret_bytes = (struct cfi_bytes){0};
    if (!elf_file_section_named(&object->elf, name, &header))
        return 0;
    ret_bytes->section.svma = header.sh_addr;
    int error = elf_compressed_content(&object->elf, &header, &ret_bytes->section.cursor,
                                       &ret_bytes->owned);
    return error < 0 ? error : 1;
}

int cfi_object_eh_frame(const struct elf_object *object, struct cfi_bytes *ret_bytes)
{
    int result = find_section(object, ".eh_frame", ret_bytes);
    return result == 0 && eh_frame_by_header(object, &ret_bytes->section) ? 1 : result;
}

int cfi_object_debug_frame(const struct elf_object *object, struct cfi_bytes *ret_bytes)
{
    int result = find_section(object, ".debug_frame", ret_bytes);
    ret_bytes->section.is_debug_frame = true;
    return result;
}
