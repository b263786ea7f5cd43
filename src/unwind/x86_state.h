/* What is known of registers and memory while instructions are followed, in terms of what they were
 * at the start. */
#ifndef PITVIPER_UNWIND_X86_STATE_H
#define PITVIPER_UNWIND_X86_STATE_H

#include "unwind/x86_decode.h"

/* A value: what register `symbol` was at the start, plus offsets[0]; X86_START is like a register
 * that has the address of the first instruction, and never changes. With a depth of 1, the word in
 * memory there, plus offsets[1]; and so on. Offsets beyond the depth are 0: values are compared as
 * bytes. */
enum { X86_DEPTH_MOST = 2, X86_UNKNOWN = 0xff };

struct x86_value {
    int32_t offsets[X86_DEPTH_MOST + 1];
    uint8_t depth;
    uint8_t symbol;  /* a register, X86_START, a number behind it that nothing else is known of (a
                        stack pointer that was aligned), or X86_UNKNOWN */
    uint16_t unused; /* 0 */
};

struct x86_stored {
    struct x86_value address, value;
};

enum { X86_STORED_MOST = 24 };

struct x86_state {
    struct x86_value registers[X86_START + 1];
    struct x86_stored stored[X86_STORED_MOST]; /* on the way, each address once */
    struct x86_value call_sp;                  /* of the first call; unknown: there was none */
    uint8_t stored_count;
    uint8_t next_symbol;
    bool has_passed_padding; /* between a call and what follows it */
    bool is_askew; /* calls were made with stack pointers that differ by an odd number of words */
};

/* All registers are what they are. */
void x86_state_init(struct x86_state *state);

/* An instruction that goes on to the next one. False when what follows can't be known. */
bool x86_state_step(struct x86_state *state, const struct x86_instruction *instruction);

/* A call, and the return from it: a function keeps some registers and loses the others. */
void x86_state_call(struct x86_state *state);

/* The operand that ModRM.rm names, if it is a whole word. */
struct x86_value x86_state_operand(const struct x86_state *state,
                                   const struct x86_instruction *instruction);

/* A value and a number; the word in memory at a value. */
struct x86_value x86_value_sum(struct x86_value value, int64_t added);
struct x86_value x86_state_load(const struct x86_state *state, struct x86_value address);

/* Whether a word of the memory was written on the way. */
bool x86_state_has_stored(const struct x86_state *state, const struct x86_value *address);

/* Whether a register was put on the stack on the way, at a distance from the stack pointer. */
bool x86_state_has_saved(const struct x86_state *state, uint8_t number);

/* Whether it is what a register was at the start. */
static inline bool x86_value_is_start(const struct x86_value *value, uint8_t number)
{
    return value->symbol == number && !value->depth && !value->offsets[0];
}

static inline bool x86_value_is_known(const struct x86_value *value)
{
    return value->symbol != X86_UNKNOWN;
}

#endif
