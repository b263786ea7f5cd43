/* Instructions of each shape: how long they are and what they write. */
#include "unwind/x86_decode.h"

#include "unit.h"

enum {
    NOTHING = 0,
    AX = 1 << X86_RAX,
    CX = 1 << X86_RCX,
    DX = 1 << X86_RDX,
    BX = 1 << X86_RBX,
    SP = 1 << X86_RSP,
    SI = 1 << X86_RSI,
    DI = 1 << X86_RDI,
    R8 = 1 << X86_R8,
    R12 = 1 << X86_R12,
};

struct expected {
    uint8_t bytes[X86_LENGTH_MOST];
    uint8_t length;
    uint16_t written;
};

/* With all bytes, exactly, and with one missing. */
static void assert_decoded(const struct expected *expected, size_t count)
{
    for (; count; count--, expected++) {
        struct x86_instruction instruction;
        assert_true(x86_decode(expected->bytes, sizeof expected->bytes, &instruction));
        assert_int_equal(instruction.length, expected->length);
        assert_int_equal(instruction.written, expected->written);
        assert_true(x86_decode(expected->bytes, expected->length, &instruction));
        assert_false(x86_decode(expected->bytes, expected->length - 1u, &instruction));
    }
}

#define ASSERT_DECODED(...)                                                                        \
    do {                                                                                           \
        static const struct expected EXPECTED[] = {__VA_ARGS__};                                   \
        assert_decoded(EXPECTED, COUNT(EXPECTED));                                                 \
    } while (0)

static void operands_and_displacements(void **state)
{
    (void)state;
    ASSERT_DECODED({{0x48, 0x89, 0xe5}, 3, 1 << X86_RBP},         /* mov %rsp, %rbp */
                   {{0x49, 0x89, 0xe4}, 3, R12},                  /* mov %rsp, %r12 */
                   {{0x48, 0x8b, 0x1c, 0x24}, 4, BX},             /* mov (%rsp), %rbx */
                   {{0x4c, 0x8b, 0x64, 0x24, 0x08}, 5, R12},      /* mov 8(%rsp), %r12 */
                   {{0x48, 0x8b, 0x9c, 0x24, 1, 2, 3, 4}, 8, BX}, /* mov …(%rsp), %rbx */
                   {{0x48, 0x8b, 0x1d, 1, 2, 3, 4}, 7, BX},       /* mov …(%rip), %rbx */
                   {{0x48, 0x8b, 0x1c, 0xc5, 1, 2, 3, 4}, 8, BX}, /* mov …(,%rax,8), %rbx */
                   {{0x48, 0x89, 0x1c, 0x24}, 4, NOTHING},        /* mov %rbx, (%rsp) */
                   {{0x64, 0x48, 0x8b, 0x04, 0x25, 40, 0, 0, 0}, 9, AX}); /* mov %fs:40, %rax */
}

static void immediates(void **state)
{
    (void)state;
    ASSERT_DECODED({{0x48, 0x83, 0xec, 0x08}, 4, SP},                   /* sub $8, %rsp */
                   {{0x48, 0x81, 0xec, 1, 2, 3, 4}, 7, SP},             /* sub $…, %rsp */
                   {{0x66, 0x81, 0xe9, 1, 2}, 5, CX},                   /* sub $…, %cx */
                   {{0x48, 0x83, 0xff, 0x08}, 4, NOTHING},              /* cmp $8, %rdi */
                   {{0x49, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8}, 10, R8},      /* mov $…, %r8 */
                   {{0xb9, 1, 2, 3, 4}, 5, CX},                         /* mov $…, %ecx */
                   {{0x48, 0xa1, 1, 2, 3, 4, 5, 6, 7, 8}, 10, AX},      /* mov …, %rax */
                   {{0xf6, 0xc3, 0x01}, 3, NOTHING},                    /* test $1, %bl */
                   {{0xf7, 0xc3, 1, 0, 0, 0}, 6, NOTHING},              /* test $1, %ebx */
                   {{0xf7, 0xd3}, 2, BX},                               /* not %ebx */
                   {{0x48, 0xf7, 0xe3}, 3, AX | DX},                    /* mul %rbx */
                   {{0xc8, 1, 2, 3}, 4, NOTHING},                       /* enter */
                   {{0xc2, 8, 0}, 3, NOTHING},                          /* ret $8 */
                   {{0x66, 0x66, 0x48, 0xe8, 1, 2, 3, 4}, 8, NOTHING}); /* call */
}

/* Without REX the upper four are the second bytes of the lower four. */
static void registers_of_one_byte(void **state)
{
    (void)state;
    ASSERT_DECODED({{0x88, 0xcc}, 2, AX},               /* mov %cl, %ah */
                   {{0xb7, 0x01}, 2, BX},               /* mov $1, %bh */
                   {{0x40, 0x88, 0xcf}, 3, DI},         /* mov %cl, %dil */
                   {{0x0f, 0x94, 0xc7}, 3, BX},         /* sete %bh */
                   {{0x41, 0x0f, 0x94, 0xc4}, 4, R12}); /* sete %r12b */
}

static void other_maps(void **state)
{
    (void)state;
    ASSERT_DECODED({{0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, 8, NOTHING},     /* nop */
                   {{0xf3, 0x0f, 0x1e, 0xfa}, 4, NOTHING},              /* endbr64 */
                   {{0x0f, 0xa2}, 2, AX | BX | CX | DX},                /* cpuid */
                   {{0x0f, 0x05}, 2, AX | CX | 1 << X86_R11},           /* syscall */
                   {{0x4c, 0x0f, 0xb6, 0xe0}, 4, R12},                  /* movzbq %al, %r12 */
                   {{0x66, 0x0f, 0x70, 0xc1, 0x4e}, 5, NOTHING},        /* pshufd */
                   {{0x66, 0x48, 0x0f, 0x7e, 0xc3}, 5, BX},             /* movq %xmm0, %rbx */
                   {{0xf3, 0x0f, 0x7e, 0xc4}, 4, NOTHING},              /* movq %xmm4, %xmm0 */
                   {{0x0f, 0xcb}, 2, BX},                               /* bswap %ebx */
                   {{0x66, 0x0f, 0x38, 0x00, 0xc1}, 5, NOTHING},        /* pshufb */
                   {{0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xd8}, 6, BX},       /* crc32 %rax, %rbx */
                   {{0x66, 0x0f, 0x3a, 0x16, 0xc3, 0x01}, 6, BX},       /* pextrd $1, …, %ebx */
                   {{0x66, 0x0f, 0x3a, 0x0f, 0xc1, 0x08}, 6, NOTHING}); /* palignr */
}

static void vectors(void **state)
{
    (void)state;
    ASSERT_DECODED({{0xc5, 0xf8, 0x77}, 3, NOTHING},                   /* vzeroupper */
                   {{0xc5, 0xfd, 0x70, 0xc1, 0x1b}, 5, NOTHING},       /* vpshufd */
                   {{0xc4, 0xe2, 0xfd, 0xb8, 0x0f}, 5, NOTHING},       /* vfmadd231pd */
                   {{0xc4, 0xe3, 0x7d, 0x19, 0xc8, 0x01}, 6, NOTHING}, /* vextractf128 */
                   {{0xc4, 0xe1, 0xf9, 0x7e, 0xc3}, 5, BX},            /* vmovq …, %rbx */
                   {{0xc4, 0xe2, 0xe0, 0xf2, 0xc1}, 5, AX},            /* andn %rcx, %rbx, %rax */
                   {{0xc4, 0xe2, 0xf8, 0xf3, 0xdb}, 5, AX},            /* blsi %rbx, %rax */
                   {{0xc4, 0xe2, 0xfb, 0xf6, 0xd9}, 5, AX | BX},       /* mulx */
                   {{0xc4, 0xe3, 0xfb, 0xf0, 0xd9, 0x05}, 6, BX},      /* rorx */
                   {{0xc5, 0xfa, 0x7e, 0xc4}, 4, NOTHING},             /* vmovq %xmm4, %xmm0 */
                   {{0x62, 0xf1, 0x7c, 0x48, 0x79, 0xe0}, 6, NOTHING}, /* vcvtps2udq …, %zmm4 */
                   {{0xc5, 0xfb, 0x93, 0xd9}, 4, BX},                  /* kmovd %k1, %ebx */
                   {{0x62, 0xf2, 0xfd, 0x48, 0xb8, 0x4f, 0x01}, 7, NOTHING}, /* vfmadd231pd */
                   {{0x62, 0xf3, 0xfd, 0x48, 0x1b, 0xc8, 0x01}, 7, NOTHING}, /* vextractf64x4 */
                   {{0x62, 0xf1, 0x7c, 0x48, 0x11, 0x84, 0x24, 1, 2, 3, 4}, 11, NOTHING});
}

static void strings_and_x87(void **state)
{
    (void)state;
    ASSERT_DECODED({{0xf3, 0x48, 0xa5}, 3, SI | DI | CX}, /* rep movsq */
                   {{0xd9, 0x44, 0x24, 0x08}, 4, AX},     /* flds 8(%rsp); one too many */
                   {{0xdf, 0xe0}, 2, AX});                /* fnstsw %ax */
}

static void the_parts_of_an_instruction(void **state)
{
    (void)state;
    static const uint8_t LOAD[] = {0x4c, 0x8b, 0x64, 0x24, 0xf8}; /* mov -8(%rsp), %r12 */
    struct x86_instruction instruction;
    assert_true(x86_decode(LOAD, sizeof LOAD, &instruction));
    assert_true(instruction.is_wide && instruction.has_modrm && instruction.is_plain_address);
    assert_int_equal(instruction.reg, X86_R12);
    assert_int_equal(instruction.base, X86_RSP);
    assert_int_equal(instruction.displacement, -8);
    static const uint8_t INDEXED[] = {0x48, 0x8b, 0x1c, 0x1c}; /* mov (%rsp, %rbx), %rbx */
    assert_true(x86_decode(INDEXED, sizeof INDEXED, &instruction));
    assert_false(instruction.is_plain_address);
    static const uint8_t SUB[] = {0x48, 0x83, 0xec, 0x80}; /* sub $-128, %rsp */
    assert_true(x86_decode(SUB, sizeof SUB, &instruction));
    assert_int_equal(instruction.immediate, -128);
    static const uint8_t R13[] = {0x49, 0x8b, 0x5d, 0x00}; /* mov (%r13), %rbx */
    assert_true(x86_decode(R13, sizeof R13, &instruction));
    assert_int_equal(instruction.base, X86_R13);
}

static void what_does_not_exist_is_refused(void **state)
{
    (void)state;
    static const uint8_t CODES[][X86_LENGTH_MOST] = {
        {0x06},             /* push %es */
        {0xea},             /* far jump */
        {0xff, 0xff},       /* a group's empty place */
        {0x8f, 0xe8, 0x78}, /* XOP */
        {0xc4, 0xe0},       /* VEX of map 0 */
        {0x62, 0xf4, 0x7c}, /* APX */
        {0x0f, 0x04},
        {0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66},
    };
    struct x86_instruction instruction;
    for (size_t i = 0; i < COUNT(CODES); i++)
        assert_false(x86_decode(CODES[i], sizeof CODES[i], &instruction));
    assert_false(x86_decode(NULL, 0, &instruction));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operands_and_displacements),
        cmocka_unit_test(immediates),
        cmocka_unit_test(registers_of_one_byte),
        cmocka_unit_test(other_maps),
        cmocka_unit_test(vectors),
        cmocka_unit_test(strings_and_x87),
        cmocka_unit_test(the_parts_of_an_instruction),
        cmocka_unit_test(what_does_not_exist_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
