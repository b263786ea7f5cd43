#include "unwind/cfa_expression.h"

#include "unit.h"

enum { STACK_AVMA = 0x7000, PC_NUMBER = 16, RSP = 7, R9 = 9 };

static const uint64_t STACK[] = {0x7010, 5, 0x7100};

/* An expression as its bytes, without their length. */
#define EVALUATE(bytes, ret_value) evaluate((const uint8_t *)(bytes), sizeof(bytes) - 1, ret_value)

static enum cfa_expression_end evaluate(const uint8_t *bytes, size_t length, uint64_t *ret_value)
{
    struct unwind_cpu cpu = {.pc = 0x40000b, .known = 1u << RSP | 1u << R9};
    cpu.registers[RSP] = STACK_AVMA;
    cpu.registers[R9] = 1;
    struct unwind_sample sample = {
        .stack = (const uint8_t *)STACK, .stack_avma = STACK_AVMA, .stack_bytes = sizeof STACK};
    struct cfa_expression_world world = {.cpu = &cpu, .pc_number = PC_NUMBER, .memory = &sample};
    struct cursor cursor;
    cursor_init(&cursor, "expression", bytes, length);
    return cfa_expression_evaluate(cursor, &world, ret_value);
}

#define ASSERT_VALUE(bytes, wanted)                                                                \
    do {                                                                                           \
        uint64_t value;                                                                            \
        assert_int_equal(EVALUATE(bytes, &value), CFA_EXPRESSION_VALUE);                           \
        assert_int_equal(value, (uint64_t)(wanted));                                               \
    } while (0)

#define ASSERT_UNKNOWN(bytes)                                                                      \
    do {                                                                                           \
        uint64_t value;                                                                            \
        assert_int_equal(EVALUATE(bytes, &value), CFA_EXPRESSION_UNKNOWN);                         \
    } while (0)

static void those_of_real_files(void **state)
{
    (void)state;
    /* .plt, whose pc is at byte 11 of its entry: rsp + 8 + 8 */
    ASSERT_VALUE("\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", STACK_AVMA + 16);
    /* and with the border at byte 12 */
    ASSERT_VALUE("\x77\x08\x80\x00\x3f\x1a\x3c\x2a\x33\x24\x22", STACK_AVMA + 8);
    /* bn_mul_mont: *(rsp + 8 + r9 * 8) + 8 */
    ASSERT_VALUE("\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08", 0x7108);
}

static void constants_of_all_lengths(void **state)
{
    (void)state;
    ASSERT_VALUE("\x4f", 31);
    ASSERT_VALUE("\x08\xff", 255);
    ASSERT_VALUE("\x09\xff", -1);
    ASSERT_VALUE("\x0a\xff\xff", 0xffff);
    ASSERT_VALUE("\x0b\xfe\xff", -2);
    ASSERT_VALUE("\x0c\xff\xff\xff\xff", 0xffffffff);
    ASSERT_VALUE("\x0d\xa0\xff\xff\xff", -96);
    ASSERT_VALUE("\x0e\1\2\3\4\5\6\7\x08", 0x0807060504030201);
    ASSERT_VALUE("\x10\x80\x01", 128);
    ASSERT_VALUE("\x11\x7f", -1);
}

static void arithmetic(void **state)
{
    (void)state;
    ASSERT_VALUE("\x37\x33\x1a", 3);                 /* 7 and 3 */
    ASSERT_VALUE("\x34\x33\x21", 7);                 /* 4 or 3 */
    ASSERT_VALUE("\x37\x33\x27", 4);                 /* 7 xor 3 */
    ASSERT_VALUE("\x33\x37\x1c", -4);                /* 3 - 7 */
    ASSERT_VALUE("\x11\x79\x32\x1b", -3);            /* -7 / 2 */
    ASSERT_VALUE("\x37\x34\x1d", 3);                 /* 7 % 4 */
    ASSERT_VALUE("\x37\x1f", -7);                    /* -7 */
    ASSERT_VALUE("\x11\x79\x19", 7);                 /* |-7| */
    ASSERT_VALUE("\x30\x20", UINT64_MAX);            /* ~0 */
    ASSERT_VALUE("\x31\x08\x40\x24", 0);             /* 1 << 64 */
    ASSERT_VALUE("\x11\x78\x31\x26", -4);            /* -8 >> 1 */
    ASSERT_VALUE("\x11\x78\x08\x40\x26", -1);        /* -8 >> 64 */
    ASSERT_VALUE("\x11\x78\x31\x25", INT64_MAX - 3); /* the same, unsigned */
    ASSERT_VALUE("\x11\x78\x31\x2d", 1);             /* -8 < 1 */
    ASSERT_VALUE("\x11\x78\x31\x2c", 1);             /* -8 <= 1 */
    ASSERT_VALUE("\x11\x78\x31\x2b", 0);             /* -8 > 1 */
    ASSERT_VALUE("\x31\x31\x29", 1);                 /* 1 == 1 */
    ASSERT_VALUE("\x31\x31\x2e", 0);                 /* 1 != 1 */
}

static void words_are_moved(void **state)
{
    (void)state;
    ASSERT_VALUE("\x33\x12\x1e", 9);         /* 3, dup, mul */
    ASSERT_VALUE("\x33\x35\x13", 3);         /* 3 5, drop */
    ASSERT_VALUE("\x33\x35\x14", 3);         /* 3 5, over */
    ASSERT_VALUE("\x33\x35\x36\x15\x02", 3); /* 3 5 6, pick 2 */
    ASSERT_VALUE("\x33\x35\x16\x1c", 2);     /* 3 5, swap, minus */
    ASSERT_VALUE("\x33\x96", 3);             /* nop */
    ASSERT_VALUE("\x92\x07\x08", STACK_AVMA + 8);
}

static void a_word_that_is_not_there_is_named(void **state)
{
    (void)state;
    uint64_t value;
    assert_int_equal(EVALUATE("\x77\x18\x06", &value), CFA_EXPRESSION_NO_WORD);
    assert_int_equal(value, STACK_AVMA + 24);
    assert_int_equal(EVALUATE("\x77\x78\x06\x06", &value), CFA_EXPRESSION_NO_WORD);
    assert_int_equal(value, STACK_AVMA - 8);
}

static void nothing_comes_of_others(void **state)
{
    (void)state;
    ASSERT_UNKNOWN("");                                   /* nothing */
    ASSERT_UNKNOWN("\x13");                               /* drop */
    ASSERT_UNKNOWN("\x31\x22");                           /* one word, plus */
    ASSERT_UNKNOWN("\x06");                               /* the word at what? */
    ASSERT_UNKNOWN("\x31\x30\x1b");                       /* 1 / 0 */
    ASSERT_UNKNOWN("\x31\x30\x1d");                       /* 1 % 0 */
    ASSERT_UNKNOWN("\x0e\0\0\0\0\0\0\0\x80\x11\x7f\x1b"); /* the least number / -1 */
    ASSERT_UNKNOWN("\x31\x15\x01");                       /* pick 1 of one */
    ASSERT_UNKNOWN("\x70\x00");                           /* a register that is not known */
    ASSERT_UNKNOWN("\x92\xff\xff\x03\x00");               /* that no machine has */
    ASSERT_UNKNOWN("\x77");                               /* the bytes end */
    ASSERT_UNKNOWN("\x31\x2f\x00\x00");                   /* a jump */
    ASSERT_UNKNOWN("1111111111111111"
                   "1"); /* 17 words */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_of_real_files),
        cmocka_unit_test(constants_of_all_lengths),
        cmocka_unit_test(arithmetic),
        cmocka_unit_test(words_are_moved),
        cmocka_unit_test(a_word_that_is_not_there_is_named),
        cmocka_unit_test(nothing_comes_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
