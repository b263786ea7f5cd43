/* One x86-64 instruction: how long it is, what its operands are, and which general-purpose
 * registers it may change. Any bytes can be asked about. */
#ifndef PITVIPER_UNWIND_X86_DECODE_H
#define PITVIPER_UNWIND_X86_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers as instructions number them, which is not how DWARF does. */
enum {
    X86_RAX,
    X86_RCX,
    X86_RDX,
    X86_RBX,
    X86_RSP,
    X86_RBP,
    X86_RSI,
    X86_RDI,
    X86_R8,
    X86_R9,
    X86_R10,
    X86_R11,
    X86_R12,
    X86_R13,
    X86_R14,
    X86_R15,
    X86_REGISTERS,
    X86_START = X86_REGISTERS, /* as a base: where following began (x86_state.h) */
    X86_NO_REGISTER = 0xff,
};

enum { X86_LENGTH_MOST = 15 };

/* Which table the opcode is of. The maps of VEX and EVEX go by the same numbers. */
enum x86_map { X86_MAP_ONE, X86_MAP_0F, X86_MAP_0F38, X86_MAP_0F3A, X86_MAP_5 = 5, X86_MAP_6 };

struct x86_instruction {
    uint8_t length; /* in bytes */
    uint8_t map;    /* enum x86_map */
    uint8_t opcode;
    uint8_t prefix;        /* the last of 0x66, 0xf2, 0xf3, or what VEX has in their place; or 0 */
    bool is_vector;        /* VEX or EVEX: the opcode means something else */
    bool is_wide;          /* operands have 64 bits, by REX.W */
    bool has_modrm;        /* the next four are valid */
    uint8_t mod;           /* 3: `rm` is a register, otherwise memory */
    uint8_t reg, rm;       /* 0 to 15; without has_modrm, rm is the register in the opcode */
    uint8_t base;          /* of memory: a register, or X86_NO_REGISTER */
    bool is_rip_relative;  /* memory is at the next instruction's address + displacement */
    bool is_plain_address; /* memory is at base + displacement, and nothing else */
    int32_t displacement;  /* 0 without memory */
    int64_t immediate;     /* 0 when there is none; of jumps and calls, the distance */
    uint16_t written;      /* bit n: register n may have another value afterwards */
};

/* False when the bytes are no instruction, or end within one. */
bool x86_decode(const uint8_t *code, size_t bytes, struct x86_instruction *ret_instruction);

/* Whether it is one of those that fill gaps between functions: nop, int3. */
bool x86_is_padding(const struct x86_instruction *instruction);

#endif
