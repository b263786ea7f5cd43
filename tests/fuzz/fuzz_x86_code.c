/* Any bytes as code: nothing is read out of bounds, every instruction is as long as it says, and
 * every address has a rule that can be used, or none.
 *
 *     input: where to start (2 bytes), code; words that it jumps through are in it, too, and
 *     every 32nd byte has a description */
#include "unwind/code_rules.h"
#include "unwind/x86_decode.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

enum { RBX = 3, RBP = 6, R12 = 12, R15 = 15, MOST_QUESTIONS = 16 };

struct input {
    const uint8_t *code;
    size_t bytes;
};

/* In pieces of 64 bytes, as a reader of another process would have them. */
static size_t read_code(void *data, uint64_t address, const uint8_t **ret_code, size_t *ret_before)
{
    enum { PIECE_BYTES = 64 };
    const struct input *input = data;
    if (address >= input->bytes)
        return 0;
    size_t left = input->bytes - (size_t)address;
    *ret_before = address % 8; /* they are there: address is at least that */
    *ret_code = input->code + address;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static bool read_word(void *data, uint64_t address, uint64_t *ret_word)
{
    const struct input *input = data;
    if (address >= input->bytes || input->bytes - address < sizeof *ret_word)
        return false;
    memcpy(ret_word, input->code + address, sizeof *ret_word);
    *ret_word %= input->bytes;
    return true;
}

static const struct unwind_rule *describe(void *data, uint64_t address)
{
    static const struct unwind_rule DESCRIPTION = {
        .cfa = UNWIND_CFA_REGISTER,
        .cfa_number = RBP,
        .cfa_offset = 16,
        .place_count = 2,
        .return_address = {.kind = UNWIND_AT_CFA, .offset = -8},
        .places = {{.kind = UNWIND_AT_CFA, .target = RBP, .offset = -16},
                   {.kind = UNWIND_IS, .target = RBX, .number = R15, .offset = 0}}};
    (void)data;
    return address % 32 ? NULL : &DESCRIPTION;
}

static void check_rule(const struct unwind_rule *rule)
{
    REQUIRE(rule->cfa == UNWIND_CFA_REGISTER || rule->cfa == UNWIND_CFA_MEMORY);
    REQUIRE(rule->cfa_number <= R15 && rule->is_guess && !rule->is_signal);
    REQUIRE(rule->place_count <= UNWIND_SAVED_MOST);
    for (unsigned i = 0; i < rule->place_count; i++) {
        const struct unwind_place *place = &rule->places[i];
        REQUIRE(place->target == RBX || place->target == RBP ||
                (place->target >= R12 && place->target <= R15));
        REQUIRE(rule->restored >> place->target & 1 && place->number <= R15);
    }
}

static void decode_all(const struct input *input)
{
    struct x86_instruction instruction;
    for (size_t at = 0; at < input->bytes; at++) {
        size_t left = input->bytes - at;
        if (!x86_decode(input->code + at, left, &instruction))
            continue;
        REQUIRE(instruction.length > 0 && instruction.length <= X86_LENGTH_MOST);
        REQUIRE(instruction.length <= left);
        REQUIRE(!x86_decode(input->code + at, instruction.length - 1u, &instruction));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint16_t start;
    if (size < sizeof start)
        return 0;
    memcpy(&start, data, sizeof start);
    struct input input = {.code = data + sizeof start, .bytes = size - sizeof start};
    struct code_rules rules;
    code_rules_init(
        &rules, EM_X86_64,
        (struct code_source){
            .read = read_code, .describe = describe, .read_word = read_word, .context = &input});
    decode_all(&input);
    for (unsigned i = 0; i < MOST_QUESTIONS; i++) {
        struct code_question question = {.address = (uint64_t)start + i, .is_caller = i & 1};
        const struct unwind_rule *rule = code_rules_find(&rules, &question);
        REQUIRE(rule == code_rules_find(&rules, &question));
        if (rule)
            check_rule(rule);
        (void)code_rules_is_behind_call(&rules, question.address);
    }
    code_rules_done(&rules);
    return 0;
}
