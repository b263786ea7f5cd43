/* Symbols by address: on the test program itself, and by the rules of names. */
#include "elf/elf_symtab.h"

#include "elf/elf_debug.h"
#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>
#include <stdio.h>

/* Two names for one function, and one inside of another, as assembly has it. */
__asm__(".text\n"
        ".globl symtab_global_name\n"
        ".type symtab_global_name, @function\n"
        ".type symtab_local_name_of_it, @function\n"
        ".weak symtab_weak_name_of_it_which_is_long\n"
        ".type symtab_weak_name_of_it_which_is_long, @function\n"
        "symtab_global_name:\n"
        "symtab_local_name_of_it:\n"
        "symtab_weak_name_of_it_which_is_long:\n"
        "nop; nop; nop; nop\n"
        "symtab_inner:\n"
        "nop; nop\n"
        ".size symtab_inner, 2\n"
        "nop; nop\n"
        ".size symtab_global_name, 8\n"
        ".size symtab_local_name_of_it, 8\n"
        ".size symtab_weak_name_of_it_which_is_long, 8\n"
        ".globl symtab_without_size\n"
        "symtab_without_size:\n"
        "nop; nop; nop\n"
        ".globl symtab_behind_it\n"
        ".type symtab_behind_it, @function\n"
        "symtab_behind_it: ret\n"
        ".size symtab_behind_it, 1\n");

static struct elf_object *self;
static struct elf_symtab symtab;

static uint64_t svma_of(const char *name)
{
    struct elf_symbols symbols;
    struct elf_symbol symbol;
    assert_true(elf_symbols_init(&symbols, &self->elf, SHT_SYMTAB));
    while (elf_symbols_next(&symbols, &symbol)) {
        if (strcmp(symbol.name, name) == 0)
            return symbol.svma;
    }
    fail_msg("there is no symbol %s", name);
    return 0;
}

static const char *name_at(uint64_t svma)
{
    const struct elf_symtab_entry *entry = elf_symtab_find(&symtab, svma);
    return entry ? entry->name : "nothing";
}

static void of_several_names_the_global_one_counts(void **state)
{
    (void)state;
    uint64_t svma = svma_of("symtab_global_name");
    assert_string_equal(name_at(svma), "symtab_global_name");
    assert_string_equal(name_at(svma + 3), "symtab_global_name");
    const struct elf_symtab_entry *entry = elf_symtab_find(&symtab, svma);
    assert_int_equal(entry->svma, svma);
    assert_int_equal(entry->size, 8);
    assert_int_equal(entry->binding, STB_GLOBAL);
}

static void the_innermost_symbol_counts_and_behind_it_the_outer_one(void **state)
{
    (void)state;
    uint64_t svma = svma_of("symtab_global_name");
    assert_string_equal(name_at(svma + 4), "symtab_inner");
    assert_string_equal(name_at(svma + 5), "symtab_inner");
    assert_string_equal(name_at(svma + 6), "symtab_global_name");
    assert_string_equal(name_at(svma + 7), "symtab_global_name");
}

static void a_symbol_without_size_reaches_to_the_next(void **state)
{
    (void)state;
    uint64_t svma = svma_of("symtab_without_size");
    assert_string_equal(name_at(svma + 2), "symtab_without_size");
    assert_int_equal(elf_symtab_find(&symtab, svma)->size, 3);
    assert_string_equal(name_at(svma + 3), "symtab_behind_it");
}

static void plt_entries_have_the_names_of_what_they_call(void **state)
{
    (void)state;
    size_t found = 0;
    for (size_t i = 0; i < symtab.entries.count; i++) {
        const struct elf_symtab_entry *entry = &symtab.entries.items[i];
        size_t length = strlen(entry->name);
        if (!entry->is_plt)
            continue;
        found++;
        assert_true(length > 4 && strcmp(entry->name + length - 4, "@plt") == 0);
        assert_string_equal(name_at(entry->svma + entry->size - 1), entry->name);
    }
    assert_true(found > 3);
}

static void outside_of_all_symbols_there_is_nothing(void **state)
{
    (void)state;
    assert_null(elf_symtab_find(&symtab, 0));
    assert_null(elf_symtab_find(&symtab, UINT64_MAX));
}

static void entries_ascend_and_differ(void **state)
{
    (void)state;
    assert_true(symtab.entries.count > 100);
    for (size_t i = 1; i < symtab.entries.count; i++)
        assert_true(symtab.entries.items[i - 1].svma < symtab.entries.items[i].svma);
}

static void a_mapping_leads_from_addresses_of_the_process_to_those_of_the_file(void **state)
{
    (void)state;
    uint64_t fileoff, svma = svma_of("symtab_global_name"), again, bias;
    assert_true(elf_object_fileoff_of(self, svma, &fileoff));
    assert_true(elf_object_svma_of(self, fileoff, &again));
    assert_int_equal(again, svma);
    struct elf_mapping mapping = {
        .start_avma = 0x7f0000000000, .length = 0x1000, .pgoff = fileoff & ~(uint64_t)0xfff};
    assert_true(elf_object_bias(self, &mapping, &bias));
    assert_int_equal(mapping.start_avma + fileoff - mapping.pgoff, svma + bias);
    mapping.pgoff = (uint64_t)1 << 40;
    assert_false(elf_object_bias(self, &mapping, &bias));
}

static void a_debug_file_is_found_by_its_build_id_only(void **state)
{
    (void)state;
    size_t length;
    const uint8_t *id = elf_file_build_id(&self->elf, &length);
    if (!id)
        skip(); /* a linker that makes none */
    char folder[] = "/tmp/pitviper-debug-XXXXXX", command[512], path[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/.build-id/%02x", folder, id[0]);
    snprintf(command, sizeof command, "mkdir -p %s", path);
    assert_int_equal(system(command), 0); /* NOLINT */
    size_t used = strlen(path);
    path[used++] = '/';
    for (size_t i = 1; i < length; i++, used += 2)
        snprintf(path + used, 3, "%02x", id[i]);
    strcpy(path + used, ".debug");
    struct elf_debug_search search = {.debug_dir = folder};
    struct elf_object *debug = NULL;
    assert_int_equal(elf_debug_open(&search, self, &debug), -ENOENT);
    snprintf(command, sizeof command, "cp /bin/sh %s", path);
    assert_int_equal(system(command), 0); /* NOLINT: another build */
    assert_int_equal(elf_debug_open(&search, self, &debug), -ENOENT);
    snprintf(command, sizeof command, "cp %s %s", self->path, path);
    assert_int_equal(system(command), 0); /* NOLINT */
    assert_int_equal(elf_debug_open(&search, self, &debug), 0);
    elf_object_close(debug);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0); /* NOLINT */
}

static void the_checksum_is_that_of_zlib(void **state)
{
    (void)state;
    assert_int_equal(elf_debug_crc("123456789", 9), 0xcbf43926u);
}

static void memory_that_runs_short_is_reported(void **state)
{
    (void)state;
    for (long n = 0;; n++) {
        struct elf_symtab short_of_memory;
        failing_malloc_after(n);
        int result = elf_symtab_init(&short_of_memory, self, NULL);
        bool failed = failing_malloc_stop();
        if (result == 0)
            elf_symtab_done(&short_of_memory);
        else
            assert_int_equal(result, -ENOMEM);
        if (!failed)
            break;
    }
}

static void damaged_files_are_survived(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int round = 0; round < 40; round++) {
        uint8_t *copy = exact_copy(self->data, self->length);
        uint64_t headers[] = {0, self->elf.header.e_shoff, self->elf.header.e_phoff};
        for (int flips = 0; flips < 8; flips++)
            copy[(headers[round % 3] + 16 + next_random(&random) % 2048) % self->length] ^=
                (uint8_t)next_random(&random);
        struct elf_object *object;
        struct elf_symtab damaged;
        if (elf_object_open_memory("flipped", copy, self->length, &object) == 0) {
            assert_int_equal(elf_symtab_init(&damaged, object, NULL), 0);
            elf_symtab_find(&damaged, 0x1234);
            elf_symtab_done(&damaged);
            elf_object_close(object);
        }
        free(copy);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    if (elf_object_open(argv[0], &self) < 0 || elf_symtab_init(&symtab, self, NULL) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_several_names_the_global_one_counts),
        cmocka_unit_test(the_innermost_symbol_counts_and_behind_it_the_outer_one),
        cmocka_unit_test(a_symbol_without_size_reaches_to_the_next),
        cmocka_unit_test(plt_entries_have_the_names_of_what_they_call),
        cmocka_unit_test(outside_of_all_symbols_there_is_nothing),
        cmocka_unit_test(entries_ascend_and_differ),
        cmocka_unit_test(a_mapping_leads_from_addresses_of_the_process_to_those_of_the_file),
        cmocka_unit_test(a_debug_file_is_found_by_its_build_id_only),
        cmocka_unit_test(the_checksum_is_that_of_zlib),
        cmocka_unit_test(memory_that_runs_short_is_reported),
        cmocka_unit_test(damaged_files_are_survived),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    elf_symtab_done(&symtab);
    elf_object_close(self);
    return failed;
}
