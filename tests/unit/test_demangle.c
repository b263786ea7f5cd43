/* Mangled names of the three kinds, and others that are left alone. */
#include "symbol/demangle.h"

#include "unit.h"

static void assert_demangled(const char *name, const char *wanted)
{
    char *text = demangle(name);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static void assert_left_alone(const char *name)
{
    assert_null(demangle(name));
}

static void cxx_names_are_demangled(void **state)
{
    (void)state;
    assert_demangled("_ZNSt6vectorIiSaIiEE9push_backERKi",
                     "std::vector<int, std::allocator<int> >::push_back(int const&)");
}

static void legacy_rust_names_lose_their_hash(void **state)
{
    (void)state;
    assert_demangled("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
                     "core::fmt::Formatter::write_str");
    assert_demangled("_ZN4core3fmt5write17h0123456789abcdefE.llvm.1234", "core::fmt::write");
    assert_demangled("_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$"
                     "3bar17h930b740aa94f1d3aE",
                     "<Test + 'static as foo::Bar<Test>>::bar");
}

static void v0_rust_names_are_demangled(void **state)
{
    (void)state;
    assert_demangled("_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar");
    assert_demangled("_RNCNvCs1234_7mycrate4main0B3_", "mycrate::main::{closure#0}");
    assert_demangled("_RNvMCs4fqI2P2rA04_13const_genericINtB2_8UnsignedKhb_E3new",
                     "<const_generic::Unsigned<11>>::new");
    assert_demangled("_RINvNtC3std3mem8align_ofNtNtC3std3mem12DiscriminantE",
                     "std::mem::align_of::<std::mem::Discriminant>");
    assert_demangled("_RINvC1a1fTRShQAmj3_PuFUKCjEbEE",
                     "a::f::<(&[u8], &mut [u32; 3], *const (), unsafe extern \"C\" fn(usize) -> "
                     "bool)>");
    assert_demangled("_RINvC1a1fDNtC1b5Tracep4ItemhEL_E", "a::f::<dyn b::Trace<Item = u8>>");
}

static void other_names_are_left_alone(void **state)
{
    (void)state;
    assert_left_alone("main");
    assert_left_alone("_ZN");
    assert_left_alone("_Z");
    assert_left_alone("_R");
    assert_left_alone("_RNvC");
    assert_left_alone("_RNvC9999999999999999999a1b");
    assert_left_alone("_Really_an_identifier");
    assert_left_alone("");
}

/* Back references to ever longer things, and to themselves. */
static void names_that_would_explode_are_left_alone(void **state)
{
    (void)state;
    assert_left_alone("_RNvB_1a");
    char name[4096] = "_RINvC1a1f";
    for (int i = 0; i < 900; i++)
        strcat(name, "TB8_");
    assert_left_alone(name);
    memset(name + 8, 'R', 2000);
    name[2008] = '\0';
    assert_left_alone(name);
}

static void names_cut_anywhere_are_survived(void **state)
{
    (void)state;
    static const char *const NAMES[] = {
        "_RINvC1a1fTRShQAmj3_PuFUKCjEbEE", "_RINvC1a1fDNtC1b5Tracep4ItemhEL_E",
        "_ZN71_$LT$Test$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE"};
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        for (size_t length = 0; length < strlen(NAMES[i]); length++) {
            char *cut = (char *)exact_copy(NAMES[i], length + 1);
            cut[length] = '\0';
            free(demangle(cut));
            free(cut);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cxx_names_are_demangled),
        cmocka_unit_test(legacy_rust_names_lose_their_hash),
        cmocka_unit_test(v0_rust_names_are_demangled),
        cmocka_unit_test(other_names_are_left_alone),
        cmocka_unit_test(names_that_would_explode_are_left_alone),
        cmocka_unit_test(names_cut_anywhere_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
