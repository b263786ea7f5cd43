#include "cmd/perf_version.h"

#include "unit.h"

static struct perf_version version_of(const char *text)
{
    struct perf_version version;
    assert_true(perf_version_read(text, &version));
    return version;
}

#define assert_version(text, expected_major, expected_minor, expected_patch)                       \
    do {                                                                                           \
        struct perf_version assert_read = version_of(text);                                        \
        assert_int_equal(assert_read.major, expected_major);                                       \
        assert_int_equal(assert_read.minor, expected_minor);                                       \
        assert_int_equal(assert_read.patch, expected_patch);                                       \
    } while (0)

static void reads_versions_as_perf_prints_them(void **state)
{
    (void)state;
    assert_version("perf version 6.1.187", 6, 1, 187);
    assert_version("perf version 7.2", 7, 2, 0);
    assert_version("perf version 5.15.149.g8a1b", 5, 15, 149);
    assert_version("perf version 6.8.rc1.gabc", 6, 8, 0);
}

static void a_distributions_suffix_is_no_patch_level(void **state)
{
    (void)state;
    assert_version("perf version 6.7-3", 6, 7, 0);
    assert_version("perf version 6.7.2-1~bpo", 6, 7, 2);
}

static void a_text_without_a_version_is_refused(void **state)
{
    (void)state;
    struct perf_version version;
    assert_false(perf_version_read("", &version));
    assert_false(perf_version_read("perf", &version));
    assert_false(perf_version_read("perf version 6", &version));
    assert_false(perf_version_read("perf version 6.", &version));
}

static void the_jit_fix_came_with_6_8_and_6_7_2(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool has_fix;
    } cases[] = {
        {"6.1.187", false}, {"6.7", false}, {"6.7-3", false}, {"6.7.1", false}, {"6.7.2", true},
        {"6.8", true},      {"6.12", true}, {"7.0", true},    {"5.19", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_int_equal(perf_version_has_jit_fix(version_of(cases[i].text)), cases[i].has_fix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_versions_as_perf_prints_them),
        cmocka_unit_test(a_distributions_suffix_is_no_patch_level),
        cmocka_unit_test(a_text_without_a_version_is_refused),
        cmocka_unit_test(the_jit_fix_came_with_6_8_and_6_7_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
