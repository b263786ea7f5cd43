#include "symbol/kallsyms.h"

#include "failing_malloc.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static char path[] = "/tmp/pitviper-kallsyms-XXXXXX";
static struct kallsyms kallsyms;

static int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    kallsyms_done(&kallsyms);
    return unlink(path);
}

static void read_text(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    kallsyms_done(&kallsyms);
    fputs(text, file);
    fclose(file);
    assert_int_equal(kallsyms_read(&kallsyms, path), 0);
}

/* The name at an address, or "". */
static const char *name_at(uint64_t avma)
{
    static char name[64];
    struct symbol symbol;
    if (!kallsyms_find(&kallsyms, avma, &symbol))
        return "";
    snprintf(name, sizeof name, "%.*s", (int)symbol.name_length, symbol.name);
    return name;
}

static void a_symbol_reaches_to_the_next(void **state)
{
    (void)state;
    read_text("ffffffff81000000 T _text\nffffffff81000040 t work\nffffffff81000100 D data\n");
    assert_string_equal(name_at(0xffffffff80ffffff), "");
    assert_string_equal(name_at(0xffffffff8100003f), "_text");
    assert_string_equal(name_at(0xffffffff81000040), "work");
    assert_string_equal(name_at(0xffffffff81000100), "data");
    assert_string_equal(name_at(0xffffffff81900000), "");
    assert_int_equal(kallsyms_address(&kallsyms, "work"), 0xffffffff81000040);
    assert_int_equal(kallsyms_address(&kallsyms, "none"), 0);
}

static void of_symbols_at_one_address_the_last_counts(void **state)
{
    (void)state;
    read_text("1000 T first\n1000 T last\n2000 T other\n");
    assert_string_equal(name_at(0x1800), "last");
}

static void symbols_of_modules_may_stand_in_any_order(void **state)
{
    (void)state;
    read_text("3000 t later\t[mod]\n1000 T first\n2000 A absolute\n");
    assert_string_equal(name_at(0x3000), "later");
    assert_string_equal(name_at(0x2000), "first");
    assert_int_equal(kallsyms_address(&kallsyms, "later"), 0);
}

static void hidden_addresses_are_noticed(void **state)
{
    (void)state;
    read_text("0000000000000000 T _text\n0000000000000000 T work\n");
    assert_true(kallsyms.is_hidden);
    assert_string_equal(name_at(0), "");
}

static void lines_that_are_none_are_passed_over(void **state)
{
    (void)state;
    read_text("\nzzz\n10\n20 T\n30 T \n1000 T good\n12345678901234567 T long\n2000 T x\t[\n4000 T");
    assert_string_equal(name_at(0x1000), "good");
    assert_string_equal(name_at(0x2000), "x");
    assert_int_equal(kallsyms.entries.count, 2);
}

static void short_memory_is_an_error_and_leaks_nothing(void **state)
{
    (void)state;
    read_text("1000 T a\n2000 T b\n");
    kallsyms_done(&kallsyms);
    for (long n = 0;; n++) {
        failing_malloc_after(n);
        int result = kallsyms_read(&kallsyms, path);
        if (!failing_malloc_stop())
            break;
        assert_int_equal(result, -ENOMEM);
    }
    assert_string_equal(name_at(0x1000), "a");
}

static void a_file_that_is_not_there_is_an_error(void **state)
{
    (void)state;
    struct kallsyms none;
    assert_int_equal(kallsyms_read(&none, "/nonexistent"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_symbol_reaches_to_the_next),
        cmocka_unit_test(of_symbols_at_one_address_the_last_counts),
        cmocka_unit_test(symbols_of_modules_may_stand_in_any_order),
        cmocka_unit_test(hidden_addresses_are_noticed),
        cmocka_unit_test(lines_that_are_none_are_passed_over),
        cmocka_unit_test(short_memory_is_an_error_and_leaks_nothing),
        cmocka_unit_test(a_file_that_is_not_there_is_an_error),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
