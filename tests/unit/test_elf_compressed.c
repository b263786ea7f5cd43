/* Sections compressed here, by the libraries that decompress them there. */
#include "elf/elf_compressed.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>
#include <zlib.h>
#include <zstd.h>

enum { ZLIB = 1, ZSTD = 2, ROOM = 4096 };

static const char TEXT[] =
    "so that there is something to save: frame frame frame frame frame frame";

static uint8_t file[ROOM];
static Elf64_Shdr section;
static struct elf_file elf;
static struct cursor content;
static uint8_t *owned;

/* A file that is a compressed section and nothing else. */
static int read_compressed(uint32_t type, const void *bytes, size_t length, uint64_t size)
{
    Elf64_Chdr header = {.ch_type = type, .ch_size = size, .ch_addralign = 1};
    memcpy(file, &header, sizeof header);
    memcpy(file + sizeof header, bytes, length);
    section = (Elf64_Shdr){
        .sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED, .sh_size = sizeof header + length};
    uint8_t *copy = exact_copy(file, section.sh_size);
    cursor_init(&elf.cursor, "test", copy, section.sh_size);
    int result = elf_compressed_content(&elf, &section, &content, &owned);
    free(copy); /* what was decompressed does not need it */
    return result;
}

static size_t compress_zstd(uint8_t *bytes)
{
    size_t length = ZSTD_compress(bytes, ROOM / 2, TEXT, sizeof TEXT, 3);
    assert_false(ZSTD_isError(length));
    return length;
}

static void check_text(void)
{
    assert_int_equal(cursor_left(&content), sizeof TEXT);
    assert_memory_equal(cursor_bytes(&content, sizeof TEXT), TEXT, sizeof TEXT);
    free(owned);
}

static void zstd_is_undone(void **state)
{
    (void)state;
    uint8_t bytes[ROOM / 2];
    size_t length = compress_zstd(bytes);
    assert_int_equal(read_compressed(ZSTD, bytes, length, sizeof TEXT), 0);
    check_text();
}

static void zlib_is_undone(void **state)
{
    (void)state;
    uint8_t bytes[ROOM / 2];
    uLongf length = sizeof bytes;
    assert_int_equal(compress(bytes, &length, (const uint8_t *)TEXT, sizeof TEXT), Z_OK);
    assert_int_equal(read_compressed(ZLIB, bytes, length, sizeof TEXT), 0);
    check_text();
    assert_int_equal(read_compressed(ZLIB, bytes, length - 8, sizeof TEXT), -EBADMSG);
    assert_int_equal(read_compressed(ZLIB, bytes, length, sizeof TEXT + 1), -EBADMSG);
}

static void what_is_not_compressed_is_borrowed(void **state)
{
    (void)state;
    cursor_init(&elf.cursor, "test", TEXT, sizeof TEXT);
    section = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_size = sizeof TEXT};
    assert_int_equal(elf_compressed_content(&elf, &section, &content, &owned), 0);
    assert_null(owned);
    assert_ptr_equal(cursor_bytes(&content, sizeof TEXT), TEXT);
    section.sh_size++;
    assert_int_equal(elf_compressed_content(&elf, &section, &content, &owned), -EBADMSG);
}

static void a_wrong_size_is_damage(void **state)
{
    (void)state;
    uint8_t bytes[ROOM / 2];
    size_t length = compress_zstd(bytes);
    static const uint64_t WRONG[] = {0,       1,        sizeof TEXT - 1, sizeof TEXT + 1,
                                     1 << 20, 1u << 31, UINT64_MAX};
    for (size_t i = 0; i < COUNT(WRONG); i++)
        assert_int_equal(read_compressed(ZSTD, bytes, length, WRONG[i]), -EBADMSG);
}

static void damaged_bytes_are_damage(void **state)
{
    (void)state;
    uint8_t bytes[ROOM / 2];
    size_t length = compress_zstd(bytes);
    for (size_t cut = 0; cut < length; cut++)
        assert_int_equal(read_compressed(ZSTD, bytes, cut, sizeof TEXT), -EBADMSG);
    bytes[0] ^= 1;
    assert_int_equal(read_compressed(ZSTD, bytes, length, sizeof TEXT), -EBADMSG);
}

static void a_section_without_room_for_a_header_is_damage(void **state)
{
    (void)state;
    cursor_init(&elf.cursor, "test", TEXT, sizeof TEXT);
    section = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED, .sh_size = 10};
    assert_int_equal(elf_compressed_content(&elf, &section, &content, &owned), -EBADMSG);
}

static void other_ways_of_compressing_are_not_known(void **state)
{
    (void)state;
    assert_int_equal(read_compressed(77, "bytes", 5, 5), -ENOTSUP);
}

static void memory_that_runs_short_is_reported(void **state)
{
    (void)state;
    uint8_t bytes[ROOM / 2];
    size_t length = compress_zstd(bytes);
    failing_malloc_after(1); /* the first is the test's own copy */
    int result = read_compressed(ZSTD, bytes, length, sizeof TEXT);
    assert_true(failing_malloc_stop());
    assert_int_equal(result, -ENOMEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zstd_is_undone),
        cmocka_unit_test(zlib_is_undone),
        cmocka_unit_test(what_is_not_compressed_is_borrowed),
        cmocka_unit_test(a_wrong_size_is_damage),
        cmocka_unit_test(damaged_bytes_are_damage),
        cmocka_unit_test(a_section_without_room_for_a_header_is_damage),
        cmocka_unit_test(other_ways_of_compressing_are_not_known),
        cmocka_unit_test(memory_that_runs_short_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
