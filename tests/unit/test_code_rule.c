/* Code without a description: what its instructions say at each of its addresses. */
#include "unwind/code_rules.h"

#include "failing_malloc.h"
#include "unit.h"

#include <elf.h>

enum { BASE = 0x1000, RAX = 0, RBX = 3, RBP = 6, RSP = 7, R12 = 12, R14 = 14, R15 = 15 };

static const uint8_t *code;
static size_t code_bytes;
static struct code_rules rules;

static size_t read_code(void *context, uint64_t address, const uint8_t **ret_code,
                        size_t *ret_before)
{
    (void)context;
    if (address < BASE || address - BASE >= code_bytes)
        return 0;
    *ret_before = address - BASE;
    *ret_code = code + *ret_before;
    return code_bytes - *ret_before;
}

static int tear_down(void **state)
{
    (void)state;
    code_rules_done(&rules);
    return 0;
}

static void use(const uint8_t *bytes, size_t count)
{
    code_rules_done(&rules);
    code = bytes;
    code_bytes = count;
    code_rules_init(&rules, EM_X86_64, (struct code_source){.read = read_code});
}

#define USE(array) use((array), sizeof(array))

static const struct unwind_rule *ask(size_t at, bool is_caller)
{
    struct code_question question = {.address = BASE + at, .is_caller = is_caller};
    return code_rules_find(&rules, &question);
}

/* At offset `at` the CFA is the register + offset, and these registers are at CFA + n; the list
 * ends with a distance of 0. A caller is asked about if the offset is that of the end of a call. */
struct expected {
    size_t at;
    bool is_caller;
    uint8_t cfa_number;
    int32_t cfa_offset;
    struct {
        uint8_t number;
        int32_t offset;
    } saved[4];
};

static void assert_rule(const struct expected *expected)
{
    const struct unwind_rule *rule = ask(expected->at, expected->is_caller);
    unsigned count = 0;
    assert_non_null(rule);
    assert_int_equal(rule->cfa, UNWIND_CFA_REGISTER);
    assert_int_equal(rule->cfa_number, expected->cfa_number);
    assert_int_equal(rule->cfa_offset, expected->cfa_offset);
    assert_int_equal(rule->return_address.kind, UNWIND_AT_CFA);
    assert_int_equal(rule->return_address.offset, -8);
    assert_true(rule->is_guess && !rule->plain_bytes);
    for (; expected->saved[count].offset; count++) {
        assert_int_equal(rule->places[count].kind, UNWIND_AT_CFA);
        assert_int_equal(rule->places[count].target, expected->saved[count].number);
        assert_int_equal(rule->places[count].offset, expected->saved[count].offset);
    }
    assert_int_equal(rule->place_count, count);
}

#define ASSERT_RULES(...)                                                                          \
    do {                                                                                           \
        static const struct expected EXPECTED[] = {__VA_ARGS__};                                   \
        for (size_t i = 0; i < COUNT(EXPECTED); i++)                                               \
            assert_rule(&EXPECTED[i]);                                                             \
    } while (0)

static void a_gap_in_the_stack(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec,
                                   0x08,                                      /* endbr64; sub */
                                   0xff, 0xd1, 0x48, 0x83, 0xc4, 0x08, 0xc3}; /* call; add; ret */
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {4, 0, RSP, 8, {{0}}}, {8, 0, RSP, 16, {{0}}},
                 {10, 1, RSP, 16, {{0}}}, {14, 0, RSP, 8, {{0}}});
}

static void a_frame_pointer(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {
        0x55,                   /*  0 push %rbp */
        0x48, 0x89, 0xe5,       /*  1 mov  %rsp, %rbp */
        0x41, 0x56,             /*  4 push %r14 */
        0x48, 0x83, 0xec, 0x20, /*  6 sub  $0x20, %rsp */
        0xff, 0xd0,             /* 10 call *%rax */
        0x4c, 0x8b, 0x75, 0xf8, /* 12 mov  -8(%rbp), %r14 */
        0xc9, 0xc3,             /* 16 leave; ret */
    };
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {1, 0, RSP, 16, {{RBP, -16}}},
                 {6, 0, RBP, 16, {{RBP, -16}, {R14, -24}}},
                 {12, 1, RBP, 16, {{RBP, -16}, {R14, -24}}}, {16, 0, RBP, 16, {{RBP, -16}}},
                 {17, 0, RSP, 8, {{0}}});
}

/* Between the two, r14 is pushed by rsp and will be read by rbp: that it is the same place can't be
 * seen, but that something is unclear. */
static void what_may_be_saved_or_not_is_unknown(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0x41, 0x56, 0x4c, 0x8b, 0x75, 0xf8, 0xc9, 0xc3};
    USE(CODE);
    const struct unwind_rule *rule = ask(0, false);
    assert_non_null(rule);
    assert_int_equal(rule->place_count, 2);
    assert_int_equal(rule->places[1].target, R14);
    assert_int_equal(rule->places[1].kind, UNWIND_UNDEFINED);
}

static void a_kernel_with_a_loop(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {
        0x48, 0x83, 0xec, 0x18,       /*  0 sub  $0x18, %rsp */
        0x48, 0x89, 0x1c, 0x24,       /*  4 mov  %rbx, (%rsp) */
        0x4c, 0x89, 0x64, 0x24, 0x08, /*  8 mov  %r12, 8(%rsp) */
        0xc4, 0xe2, 0xfd, 0xb8, 0x0f, /* 13 vfmadd231pd (%rdi), %ymm0, %ymm1 */
        0x48, 0x89, 0xfb,             /* 18 mov  %rdi, %rbx */
        0x48, 0xff, 0xce,             /* 21 dec  %rsi */
        0x75, 0xf3,                   /* 24 jne  13 */
        0xc5, 0xf8, 0x77,             /* 26 vzeroupper */
        0x48, 0x8b, 0x1c, 0x24,       /* 29 mov  (%rsp), %rbx */
        0x4c, 0x8b, 0x64, 0x24, 0x08, /* 33 mov  8(%rsp), %r12 */
        0x48, 0x83, 0xc4, 0x18,       /* 38 add  $0x18, %rsp */
        0xc3,                         /* 42 ret */
    };
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {4, 0, RSP, 32, {{0}}}, {8, 0, RSP, 32, {{RBX, -32}}},
                 {13, 0, RSP, 32, {{RBX, -32}, {R12, -24}}},
                 {24, 0, RSP, 32, {{RBX, -32}, {R12, -24}}}, {33, 0, RSP, 32, {{R12, -24}}},
                 {38, 0, RSP, 32, {{0}}}, {42, 0, RSP, 8, {{0}}});
}

static void a_loop_that_ends_by_a_jump(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {
        0x53,             /*  0 push %rbx */
        0x48, 0xff, 0xce, /*  1 dec  %rsi */
        0x78, 0x05,       /*  4 js   11 */
        0x48, 0x89, 0xf3, /*  6 mov  %rsi, %rbx */
        0xeb, 0xf6,       /*  9 jmp  1 */
        0x5b, 0xc3,       /* 11 pop  %rbx; ret */
    };
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {1, 0, RSP, 16, {{RBX, -16}}},
                 {6, 0, RSP, 16, {{RBX, -16}}}, {9, 0, RSP, 16, {{RBX, -16}}},
                 {12, 0, RSP, 8, {{0}}});
}

static void an_aligned_stack(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {
        0x53,                   /*  0 push %rbx */
        0x48, 0x89, 0xe3,       /*  1 mov  %rsp, %rbx */
        0x48, 0x83, 0xe4, 0xc0, /*  4 and  $-64, %rsp */
        0x48, 0x83, 0xec, 0x40, /*  8 sub  $0x40, %rsp */
        0x4c, 0x89, 0x24, 0x24, /* 12 mov  %r12, (%rsp) */
        0xff, 0xd0,             /* 16 call *%rax */
        0x4c, 0x8b, 0x24, 0x24, /* 18 mov  (%rsp), %r12 */
        0x48, 0x89, 0xdc,       /* 22 mov  %rbx, %rsp */
        0x5b, 0xc3,             /* 25 pop  %rbx; ret */
    };
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {1, 0, RSP, 16, {{RBX, -16}}},
                 {4, 0, RBX, 16, {{RBX, -16}}}, {12, 0, RBX, 16, {{RBX, -16}}},
                 {22, 0, RBX, 16, {{RBX, -16}}}, {25, 0, RSP, 16, {{RBX, -16}}});
    const struct unwind_rule *rule = ask(18, true);
    assert_int_equal(rule->cfa_number, RBX);
    assert_int_equal(rule->places[1].target, R12);
    assert_int_equal(rule->places[1].kind, UNWIND_AT);
    assert_int_equal(rule->places[1].number, RSP);
    assert_int_equal(rule->places[1].offset, 0);
}

/* What a stack pointer was is kept in memory, as crypto libraries do. */
static void a_cfa_in_memory(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {
        0x48, 0x89, 0xe0,                         /*  0 mov  %rsp, %rax */
        0x41, 0x57,                               /*  3 push %r15 */
        0x48, 0x81, 0xec, 0x00, 0x01, 0x00, 0x00, /*  5 sub  $0x100, %rsp */
        0x48, 0x83, 0xe4, 0xe0,                   /* 12 and  $-32, %rsp */
        0x48, 0x89, 0x44, 0x24, 0x20,             /* 16 mov  %rax, 0x20(%rsp) */
        0x66, 0x0f, 0x7f, 0x04, 0x24,             /* 21 movdqa %xmm0, (%rsp) */
        0x48, 0x8b, 0x74, 0x24, 0x20,             /* 26 mov  0x20(%rsp), %rsi */
        0x4c, 0x8b, 0x7e, 0xf8,                   /* 31 mov  -8(%rsi), %r15 */
        0x48, 0x8d, 0x26, 0xc3,                   /* 35 lea  (%rsi), %rsp; ret */
    };
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {5, 0, RAX, 8, {{R15, -16}}},
                 {16, 0, RAX, 8, {{R15, -16}}});
    const struct unwind_rule *rule = ask(21, false);
    assert_int_equal(rule->cfa, UNWIND_CFA_MEMORY);
    assert_int_equal(rule->cfa_number, RSP);
    assert_int_equal(rule->cfa_offset, 0x20);
    assert_int_equal(rule->cfa_added, 8);
    assert_int_equal(rule->places[0].target, R15);
    assert_int_equal(rule->places[0].offset, -16);
}

static void behind_a_call_that_does_not_return_is_another_function(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {
        0x48, 0x83, 0xec, 0x08,       /*  0 sub  $8, %rsp */
        0x48, 0x85, 0xff,             /*  4 test %rdi, %rdi */
        0x75, 0x09,                   /*  7 jne  18 */
        0xe8, 0xfb, 0xfe, 0xff, 0xff, /*  9 call abort */
        0x90, 0x53, 0x5b, 0xc3,       /* 14 nop; push %rbx; pop %rbx; ret */
        0x48, 0x83, 0xc4, 0x08, 0xc3, /* 18 add  $8, %rsp; ret */
    };
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {4, 0, RSP, 16, {{0}}});
    assert_null(ask(14, true));
    assert_null(ask(9, false));
}

/* Without the padding it may be an internal function of hand-written code. */
static void calls_with_an_odd_stack_are_followed(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0xe8, 0xfb, 0xfe, 0xff, 0xff, 0xc3};
    USE(CODE);
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {5, 1, RSP, 8, {{0}}});
}

static void a_jump_out_of_the_code_is_the_last_call(void **state)
{
    (void)state;
    static const uint8_t DIRECT[] = {0x48, 0x83, 0xc4, 0x08, 0xe9, 0x00, 0x10, 0x00, 0x00};
    static const uint8_t BY_TABLE[] = {0x48, 0x83, 0xc4, 0x08, 0xff, 0x25, 0x00, 0x10, 0x00, 0x00};
    USE(DIRECT);
    ASSERT_RULES({0, 0, RSP, 16, {{0}}}, {4, 0, RSP, 8, {{0}}});
    USE(BY_TABLE);
    ASSERT_RULES({0, 0, RSP, 16, {{0}}}, {4, 0, RSP, 8, {{0}}});
}

/* A trampoline as libffi has it, and what it leads to. The words that it uses are a page behind. */
static const uint8_t TRAMPOLINE[] = {
    0x48, 0x83, 0xec, 0x10,                   /*  0 sub  $0x10, %rsp */
    0x4c, 0x89, 0x14, 0x24,                   /*  4 mov  %r10, (%rsp) */
    0x4c, 0x8b, 0x15, 0xf1, 0x0f, 0x00, 0x00, /*  8 mov  0xff1(%rip), %r10 */
    0x4c, 0x89, 0x54, 0x24, 0x08,             /* 15 mov  %r10, 8(%rsp) */
    0x4c, 0x8b, 0x15, 0xed, 0x0f, 0x00, 0x00, /* 20 mov  0xfed(%rip), %r10 */
    0x41, 0xff, 0xe2,                         /* 27 jmp  *%r10 */
    0x90, 0x90,                               /* 30 */
    0x4c, 0x8b, 0x54, 0x24, 0x08,             /* 32 mov  8(%rsp), %r10 */
    0x48, 0x83, 0xc4, 0x10,                   /* 37 add  $0x10, %rsp */
    0xeb, 0x04,                               /* 41 jmp  47 */
    0x90, 0x90, 0x90, 0x90,                   /* 43 */
    0x0f, 0x0b,                               /* 47 ud2 */
};

static struct unwind_rule description; /* of offset 47 */

static const struct unwind_rule *describe(void *context, uint64_t address)
{
    (void)context;
    return address == BASE + 47 ? &description : NULL;
}

static bool read_word(void *context, uint64_t address, uint64_t *ret_word)
{
    (void)context;
    *ret_word = BASE + 32;
    return address == BASE + 0x1008;
}

static void use_trampoline(struct code_source source)
{
    USE(TRAMPOLINE);
    description = (struct unwind_rule){.cfa = UNWIND_CFA_REGISTER,
                                       .cfa_number = RSP,
                                       .cfa_offset = 8,
                                       .return_address = {.kind = UNWIND_AT_CFA, .offset = -8}};
    rules.source.describe = source.describe;
    rules.source.read_word = source.read_word;
}

static void a_jump_to_described_code_has_what_its_table_says(void **state)
{
    (void)state;
    use_trampoline((struct code_source){.describe = describe});
    ASSERT_RULES({32, 0, RSP, 24, {{0}}}, {41, 0, RSP, 8, {{0}}});
    assert_null(ask(0, false));
    assert_null(ask(47, false)); /* nobody has jumped */
    use_trampoline((struct code_source){0});
    assert_null(ask(32, false));
}

static void registers_are_where_the_table_of_a_jumps_target_has_them(void **state)
{
    (void)state;
    use_trampoline((struct code_source){.describe = describe});
    description.cfa_offset = 40;
    description.place_count = 2;
    description.places[0] =
        (struct unwind_place){.kind = UNWIND_AT_CFA, .target = RBX, .offset = -24};
    description.places[1] =
        (struct unwind_place){.kind = UNWIND_AT_CFA, .target = R12, .offset = -16};
    ASSERT_RULES({32, 0, RSP, 56, {{RBX, -24}, {R12, -16}}},
                 {41, 0, RSP, 40, {{RBX, -24}, {R12, -16}}});
}

static void other_descriptions_of_a_jumps_target_are_not_used(void **state)
{
    (void)state;
    use_trampoline((struct code_source){.describe = describe});
    description.cfa = UNWIND_CFA_EXPRESSION;
    assert_null(ask(32, false));
    use_trampoline((struct code_source){.describe = describe});
    description.return_address.kind = UNWIND_UNDEFINED;
    assert_null(ask(32, false));
    use_trampoline((struct code_source){.describe = describe});
    description.is_signal = 1;
    assert_null(ask(32, false));
}

static void a_jump_by_a_pointer_is_followed_with_memory(void **state)
{
    (void)state;
    use_trampoline((struct code_source){.describe = describe, .read_word = read_word});
    ASSERT_RULES({0, 0, RSP, 8, {{0}}}, {4, 0, RSP, 24, {{0}}}, {8, 0, RSP, 24, {{0}}},
                 {15, 0, RSP, 24, {{0}}}, {20, 0, RSP, 24, {{0}}});
    assert_null(ask(27, false)); /* r10 may be anything */
}

static void registers_that_are_not_given_back_are_lost(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0x31, 0xdb, 0xc3}; /* xor %ebx, %ebx; ret */
    USE(CODE);
    const struct unwind_rule *rule = ask(0, false);
    assert_non_null(rule);
    assert_int_equal(rule->place_count, 1);
    assert_int_equal(rule->places[0].target, RBX);
    assert_int_equal(rule->places[0].kind, UNWIND_UNDEFINED);
}

static void what_leads_nowhere_has_no_rule(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[16];
        size_t count;
    } CODES[] = {
        {{0x55, 0xc3}, 2},                   /* returns to what it pushed */
        {{0xeb, 0xfe}, 2},                   /* a circle */
        {{0xff, 0xe0}, 2},                   /* jmp *%rax */
        {{0x0f, 0x0b, 0xc3}, 3},             /* ud2 */
        {{0x48, 0x83, 0xec, 0x08, 0xc3}, 5}, /* below the stack pointer */
        {{0x48, 0x83, 0xe4, 0xf0, 0xc3}, 5}, /* an aligned stack */
        {{0x90, 0x90, 0x48, 0x83}, 4},       /* cut off */
        {{0x06, 0xc3}, 2},                   /* no instruction */
        {{0x49, 0x89, 0xe3, 0x48, 0x83, 0xec, 0x20, 0xff, 0xd0, 0x4c, 0x89, 0xdc, 0xc3},
         13}, /* kept in r11, which the call loses */
    };
    for (size_t i = 0; i < COUNT(CODES); i++) {
        use(CODES[i].bytes, CODES[i].count);
        assert_null(ask(0, false));
    }
    assert_null(ask(20, false));
    code_rules_done(&rules);
    code_rules_init(&rules, EM_AARCH64, (struct code_source){.read = read_code});
    assert_null(ask(0, false));
}

static void the_work_is_bounded(void **state)
{
    (void)state;
    static uint8_t nops[1 << 20];
    memset(nops, 0x90, sizeof nops);
    nops[sizeof nops - 1] = 0xc3;
    use(nops, sizeof nops);
    assert_null(ask(0, false));
    assert_non_null(ask(sizeof nops - 4000, false));
    memset(nops, 0x75, sizeof nops); /* jumps, all over the place */
    assert_null(ask(4, false));
}

static void known_code_needs_no_check(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3};
    USE(CODE);
    struct code_question question = {.address = BASE + 6, .is_caller = true, .is_certain = true};
    const struct unwind_rule *rule = code_rules_find(&rules, &question);
    assert_non_null(rule);
    assert_false(rule->is_guess);
    assert_int_equal(rule->plain_bytes, 16);
}

static void equal_rules_are_one(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0x90, 0x90, 0xc3};
    USE(CODE);
    const struct unwind_rule *rule = ask(0, false);
    assert_ptr_equal(ask(1, false), rule);
    assert_ptr_equal(ask(0, false), rule);
    code_rules_forget(&rules);
    assert_non_null(ask(0, false));
}

static void calls_are_recognised_from_behind(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[8];
        size_t count;
        bool is_call;
    } CODES[] = {
        {{0xe8, 1, 2, 3, 4}, 5, true},
        {{0xff, 0xd1}, 2, true},                   /* *%rcx */
        {{0x41, 0xff, 0xd4}, 3, true},             /* *%r12 */
        {{0xff, 0x53, 0x10}, 3, true},             /* *16(%rbx) */
        {{0xff, 0x15, 1, 2, 3, 4}, 6, true},       /* *…(%rip) */
        {{0xff, 0x94, 0xc3, 1, 2, 3, 4}, 7, true}, /* *…(%rbx, %rax, 8) */
        {{0xff, 0xe1}, 2, false},                  /* jmp *%rcx */
        {{0x90, 0x90, 0x90, 0x90, 0x90, 0x90}, 6, false},
        {{0xe8, 1, 2, 3, 4, 0x90}, 6, false},
        {{0xd1}, 1, false},
    };
    for (size_t i = 0; i < COUNT(CODES); i++) {
        use(CODES[i].bytes, CODES[i].count);
        assert_int_equal(code_rules_is_behind_call(&rules, BASE + CODES[i].count),
                         CODES[i].is_call);
    }
    assert_false(code_rules_is_behind_call(&rules, BASE));
}

static void without_memory_there_is_no_rule(void **state)
{
    (void)state;
    static const uint8_t CODE[] = {0x90, 0xc3};
    for (long n = 0;; n++) {
        USE(CODE);
        failing_malloc_after(n);
        const struct unwind_rule *rule = ask(0, false);
        if (!failing_malloc_stop()) {
            assert_non_null(rule);
            break;
        }
        assert_non_null(ask(0, false)); /* that there was none is not remembered */
        assert_non_null(ask(1, false));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_gap_in_the_stack, tear_down),
        cmocka_unit_test_teardown(a_frame_pointer, tear_down),
        cmocka_unit_test_teardown(what_may_be_saved_or_not_is_unknown, tear_down),
        cmocka_unit_test_teardown(a_kernel_with_a_loop, tear_down),
        cmocka_unit_test_teardown(a_loop_that_ends_by_a_jump, tear_down),
        cmocka_unit_test_teardown(an_aligned_stack, tear_down),
        cmocka_unit_test_teardown(a_cfa_in_memory, tear_down),
        cmocka_unit_test_teardown(behind_a_call_that_does_not_return_is_another_function,
                                  tear_down),
        cmocka_unit_test_teardown(calls_with_an_odd_stack_are_followed, tear_down),
        cmocka_unit_test_teardown(a_jump_out_of_the_code_is_the_last_call, tear_down),
        cmocka_unit_test_teardown(a_jump_to_described_code_has_what_its_table_says, tear_down),
        cmocka_unit_test_teardown(registers_are_where_the_table_of_a_jumps_target_has_them,
                                  tear_down),
        cmocka_unit_test_teardown(other_descriptions_of_a_jumps_target_are_not_used, tear_down),
        cmocka_unit_test_teardown(a_jump_by_a_pointer_is_followed_with_memory, tear_down),
        cmocka_unit_test_teardown(registers_that_are_not_given_back_are_lost, tear_down),
        cmocka_unit_test_teardown(what_leads_nowhere_has_no_rule, tear_down),
        cmocka_unit_test_teardown(the_work_is_bounded, tear_down),
        cmocka_unit_test_teardown(known_code_needs_no_check, tear_down),
        cmocka_unit_test_teardown(equal_rules_are_one, tear_down),
        cmocka_unit_test_teardown(calls_are_recognised_from_behind, tear_down),
        cmocka_unit_test_teardown(without_memory_there_is_no_rule, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
