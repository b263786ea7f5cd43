#include "formats/python_image.h"

#include "elf/elf_file.h"
#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>

static const uint8_t BUILD_ID[PYTHON_IMAGE_BUILD_ID_BYTES] = "twenty bytes it has";

static struct python_image image;
static struct python_image_bytes bytes;

/* An empty image, in the place of that of the test before. */
static void start(void)
{
    python_image_done(&image);
    assert_int_equal(python_image_init(&image), 0);
}

static int release(void **state)
{
    (void)state;
    python_image_done(&image);
    free(bytes.data);
    return 0;
}

static uint32_t add_named(const char *name, size_t name_length, uint32_t first_line,
                          const int32_t *lines, size_t line_count)
{
    uint32_t number;
    struct python_image_function function = {.name = name,
                                             .name_length = name_length,
                                             .file = "/srv/a.py",
                                             .file_length = 9,
                                             .first_line = first_line,
                                             .lines = lines,
                                             .line_count = line_count};
    assert_int_equal(python_image_add(&image, &function, &number), 0);
    return number;
}

#define ADD(name, first_line, ...)                                                                 \
    add_named(name, strlen(name), first_line, (const int32_t[]){__VA_ARGS__},                      \
              COUNT(((const int32_t[]){__VA_ARGS__})))

static struct elf_file finish(void)
{
    struct elf_file elf;
    free(bytes.data);
    assert_int_equal(python_image_finish(&image, BUILD_ID, &bytes), 0);
    assert_int_equal(elf_file_open(&elf, "image", bytes.data, bytes.length), 0);
    return elf;
}

/* The name of the symbol that has the address. */
static const char *name_at(const struct elf_file *elf, uint64_t svma)
{
    struct elf_symbols symbols;
    struct elf_symbol symbol;
    const char *name = NULL;
    assert_true(elf_symbols_init(&symbols, elf, SHT_SYMTAB));
    while (elf_symbols_next(&symbols, &symbol) == 1) {
        if (symbol.svma <= svma && svma < symbol.svma + symbol.size) {
            assert_null(name);
            name = symbol.name;
        }
    }
    return name;
}

static bool svma_is_code(const struct elf_file *elf, uint64_t svma)
{
    Elf64_Shdr text;
    return elf_file_section_named(elf, ".text", &text) && text.sh_addr <= svma &&
           svma < text.sh_addr + text.sh_size && text.sh_addr == text.sh_offset;
}

static void every_line_has_an_address_in_its_function(void **state)
{
    (void)state;
    start();
    uint32_t f = ADD("f", 10, 10, 11, 13), g = ADD("C.g", 20, 21, 25);
    struct elf_file elf = finish();
    static const int32_t f_lines[] = {10, 11, 13}, g_lines[] = {20, 21, 25};
    for (size_t i = 0; i < 3; i++) {
        uint64_t in_f = python_image_address(&image, f, f_lines[i]);
        uint64_t in_g = python_image_address(&image, g, g_lines[i]);
        assert_string_equal(name_at(&elf, in_f), "py::f:/srv/a.py");
        assert_string_equal(name_at(&elf, in_g), "py::C.g:/srv/a.py");
        assert_string_equal(name_at(&elf, in_f - 1), "py::f:/srv/a.py");
        assert_string_equal(name_at(&elf, in_g - 1), "py::C.g:/srv/a.py");
        assert_true(svma_is_code(&elf, in_f) && svma_is_code(&elf, in_g));
        assert_non_null(elf_file_bytes(&elf, in_f - 1, 4));
        if (i > 0)
            assert_true(in_f > python_image_address(&image, f, f_lines[i - 1]) + 1);
    }
}

static void addresses_stay_when_functions_follow(void **state)
{
    (void)state;
    start();
    uint32_t f = ADD("f", 10, 10, 11);
    uint64_t before = python_image_address(&image, f, 11);
    for (int32_t i = 0; i < 1000; i++)
        ADD("g", 20, 20 + i, 3000);
    assert_int_equal(python_image_address(&image, f, 11), before);
    struct elf_file elf = finish();
    assert_string_equal(name_at(&elf, before), "py::f:/srv/a.py");
}

static void lines_that_are_not_there_count_as_the_first(void **state)
{
    (void)state;
    start();
    uint32_t f = ADD("f", 12, -1, 0, 10, 11, 13), none = ADD("none", 5, 0);
    uint64_t first = python_image_address(&image, f, 12);
    assert_int_equal(python_image_address(&image, f, -1), first);
    assert_int_equal(python_image_address(&image, f, 0), first);
    assert_int_equal(python_image_address(&image, f, 99), first);
    assert_int_not_equal(python_image_address(&image, f, 13), first);
    assert_true(python_image_address(&image, f, 10) < first);
    assert_int_equal(python_image_address(&image, none, 5), python_image_address(&image, none, -1));
    assert_int_equal(image.functions.items[f].slot_count, 4);
    assert_int_equal(image.functions.items[none].slot_count, 1);
}

static void the_build_id_is_the_callers(void **state)
{
    (void)state;
    start();
    ADD("f", 1, 1);
    struct elf_file elf = finish();
    size_t length;
    const uint8_t *id = elf_file_build_id(&elf, &length);
    assert_int_equal(length, sizeof BUILD_ID);
    assert_memory_equal(id, BUILD_ID, sizeof BUILD_ID);
}

static void an_image_without_functions_is_valid(void **state)
{
    (void)state;
    start();
    struct elf_file elf = finish();
    assert_null(name_at(&elf, 0x10000));
}

static void names_of_any_bytes_become_one_line(void **state)
{
    (void)state;
    start();
    static const char odd[] = "a\nb\rc\0d\xed\xb2\x80\"'\xff\xed";
    uint32_t f = add_named(odd, sizeof odd - 1, 1, NULL, 0);
    struct elf_file elf = finish();
    assert_string_equal(name_at(&elf, python_image_address(&image, f, 1)),
                        "py::a\\nb\\rc\\0d\\udc80\"'\xff\xed:/srv/a.py");
}

static void of_long_names_the_middle_is_left_out(void **state)
{
    (void)state;
    start();
    enum { LENGTH = 100000 };
    char *name = malloc(LENGTH);
    assert_non_null(name);
    for (size_t i = 0; i < LENGTH; i++)
        name[i] = "\xc3\xa9"[i % 2];
    uint32_t f = add_named(name, LENGTH, 1, NULL, 0);
    uint32_t escaped = add_named(memset(name, 0, 8192), 8192, 1, NULL, 0);
    free(name);
    struct elf_file elf = finish();
    const char *symbol = name_at(&elf, python_image_address(&image, f, 1));
    assert_int_equal(strlen(symbol), strlen("py::…:/srv/a.py") + 8192);
    assert_non_null(strstr(symbol, "\xc3\xa9…\xc3\xa9"));
    symbol = name_at(&elf, python_image_address(&image, escaped, 1));
    assert_int_equal(strlen(symbol), strlen("py:::/srv/a.py") + 2 * 8192);
}

static void more_lines_than_addresses_are_refused(void **state)
{
    (void)state;
    start();
    static const int32_t line = 1;
    struct python_image_function function = {
        .name = "f", .file = "", .lines = &line, .line_count = PYTHON_IMAGE_SPAN_BYTES / 4};
    uint32_t number;
    assert_int_equal(python_image_add(&image, &function, &number), -EFBIG);
    function.line_count = SIZE_MAX;
    assert_int_equal(python_image_add(&image, &function, &number), -EFBIG);
    assert_int_equal(image.functions.count, 0);
}

static int make_small_image(void)
{
    struct python_image small;
    struct python_image_bytes made;
    static const int32_t lines[] = {1, 2};
    uint32_t number;
    if (python_image_init(&small) < 0)
        return -ENOMEM;
    struct python_image_function function = {.name = "f",
                                             .name_length = 1,
                                             .file = "a.py",
                                             .file_length = 4,
                                             .first_line = 1,
                                             .lines = lines,
                                             .line_count = 2};
    int error = python_image_add(&small, &function, &number);
    if (!error)
        error = python_image_finish(&small, BUILD_ID, &made);
    if (!error)
        free(made.data);
    python_image_done(&small);
    return error;
}

static void memory_may_be_short(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = make_small_image();
        bool failed = failing_malloc_stop();
        assert_int_equal(result, failed ? -ENOMEM : 0);
        if (!failed) {
            assert_true(n > 5);
            return;
        }
    }
}

/* 50,000 functions of 10 lines. */
static bool make_large_image(void)
{
    struct python_image large;
    struct python_image_bytes made;
    int32_t lines[10];
    char name[32];
    uint32_t number;
    bool is_well = python_image_init(&large) == 0;
    for (int i = 0; is_well && i < 50000; i++) {
        for (int n = 0; n < 10; n++)
            lines[n] = i * 12 + n;
        snprintf(name, sizeof name, "function_%d", i);
        struct python_image_function function = {.name = name,
                                                 .name_length = strlen(name),
                                                 .file = "a.py",
                                                 .file_length = 4,
                                                 .first_line = (uint32_t)i * 12,
                                                 .lines = lines,
                                                 .line_count = 10};
        is_well = python_image_add(&large, &function, &number) == 0;
    }
    is_well = is_well && python_image_finish(&large, BUILD_ID, &made) == 0;
    is_well = is_well && made.length < 7000000;
    if (is_well)
        free(made.data);
    python_image_done(&large);
    return is_well;
}

static void many_functions_are_no_trouble(void **state)
{
    (void)state;
    assert_true(ends_within(20, make_large_image));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_line_has_an_address_in_its_function),
        cmocka_unit_test(addresses_stay_when_functions_follow),
        cmocka_unit_test(lines_that_are_not_there_count_as_the_first),
        cmocka_unit_test(the_build_id_is_the_callers),
        cmocka_unit_test(an_image_without_functions_is_valid),
        cmocka_unit_test(names_of_any_bytes_become_one_line),
        cmocka_unit_test(of_long_names_the_middle_is_left_out),
        cmocka_unit_test(more_lines_than_addresses_are_refused),
        cmocka_unit_test(memory_may_be_short),
        cmocka_unit_test(many_functions_are_no_trouble),
    };
    return cmocka_run_group_tests(tests, NULL, release);
}
