/* Code without a description: what its bytes say at each of its addresses. */
#include "unwind/unwind.h"

#include "unit.h"

#include <elf.h>

enum { RBP = 6, RSP = 7 };

/* At offset `at` the CFA is rsp + cfa, and rbp is on the stack or not. */
struct expected {
    size_t at;
    int32_t cfa;
    bool has_rbp;
};

static void assert_rules(const uint8_t *code, size_t bytes, const struct expected *expected,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct unwind_rule *rule =
            unwind_rule_of_code(EM_X86_64, code, bytes, expected[i].at);
        assert_non_null(rule);
        assert_int_equal(rule->cfa, UNWIND_CFA_REGISTER);
        assert_int_equal(rule->cfa_number, RSP);
        assert_int_equal(rule->cfa_offset, expected[i].cfa);
        assert_int_equal(rule->return_address.kind, UNWIND_AT_CFA);
        assert_int_equal(rule->return_address.offset, -8);
        assert_int_equal(rule->place_count, expected[i].has_rbp);
        assert_int_equal(rule->restored, expected[i].has_rbp ? 1u << RBP : 0);
        if (expected[i].has_rbp)
            assert_int_equal(rule->places[0].offset, -16);
    }
}

static void a_gap_in_the_stack(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec,
                                   0x08,                                      /* endbr64; sub */
                                   0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}; /* call; add; ret */
    static const struct expected EXPECTED[] = {{0, 8, 0},  {4, 8, 0},   {8, 16, 0},
                                               {9, 16, 0}, {10, 16, 0}, {14, 8, 0}};
    assert_rules(CODE, sizeof CODE, EXPECTED, COUNT(EXPECTED));
}

static void a_frame_pointer(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
    static const struct expected EXPECTED[] = {{0, 8, 0},  {1, 16, 1}, {4, 16, 1},
                                               {5, 16, 1}, {6, 16, 1}, {7, 8, 0}};
    assert_rules(CODE, sizeof CODE, EXPECTED, COUNT(EXPECTED));
}

static void what_is_not_understood_has_no_rule(void **state)
{
    (void)state;
    static const uint8_t CODES[][8] = {
        {0x48, 0x83, 0xc4, 0x20, 0xc3},       /* more than trampolines have */
        {0xff, 0xd0, 0xc3},                   /* another call */
        {0x55, 0xc3},                         /* returns to what it pushed */
        {0xc9, 0xc3},                         /* leave */
        {0x48, 0x89, 0xe5, 0x90, 0x90, 0xc3}, /* nop */
    };
    for (size_t i = 0; i < COUNT(CODES); i++)
        assert_null(unwind_rule_of_code(EM_X86_64, CODES[i], sizeof CODES[i], 0));
    static const uint8_t ENDLESS[] = {0x48, 0x89, 0xe5, 0x48, 0x83, 0xc4};
    for (size_t bytes = 0; bytes <= sizeof ENDLESS; bytes++)
        assert_null(unwind_rule_of_code(EM_X86_64, ENDLESS, bytes, 0));
    static const uint8_t RETURN[] = {0xc3};
    assert_null(unwind_rule_of_code(EM_AARCH64, RETURN, sizeof RETURN, 0));
    assert_null(unwind_rule_of_code(EM_X86_64, RETURN, sizeof RETURN, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_in_the_stack),
        cmocka_unit_test(a_frame_pointer),
        cmocka_unit_test(what_is_not_understood_has_no_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
