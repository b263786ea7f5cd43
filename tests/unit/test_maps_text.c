#include "record/maps_text.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static struct maps_mapping mapping;

/* The executable mappings of a text; the last one stays in `mapping`. */
static int count(const char *text)
{
    struct maps_text walk = maps_text_init(text, strlen(text));
    struct maps_mapping next;
    int found = 0;
    while (maps_text_next(&walk, &next)) {
        mapping = next;
        found++;
    }
    return found;
}

static void test_a_file(void **state)
{
    (void)state;
    assert_int_equal(count("7f00a000-7f00c000 r-xp 00002000 fd:1f 1055   /usr/lib/a b.so\n"), 1);
    assert_int_equal(mapping.start_avma, 0x7f00a000);
    assert_int_equal(mapping.end_avma, 0x7f00c000);
    assert_int_equal(mapping.fileoff, 0x2000);
    assert_int_equal(mapping.device_major, 0xfd);
    assert_int_equal(mapping.device_minor, 0x1f);
    assert_int_equal(mapping.inode, 1055);
    assert_string_equal(mapping.path, "/usr/lib/a b.so");
    assert_false(mapping.is_deleted);
    assert_false(mapping.is_writable);
}

static void test_only_code_counts(void **state)
{
    (void)state;
    assert_int_equal(count("1000-2000 r--p 00000000 00:00 1 /a\n"
                           "2000-3000 r-xp 00001000 00:00 1 /a\n"
                           "3000-4000 rw-p 00002000 00:00 1 /a\n"),
                     1);
    assert_int_equal(mapping.start_avma, 0x2000);
}

static void test_generated_code_is_named_as_perf_names_it(void **state)
{
    (void)state;
    assert_int_equal(count("1000-2000 rwxp 00000000 00:00 0 \n"), 1);
    assert_string_equal(mapping.path, "//anon");
    assert_true(mapping.is_writable);
    assert_int_equal(count("1000-2000 r-xp 00000000 00:00 0\n"), 1);
    assert_string_equal(mapping.path, "//anon");
}

static void test_vdso(void **state)
{
    (void)state;
    assert_int_equal(count("7ffd5000-7ffd6000 r-xp 00000000 00:00 0    [vdso]\n"), 1);
    assert_string_equal(mapping.path, "[vdso]");
}

static void test_a_file_that_was_deleted(void **state)
{
    (void)state;
    assert_int_equal(count("1000-2000 r-xp 00000000 00:00 7 /tmp/x (deleted)\n"), 1);
    assert_string_equal(mapping.path, "/tmp/x");
    assert_true(mapping.is_deleted);
}

static void test_a_line_end_in_a_path(void **state)
{
    (void)state;
    assert_int_equal(count("1000-2000 r-xp 00000000 00:00 7 /tmp/a\\012b\n"), 1);
    assert_string_equal(mapping.path, "/tmp/a\nb");
}

static void test_what_is_cut_off_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(count("1000-2000 r-xp 00000000 00:00 7 /a\n2000-3000 r-xp 00000000 00:0"), 1);
    assert_int_equal(count("1000-2000 r-xp 00000000 00:00 7 /usr/lib/lib"), 0);
}

static void test_nonsense_is_passed_over(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "\n",
        "hello\n",
        "2000-1000 r-xp 00000000 00:00 0 /a\n",
        "1000-1000 r-xp 00000000 00:00 0 /a\n",
        "10000000000000000-20000000000000000 r-xp 00000000 00:00 0 /a\n",
        "1000-2000 r-xp\n",
        "1000-2000 r-xp 0 00:00\n",
        "1000+2000 r-xp 00000000 00:00 0 /a\n",
        "1000-2000 r-xp zz 00:00 0 /a\n",
    };
    char text[256];
    for (size_t i = 0; i < COUNT(lines); i++) {
        assert_int_equal(count(lines[i]), 0);
        snprintf(text, sizeof text, "%s1000-2000 r-xp 00000000 00:00 7 /good\n", lines[i]);
        assert_int_equal(count(text), 1);
        assert_string_equal(mapping.path, "/good");
    }
}

static void test_a_path_that_is_too_long_is_passed_over(void **state)
{
    (void)state;
    static char text[2 * PATH_MAX];
    int length = snprintf(text, sizeof text, "1000-2000 r-xp 00000000 00:00 7 /");
    memset(text + length, 'x', PATH_MAX);
    text[length + PATH_MAX] = '\n';
    assert_int_equal(count(text), 0);
}

static void test_a_nul_in_a_path_is_passed_over(void **state)
{
    (void)state;
    static const char text[] = "1000-2000 r-xp 00000000 00:00 7 /a\0b\n";
    struct maps_text walk = maps_text_init(text, sizeof text - 1);
    assert_int_equal(maps_text_next(&walk, &mapping), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file),
        cmocka_unit_test(test_only_code_counts),
        cmocka_unit_test(test_generated_code_is_named_as_perf_names_it),
        cmocka_unit_test(test_vdso),
        cmocka_unit_test(test_a_file_that_was_deleted),
        cmocka_unit_test(test_a_line_end_in_a_path),
        cmocka_unit_test(test_what_is_cut_off_does_not_count),
        cmocka_unit_test(test_nonsense_is_passed_over),
        cmocka_unit_test(test_a_path_that_is_too_long_is_passed_over),
        cmocka_unit_test(test_a_nul_in_a_path_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
