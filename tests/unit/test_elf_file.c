/* The ELF reader on the file that every test has at hand: the test program itself. */
#include "elf/elf_file.h"

#include "base/file.h"
#include "elf/frame_pointers.h"
#include "unit.h"

#include <errno.h>

/* Its bytes are known, so that they can be looked for in the file. Global, for the symbol table. */
extern const char marker_in_the_program[];
const char marker_in_the_program[] = "the bytes behind a symbol";

static struct file self;

static struct elf_file open_self(void)
{
    struct elf_file elf;
    assert_int_equal(elf_file_open(&elf, "self", self.data, self.length), 0);
    return elf;
}

static bool find_symbol(const struct elf_file *elf, const char *name, struct elf_symbol *ret_symbol)
{
    struct elf_symbols symbols;
    if (!elf_symbols_init(&symbols, elf, SHT_SYMTAB))
        return false;
    while (elf_symbols_next(&symbols, ret_symbol)) {
        if (strcmp(ret_symbol->name, name) == 0)
            return true;
    }
    return false;
}

static void a_symbol_leads_to_its_bytes(void **state)
{
    (void)state;
    struct elf_file elf = open_self();
    struct elf_symbol symbol;
    assert_true(find_symbol(&elf, "marker_in_the_program", &symbol));
    assert_int_equal(symbol.type, STT_OBJECT);
    assert_true(symbol.size >= sizeof marker_in_the_program);
    const uint8_t *bytes = elf_file_bytes(&elf, symbol.svma, sizeof marker_in_the_program);
    assert_non_null(bytes);
    assert_memory_equal(bytes, marker_in_the_program, sizeof marker_in_the_program);
}

static void functions_are_told_from_data(void **state)
{
    (void)state;
    struct elf_file elf = open_self();
    struct elf_symbol symbol;
    assert_true(find_symbol(&elf, "main", &symbol));
    assert_int_equal(symbol.type, STT_FUNC);
}

static void an_address_outside_of_all_segments_has_no_bytes(void **state)
{
    (void)state;
    struct elf_file elf = open_self();
    assert_null(elf_file_bytes(&elf, UINT64_MAX - 8, 4));
}

static void other_files_are_refused_with_a_reason(void **state)
{
    (void)state;
    struct elf_file elf;
    assert_int_equal(elf_file_open(&elf, "text", "#!/bin/sh\n", 10), -EBADMSG);
    assert_non_null(elf.problem);
    uint8_t *copy = exact_copy(self.data, sizeof(Elf64_Ehdr));
    copy[EI_CLASS] = ELFCLASS32;
    assert_int_equal(elf_file_open(&elf, "32 bit", copy, sizeof(Elf64_Ehdr)), -ENOTSUP);
    free(copy);
}

/* Whatever is missing or pointed elsewhere, walking ends and stays within the bytes. */
static void a_file_cut_anywhere_is_survived(void **state)
{
    (void)state;
    for (size_t length = sizeof(Elf64_Ehdr); length < self.length; length += self.length / 61) {
        uint8_t *copy = exact_copy(self.data, length);
        struct elf_file elf;
        struct elf_symbol symbol;
        assert_int_equal(elf_file_open(&elf, "cut", copy, length), 0);
        find_symbol(&elf, "no symbol has this name", &symbol);
        frame_pointers_count(&elf);
        free(copy);
    }
}

static void flipped_headers_are_survived(void **state)
{
    (void)state;
    uint64_t random = 7;
    struct elf_file elf = open_self();
    for (int round = 0; round < 500; round++) {
        uint8_t *copy = exact_copy(self.data, self.length);
        struct elf_symbol symbol;
        size_t headers[] = {0, elf.header.e_shoff, elf.header.e_phoff};
        size_t place = headers[round % 3] + 16 + next_random(&random) % 512;
        copy[place % self.length] ^= (uint8_t)next_random(&random);
        if (elf_file_open(&elf, "flipped", copy, self.length) == 0) {
            find_symbol(&elf, "main", &symbol);
            frame_pointers_count(&elf);
        }
        elf = open_self();
        free(copy);
    }
}

int main(void)
{
    if (file_read("/proc/self/exe", &self) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbol_leads_to_its_bytes),
        cmocka_unit_test(functions_are_told_from_data),
        cmocka_unit_test(an_address_outside_of_all_segments_has_no_bytes),
        cmocka_unit_test(other_files_are_refused_with_a_reason),
        cmocka_unit_test(a_file_cut_anywhere_is_survived),
        cmocka_unit_test(flipped_headers_are_survived),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    file_done(&self);
    return failed;
}
