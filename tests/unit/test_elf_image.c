/* Images of generated code, read back with the ELF reader. tests/e2e/test_inject.py shows that perf
 * unwinds through them and finds their lines. */
#include "formats/elf_image.h"

#include "elf/elf_file.h"
#include "failing_malloc.h"
#include "jitdump_sample.h"
#include "unit.h"

#include <errno.h>

static struct jitdump_code codes[3];
static struct elf_image_function functions[3];
static struct elf_image image;

static int release(void **state)
{
    (void)state;
    elf_image_done(&image);
    return 0;
}

/* Three functions, the last one far behind the others. */
static struct elf_image_source source_of_three(void)
{
    static const char *const names[] = {"py::one:a.py", "py::two:a.py", "py::three:b.py"};
    static const uint64_t places[] = {0x7f0000001230, 0x7f0000001290, 0x7f0000005000};
    for (size_t i = 0; i < 3; i++) {
        codes[i] = (struct jitdump_code){.load = sample_load(places[i], i + 1, names[i])};
        functions[i] = (struct elf_image_function){.avma = places[i], .code = &codes[i]};
    }
    return (struct elf_image_source){
        .functions = functions, .count = 3, .elf_machine = EM_X86_64, .title = "jit-1.dump"};
}

static struct elf_file make(const struct elf_image_source *source)
{
    struct elf_file elf;
    elf_image_done(&image);
    assert_int_equal(elf_image_make(source, &image), 0);
    assert_int_equal(elf_file_open(&elf, "image", image.data, image.length), 0);
    return elf;
}

static bool has_section(const struct elf_file *elf, const char *name, Elf64_Shdr *ret_section)
{
    const Elf64_Shdr *sections = (const void *)(image.data + elf->header.e_shoff);
    const char *names = (const char *)image.data + sections[elf->header.e_shstrndx].sh_offset;
    for (size_t i = 0; i < elf->header.e_shnum; i++) {
        *ret_section = sections[i];
        if (strcmp(names + sections[i].sh_name, name) == 0)
            return true;
    }
    return false;
}

static void every_function_is_a_symbol_with_its_bytes(void **state)
{
    (void)state;
    struct elf_image_source source = source_of_three();
    struct elf_file elf = make(&source);
    struct elf_symbols symbols;
    struct elf_symbol symbol;
    assert_true(elf_symbols_init(&symbols, &elf, SHT_SYMTAB));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(elf_symbols_next(&symbols, &symbol), 1);
        assert_string_equal(symbol.name, codes[i].load.name);
        assert_int_equal(symbol.svma, functions[i].avma - image.base_avma);
        assert_int_equal(symbol.size, sizeof SAMPLE_CODE);
        assert_int_equal(symbol.type, STT_FUNC);
        const uint8_t *bytes = elf_file_bytes(&elf, symbol.svma, sizeof SAMPLE_CODE);
        assert_non_null(bytes);
        assert_memory_equal(bytes, SAMPLE_CODE, sizeof SAMPLE_CODE);
    }
    assert_int_equal(elf_symbols_next(&symbols, &symbol), 0);
}

static uint64_t room_behind(void *context, uint64_t after_avma, uint64_t bytes)
{
    *(uint64_t *)context = bytes;
    return after_avma + 0x100000;
}

static void what_is_loaded_is_hardly_more_than_the_code(void **state)
{
    (void)state;
    uint64_t asked;
    for (uint64_t lower = 0; lower <= 0x230; lower += 0x230) { /* to the start of a page */
        struct elf_image_source source = source_of_three();
        source.find_room = room_behind;
        source.context = &asked;
        functions[0].avma -= lower;
        struct elf_file elf = make(&source);
        Elf64_Phdr load;
        memcpy(&load, image.data + elf.header.e_phoff, sizeof load);
        assert_int_equal(load.p_type, PT_LOAD);
        assert_int_equal(image.base_avma % load.p_align, 0);
        assert_true(functions[0].avma - image.base_avma <= 0x120);
        assert_int_equal(image.base_avma + load.p_vaddr + load.p_memsz,
                         functions[2].avma + sizeof SAMPLE_CODE);
    }
}

static void unwinding_entries_are_sorted_and_lead_to_the_code(void **state)
{
    (void)state;
    struct elf_image_source source = source_of_three();
    struct elf_file elf = make(&source);
    Elf64_Shdr header;
    assert_true(has_section(&elf, ".eh_frame_hdr", &header));
    const uint8_t *bytes = image.data + header.sh_offset;
    uint32_t count;
    memcpy(&count, bytes + 8, sizeof count);
    assert_int_equal(count, 3);
    for (size_t i = 0; i < 3; i++) {
        int32_t pair[2], fde[4];
        memcpy(pair, bytes + 12 + 8 * i, sizeof pair);
        assert_int_equal(header.sh_offset + pair[0], functions[i].avma - image.base_avma);
        size_t at = header.sh_offset + pair[1];
        memcpy(fde, image.data + at, sizeof fde);
        assert_int_equal(at + 8 + fde[2], functions[i].avma - image.base_avma);
        assert_int_equal(fde[3], sizeof SAMPLE_CODE);
    }
}

static void a_function_may_have_several_entries(void **state)
{
    (void)state;
    /* A CIE, and two FDEs of 16 bytes each; the data stands 32 bytes behind the code's start. */
    static const uint8_t two[] = {
        17, 0,  0,  0, 0, 0,  0,  0, 1, 'z',  'R',  0,    1,    0x78, 16, 1, 0x1b, 0x0c, 7,
        8,  0,  14, 0, 0, 0,  25, 0, 0, 0,    0xc3, 0xff, 0xff, 0xff, 16, 0, 0,    0,    0,
        0,  14, 0,  0, 0, 43, 0,  0, 0, 0xc1, 0xff, 0xff, 0xff, 16,   0,  0, 0,    0,    0};
    struct elf_image_source source = source_of_three();
    codes[1].unwinding = (struct jitdump_unwinding_info){.data = two, .size = sizeof two};
    struct elf_file elf = make(&source);
    Elf64_Shdr header;
    assert_int_equal(image.without_frames, 2);
    assert_true(has_section(&elf, ".eh_frame_hdr", &header));
    uint64_t start = functions[1].avma - image.base_avma;
    const uint64_t expected[] = {functions[0].avma - image.base_avma, start, start + 16,
                                 functions[2].avma - image.base_avma};
    uint32_t count;
    memcpy(&count, image.data + header.sh_offset + 8, sizeof count);
    assert_int_equal(count, COUNT(expected));
    for (size_t i = 0; i < COUNT(expected); i++) {
        int32_t distance;
        memcpy(&distance, image.data + header.sh_offset + 12 + 8 * i, sizeof distance);
        assert_int_equal(header.sh_offset + distance, expected[i]);
    }
}

static void functions_without_unwinding_data_share_a_frame_pointer_rule(void **state)
{
    (void)state;
    struct elf_image_source source = source_of_three();
    make(&source);
    assert_int_equal(image.without_frames, 3);
    source.elf_machine = EM_S390;
    struct elf_image none;
    assert_int_equal(elf_image_make(&source, &none), -ENOTSUP);
}

static void damaged_unwinding_data_counts_as_none(void **state)
{
    (void)state;
    static const uint8_t damaged[] = {200, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0};
    struct elf_image_source source = source_of_three();
    codes[1].unwinding = (struct jitdump_unwinding_info){.data = damaged, .size = sizeof damaged};
    make(&source);
    assert_int_equal(image.without_frames, 3);
}

static void unwinding_data_has_a_copy_where_there_is_room(void **state)
{
    (void)state;
    uint64_t asked = 0;
    struct elf_image_source source = source_of_three();
    source.find_room = room_behind;
    source.context = &asked;
    struct elf_file elf = make(&source);
    Elf64_Shdr header;
    assert_true(asked > 0);
    assert_true(image.hole_bytes >= 0x100000);
    assert_true(has_section(&elf, ".eh_frame_hdr", &header));
    assert_true(header.sh_offset >= image.room_avma - image.base_avma);
    const uint8_t *bytes = image.data + (header.sh_offset - image.hole_bytes);
    int32_t first;
    memcpy(&first, bytes + 12, sizeof first);
    assert_int_equal((int64_t)header.sh_offset + first, functions[0].avma - image.base_avma);
    assert_int_equal(header.sh_offset + header.sh_size + image.base_avma,
                     image.room_avma + image.room_bytes);
}

static void lines_make_debug_sections(void **state)
{
    (void)state;
    Elf64_Shdr section;
    struct elf_image_source source = source_of_three();
    struct elf_file elf = make(&source);
    assert_false(has_section(&elf, ".debug_line", &section));

    static uint8_t record[256];
    struct writer writer;
    writer_init(&writer, record, sizeof record);
    struct jitdump_line line = {.avma = functions[0].avma, .line = 42, .file = "/srv/a.py"};
    struct jitdump_reader reader;
    struct jitdump_record read;
    jitdump_encode_header(&writer, &(struct jitdump_header){.elf_machine = 62, .pid = 1});
    jitdump_encode_debug_info(&writer, 1, line.avma, &line, 1);
    assert_int_equal(jitdump_open(&reader, "dump", record, writer.length), 0);
    assert_int_equal(jitdump_next(&reader, &read), 1);
    codes[0].debug = read.debug_info;
    elf = make(&source);
    assert_true(has_section(&elf, ".debug_line", &section));
    assert_non_null(memmem(image.data + section.sh_offset, section.sh_size, "/srv/a.py", 10));
    assert_true(has_section(&elf, ".debug_info", &section));
}

static void build_ids_differ_in_the_smallest_thing(void **state)
{
    (void)state;
    struct elf_image_source source = source_of_three();
    uint8_t before[ELF_IMAGE_BUILD_ID_BYTES];
    make(&source);
    memcpy(before, image.build_id, sizeof before);
    make(&source);
    assert_memory_equal(before, image.build_id, sizeof before);
    codes[2].load.name = "py::three:c.py";
    make(&source);
    assert_memory_not_equal(before, image.build_id, sizeof before);
}

static void code_that_is_left_out_is_zeros(void **state)
{
    (void)state;
    struct elf_image_source source = source_of_three();
    codes[1].load.code = NULL;
    struct elf_file elf = make(&source);
    const uint8_t *bytes = elf_file_bytes(&elf, functions[1].avma - image.base_avma, 4);
    assert_non_null(bytes);
    assert_memory_equal(bytes, "\0\0\0\0", 4);
}

static void code_that_spans_too_much_is_refused(void **state)
{
    (void)state;
    struct elf_image_source source = source_of_three();
    functions[2].avma += (uint64_t)1 << 40;
    struct elf_image none;
    assert_int_equal(elf_image_make(&source, &none), -EFBIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_function_is_a_symbol_with_its_bytes),
        cmocka_unit_test(what_is_loaded_is_hardly_more_than_the_code),
        cmocka_unit_test(unwinding_entries_are_sorted_and_lead_to_the_code),
        cmocka_unit_test(a_function_may_have_several_entries),
        cmocka_unit_test(functions_without_unwinding_data_share_a_frame_pointer_rule),
        cmocka_unit_test(damaged_unwinding_data_counts_as_none),
        cmocka_unit_test(unwinding_data_has_a_copy_where_there_is_room),
        cmocka_unit_test(lines_make_debug_sections),
        cmocka_unit_test(build_ids_differ_in_the_smallest_thing),
        cmocka_unit_test(code_that_is_left_out_is_zeros),
        cmocka_unit_test(code_that_spans_too_much_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
