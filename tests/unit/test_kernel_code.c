#include "record/kernel_code.h"

#include "unit.h"

static struct kernel_module module;

/* How many modules there are in a text; the last one is in `module`. */
static size_t count_modules(const char *text)
{
    const char *at = text, *end = text + strlen(text);
    size_t count = 0;
    while (kernel_code_next_module(&at, end, &module))
        count++;
    assert_ptr_equal(at, end);
    return count;
}

static void test_modules(void **state)
{
    (void)state;
    assert_int_equal(count_modules("nft_nat 16384 0 - Live 0xffffffffc0500000\n"
                                   "nf_nat 57344 2 nft_nat,xt_nat, Live 0xffffffffc0403000 (OE)\n"),
                     2);
    assert_string_equal(module.name, "[nf_nat]");
    assert_int_equal(module.start_avma, 0xffffffffc0403000);
    assert_int_equal(module.end_avma, 0xffffffffc0403000 + 57344);
}

static void test_the_last_line_may_be_without_its_end(void **state)
{
    (void)state;
    assert_int_equal(count_modules("ext4 4096 1 - Live 0xffffffffc0000000"), 1);
}

static void test_hidden_addresses_are_none(void **state)
{
    (void)state;
    assert_int_equal(count_modules("ext4 4096 1 - Live 0x0000000000000000\n"), 0);
}

static void test_what_is_no_module_is_passed_over(void **state)
{
    (void)state;
    assert_int_equal(count_modules(""), 0);
    assert_int_equal(count_modules("\n\next4\next4 many 1 - Live 0x1000\n"
                                   "ext4 0 1 - Live 0x1000\n"
                                   "ext4 4096 1 - Live 0xffffffffffffffff\n"),
                     0);
    char line[8192];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    assert_int_equal(count_modules(line), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_the_last_line_may_be_without_its_end),
        cmocka_unit_test(test_hidden_addresses_are_none),
        cmocka_unit_test(test_what_is_no_module_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
