/* A compressed section starts with a header, which says how and how large it was:
 *
 *     type (4)   reserved (4)   size (8)   alignment (8)   compressed bytes …
 *
 * The size comes from outside like everything else: more than any section needs, or more than the
 * compressed bytes can account for, is damage. */
#include "elf/elf_compressed.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2 /* younger than some <elf.h> */
#endif

enum {
    MOST_BYTES = 1 << 28,
    MOST_RATIO = 1024, /* zlib can't do better; frame information comes to 10 */
};

/* Fills `size` bytes exactly. */
static int decompress(uint32_t type, const uint8_t *from, size_t length, uint8_t *bytes,
                      size_t size)
{
    if (type == ELFCOMPRESS_ZSTD)
        return ZSTD_decompress(bytes, size, from, length) == size ? 0 : -EBADMSG;
    if (type == ELFCOMPRESS_ZLIB) {
        uLongf written = size;
        int result = uncompress(bytes, &written, from, length);
        return result == Z_MEM_ERROR ? -ENOMEM : result == Z_OK && written == size ? 0 : -EBADMSG;
    }
    return -ENOTSUP;
}

int elf_compressed_content(const struct elf_file *elf, const Elf64_Shdr *section,
                           struct cursor *ret_content, uint8_t **ret_owned)
{
    Elf64_Shdr plain = *section;
    plain.sh_flags &= ~(Elf64_Xword)SHF_COMPRESSED;
    struct cursor content = elf_file_content(elf, &plain);
    *ret_owned = NULL;
    if (section->sh_flags & SHF_COMPRESSED) {
        uint32_t type = cursor_u32(&content);
        cursor_skip(&content, sizeof(uint32_t));
        uint64_t size = cursor_u64(&content);
        cursor_skip(&content, sizeof(uint64_t));
        size_t length = cursor_left(&content);
        const uint8_t *from = cursor_bytes(&content, length);
        if (!from || !size || size > MOST_BYTES || size / MOST_RATIO > length)
            return -EBADMSG;
        uint8_t *bytes = malloc(size);
        if (!bytes)
            return -ENOMEM;
        int error = decompress(type, from, length, bytes, size);
        if (error < 0) {
            free(bytes);
            return error;
        }
        *ret_owned = bytes;
        cursor_init(&content, elf->cursor.source, bytes, size);
    }
    *ret_content = content;
    return cursor_ok(&content) ? 0 : -EBADMSG;
}
