/* Code that somebody generated and described to nobody, such as the trampolines of CPython's -X
 * perf:
 *
 *     3.12               sub $8, %rsp                   call *%rcx   add $8, %rsp   ret
 *     3.13 and later     push %rbp   mov %rsp, %rbp     call *%rcx   pop %rbp       ret
 *
 * It runs from any of its instructions straight on to the return. So the way there is followed, and
 * what it does to the stack pointer tells where the return address is. */
#include "unwind/unwind_machine.h"

enum { RBP = 6, RSP = 7, WORD = 8 };

#define RETURN_ADDRESS                                                                             \
    .cfa = UNWIND_CFA_REGISTER, .cfa_number = RSP,                                                 \
    .return_address = {.kind = UNWIND_AT_CFA, .offset = -8}

static const struct unwind_rule AT_START = {RETURN_ADDRESS, .cfa_offset = 8, .plain_bytes = 8};
static const struct unwind_rule WITH_GAP = {RETURN_ADDRESS, .cfa_offset = 16, .plain_bytes = 8};
static const struct unwind_rule WITH_RBP = {
    RETURN_ADDRESS,    .cfa_offset = 16,
    .plain_bytes = 16, .restored = 1u << RBP,
    .place_count = 1,  .places = {{.kind = UNWIND_AT_CFA, .offset = -16, .target = RBP}},
};

/* The instructions that are known. Of `sub` and `add` the last byte is the number. */
static const struct instruction {
    uint8_t bytes[4];
    uint8_t length;
    enum { NOTHING, SUB, ADD, PUSH_RBP, POP_RBP, RETURN } effect;
} INSTRUCTIONS[] = {
    {{0xf3, 0x0f, 0x1e, 0xfa}, 4, NOTHING}, /* endbr64 */
    {{0x48, 0x83, 0xec}, 4, SUB},           /* sub $.., %rsp */
    {{0x48, 0x83, 0xc4}, 4, ADD},           /* add $.., %rsp */
    {{0x48, 0x89, 0xe5}, 3, NOTHING},       /* mov %rsp, %rbp */
    {{0xff, 0xd1}, 2, NOTHING},             /* call *%rcx: back again, all is as it was */
    {{0x55}, 1, PUSH_RBP},
    {{0x5d}, 1, POP_RBP},
    {{0xc3}, 1, RETURN},
};

static bool is_there(const struct instruction *instruction, const uint8_t *code, size_t left)
{
    size_t fixed = instruction->length - (instruction->effect == SUB || instruction->effect == ADD);
    if (instruction->length > left)
        return false;
    for (size_t i = 0; i < fixed; i++)
        if (code[i] != instruction->bytes[i])
            return false;
    return true;
}

static const struct instruction *instruction_at(const uint8_t *code, size_t left)
{
    for (size_t i = 0; i < sizeof INSTRUCTIONS / sizeof *INSTRUCTIONS; i++)
        if (is_there(&INSTRUCTIONS[i], code, left))
            return &INSTRUCTIONS[i];
    return NULL;
}

/* What the way to the return does. */
struct way {
    int rises;      /* bytes that the stack pointer goes up, on balance */
    int pushed_rbp; /* how often on this way; less than 0: it was pushed before */
};

static void follow(struct way *way, const struct instruction *instruction, const uint8_t *code)
{
    switch (instruction->effect) {
    case SUB:
        way->rises -= (int8_t)code[3];
        break;
    case ADD:
        way->rises += (int8_t)code[3];
        break;
    case PUSH_RBP:
        way->rises -= WORD;
        way->pushed_rbp++;
        break;
    case POP_RBP:
        way->rises += WORD;
        way->pushed_rbp--;
        break;
    default:
        break;
    }
}

static const struct unwind_rule *rule_of(const struct way *way)
{
    if (way->pushed_rbp < 0)
        return way->rises == WORD ? &WITH_RBP : NULL;
    return way->rises == 0 ? &AT_START : way->rises == WORD ? &WITH_GAP : NULL;
}

const struct unwind_rule *unwind_code_rule_x86_64(const uint8_t *code, size_t bytes, size_t at)
{
    struct way way = {0};
    if (at > 0 && at < bytes && code[at - 1] == 0xff && code[at] == 0xd1)
        at++; /* the end of the call: how callers are looked up */
    while (at < bytes) {
        const struct instruction *instruction = instruction_at(code + at, bytes - at);
        if (!instruction)
            return NULL;
        if (instruction->effect == RETURN)
            return rule_of(&way);
        follow(&way, instruction, code + at);
        at += instruction->length;
    }
    return NULL;
}
