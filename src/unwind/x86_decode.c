/* An instruction is prefixes, an opcode in one of several maps, and what the opcode asks for:
 *
 *     66 f2 f3 …   REX   opcode               ModRM  SIB  displacement  immediate
 *                        0f opcode
 *                        0f 38 opcode, 0f 3a opcode
 *     c5 ..              opcode (VEX)          the map, the REX bits and one of 66 f2 f3
 *     c4 .. ..           opcode (VEX)          are in the bytes in front
 *     62 .. .. ..        opcode (EVEX)
 *
 * A table for each of the first two maps says what follows an opcode, and which registers it
 * writes; the other maps are regular. Whoever asks follows values in registers: so a register that
 * is written must never be missing from the answer, and one too many costs only an answer.
 *
 * What does not exist in 64-bit mode is refused, and so are XOP, APX and what only kernels use and
 * has a shape of its own. */
#include "unwind/x86_decode.h"

#include <string.h>

enum {
    M = 1 << 0,      /* has a ModRM byte */
    I8 = 1 << 1,     /* an immediate of 8 bits */
    I16 = 1 << 2,    /* of 16 */
    IZ = 1 << 3,     /* of 32, or 16 with 66 */
    IV = 1 << 4,     /* of 64 with REX.W, otherwise as IZ */
    J = 1 << 5,      /* a distance of 32 bits, whatever the prefixes */
    OFFSET = 1 << 6, /* an address of 64 bits, 32 with 67 */
    BYTE = 1 << 7,   /* registers have 8 bits: without REX, 4 to 7 are ah, ch, dh, bh */
    REG = 1 << 8,    /* writes the register that ModRM.reg names */
    RM = 1 << 9,     /* that ModRM.rm names */
    LOW = 1 << 10,   /* that the opcode names */
    AX = 1 << 11,
    DX = 1 << 12,
    CX = 1 << 13,
    STRING = 1 << 14, /* rsi, rdi, rcx */
    GROUP = 1 << 15,  /* ModRM.reg or a prefix is a part of the opcode: see refine_group */
};

/* What is no instruction. No other entry is like it. */
enum { BAD = IZ | IV };

#define ARITHMETIC(first)                                                                          \
    [(first)] = M | BYTE | RM, [(first) + 1] = M | RM, [(first) + 2] = M | BYTE | REG,             \
    [(first) + 3] = M | REG, [(first) + 4] = I8 | AX, [(first) + 5] = IZ | AX,                     \
    [(first) + 6] = BAD, [(first) + 7] = BAD

/* clang-format off */
static const uint16_t ONE[256] = {
    ARITHMETIC(0x00), /* add */
    ARITHMETIC(0x08), /* or */
    ARITHMETIC(0x10), /* adc */
    ARITHMETIC(0x18), /* sbb */
    ARITHMETIC(0x20), /* and */
    ARITHMETIC(0x28), /* sub */
    ARITHMETIC(0x30), /* xor */
    [0x38] = M, M, M, M, I8, IZ, BAD, BAD,                   /* cmp */
    [0x40 ... 0x4f] = BAD,                                   /* REX: a prefix */
    [0x50 ... 0x57] = 0,                                     /* push */
    [0x58 ... 0x5f] = LOW,                                   /* pop */
    [0x60 ... 0x62] = BAD,
    [0x63] = M | REG,                                        /* movsxd */
    [0x64 ... 0x67] = BAD,
    [0x68] = IZ, M | IZ | REG, I8, M | I8 | REG,             /* push, imul */
    [0x6c ... 0x6f] = STRING,
    [0x70 ... 0x7f] = I8,                                    /* conditional jumps */
    [0x80] = M | I8 | BYTE | GROUP, M | IZ | GROUP, BAD, M | I8 | GROUP,
    [0x84] = M, M, M | BYTE | REG | RM, M | REG | RM,        /* test, xchg */
    [0x88] = M | BYTE | RM, M | RM, M | BYTE | REG, M | REG, /* mov */
    [0x8c] = M | RM, M | REG, M, M | RM | GROUP,             /* mov, lea, mov, pop */
    [0x90 ... 0x97] = AX | LOW,                              /* xchg */
    [0x98] = AX, DX, BAD, 0, 0, 0, 0, AX,                    /* cdqe … lahf */
    [0xa0] = OFFSET | AX, OFFSET | AX, OFFSET, OFFSET,       /* mov */
    [0xa4 ... 0xa7] = STRING,
    [0xa8] = I8, IZ,                                         /* test */
    [0xaa ... 0xaf] = STRING | AX,
    [0xb0 ... 0xb7] = I8 | BYTE | LOW,                       /* mov */
    [0xb8 ... 0xbf] = IV | LOW,
    [0xc0] = M | I8 | BYTE | RM, M | I8 | RM, I16, 0,        /* shifts, ret */
    [0xc4] = BAD, BAD, M | I8 | RM, M | IZ | RM,             /* mov, xabort, xbegin */
    [0xc8] = I16 | I8, 0, I16, 0, 0, I8, BAD, 0,             /* enter … iret */
    [0xd0] = M | BYTE | RM, M | RM, M | BYTE | RM, M | RM,   /* shifts */
    [0xd4] = BAD, BAD, BAD, AX,                              /* xlat */
    [0xd8 ... 0xdf] = M | AX,                                /* x87; fnstsw */
    [0xe0 ... 0xe3] = I8 | CX,                               /* loop, jrcxz */
    [0xe4] = I8 | AX, I8 | AX, I8, I8,                       /* in, out */
    [0xe8] = J, J, BAD, I8,                                  /* call, jmp */
    [0xec] = AX, AX, 0, 0,                                   /* in, out */
    [0xf0] = BAD, 0, BAD, BAD, 0, 0,                         /* int1, hlt, cmc */
    [0xf6] = M | BYTE | GROUP, M | GROUP,
    [0xfe] = M | BYTE | GROUP, M | GROUP,
};

static const uint16_t TWO[256] = {
    [0x00] = M | RM, M | RM | AX | CX | DX | GROUP, M | REG, M | REG,
    [0x04] = BAD, AX | CX, 0, AX | CX,                            /* syscall */
    [0x08] = 0, 0, BAD, 0, BAD, M, 0, M | I8,                     /* … ud2, prefetch, 3DNow! */
    [0x10 ... 0x1d] = M,                                          /* moves of vectors, hints */
    [0x1e] = M | RM | GROUP, M,                                   /* endbr64, rdssp, nop */
    [0x20] = M | RM, M | RM, M, M, BAD, BAD, BAD, BAD,            /* control registers */
    [0x28 ... 0x2b] = M,
    [0x2c] = M | REG | GROUP, M | REG | GROUP, M, M,              /* cvttss2si, cvtss2si */
    [0x30] = 0, AX | DX, AX | DX, AX | DX, BAD, BAD, BAD, 0,      /* wrmsr, rdtsc … */
    [0x38 ... 0x3f] = BAD,
    [0x40 ... 0x4f] = M | REG,                                    /* cmov */
    [0x50] = M | REG,                                             /* movmskps */
    [0x51 ... 0x6f] = M,
    [0x70 ... 0x73] = M | I8,
    [0x74] = M, M, M, 0,                                          /* …, emms */
    [0x78] = M, M, BAD, BAD, M, M, M | RM | GROUP, M,             /* 0x7e: movd */
    [0x80 ... 0x8f] = J,                                          /* conditional jumps */
    [0x90 ... 0x9f] = M | BYTE | RM,                              /* setcc */
    [0xa0] = 0, 0, AX | DX | CX, M,                               /* push, pop, cpuid, bt */
    [0xa4] = M | I8 | RM, M | RM,                                 /* shld */
    [0xa6] = M | AX | DX | STRING, M | AX | DX | STRING,          /* PadLock */
    [0xa8] = 0, 0, 0, M | RM,                                     /* push, pop, rsm, bts */
    [0xac] = M | I8 | RM, M | RM, M | RM | GROUP, M | REG,        /* shrd, fences, imul */
    [0xb0] = M | BYTE | RM | AX, M | RM | AX,                     /* cmpxchg */
    [0xb2] = M | REG, M | RM, M | REG, M | REG, M | REG, M | REG, /* lss, btr, lfs, lgs, movzx */
    [0xb8] = M | REG, M, M | I8 | RM, M | RM,                     /* popcnt, ud1, bts, btc */
    [0xbc] = M | REG, M | REG, M | REG, M | REG,                  /* bsf, bsr, movsx */
    [0xc0] = M | BYTE | RM | REG, M | RM | REG,                   /* xadd */
    [0xc2] = M | I8, M, M | I8, M | I8 | REG, M | I8,             /* cmpps … pextrw, shufps */
    [0xc7] = M | AX | DX | RM,                                    /* cmpxchg16b, rdrand */
    [0xc8 ... 0xcf] = LOW,                                        /* bswap */
    [0xd0 ... 0xd6] = M,
    [0xd7] = M | REG,                                             /* pmovmskb */
    [0xd8 ... 0xff] = M,
};
/* clang-format on */

/* The instruction while it is being read. */
struct reading {
    const uint8_t *code;
    size_t bytes, at;
    bool is_short; /* the bytes ended */
    bool has_66, has_67, has_segment, has_rex;
    uint8_t rex;    /* as in REX: W R X B */
    uint8_t other;  /* VEX.vvvv: one register more */
    uint16_t shape; /* of the opcode: M and its kin */
    struct x86_instruction *result;
};

static uint8_t next_byte(struct reading *reading)
{
    if (reading->at >= reading->bytes) {
        reading->is_short = true;
        return 0;
    }
    return reading->code[reading->at++];
}

/* A number of so many bytes, with its sign. */
static int64_t next_number(struct reading *reading, size_t bytes)
{
    uint64_t number = 0;
    for (size_t i = 0; i < bytes; i++)
        number |= (uint64_t)next_byte(reading) << 8 * i;
    unsigned unused = (unsigned)(64 - 8 * bytes);
    if (!bytes)
        return 0;
    return (int64_t)(number << unused) >> unused;
}

/* --- prefixes and opcode ---------------------------------------------------------------------- */

static uint8_t take_prefixes(struct reading *reading)
{
    for (;;) {
        uint8_t byte = next_byte(reading);
        bool is_rex = !reading->is_short && (byte & 0xf0) == 0x40;
        switch (byte) {
        case 0x66:
            reading->has_66 = true;
            if (!reading->result->prefix)
                reading->result->prefix = byte;
            break;
        case 0xf2:
        case 0xf3:
            reading->result->prefix = byte;
            break;
        case 0x67:
            reading->has_67 = true;
            break;
        case 0x64:
        case 0x65:
            reading->has_segment = true;
            break;
        case 0x26:
        case 0x2e:
        case 0x36:
        case 0x3e:
        case 0xf0:
            break;
        default:
            if (!is_rex)
                return byte;
        }
        /* One that is not directly in front of the opcode does not count. */
        reading->has_rex = is_rex;
        reading->rex = is_rex ? byte & 0x0f : 0;
    }
}

static const uint8_t PREFIX_OF_PP[] = {0, 0x66, 0xf3, 0xf2};

/* The bytes of VEX behind the first one, and the opcode. */
static bool take_vex(struct reading *reading, bool is_long)
{
    struct x86_instruction *result = reading->result;
    uint8_t first = next_byte(reading), last = is_long ? next_byte(reading) : first;
    result->map = is_long ? first & 0x1f : X86_MAP_0F;
    reading->rex = (uint8_t)(is_long ? (~first >> 5 & 7) | (last >> 4 & 8) : ~first >> 5 & 4);
    reading->other = ~last >> 3 & 15;
    result->prefix = PREFIX_OF_PP[last & 3];
    result->opcode = next_byte(reading);
    return result->map >= X86_MAP_0F && result->map <= X86_MAP_0F3A;
}

static bool take_evex(struct reading *reading)
{
    struct x86_instruction *result = reading->result;
    uint8_t first = next_byte(reading), second = next_byte(reading);
    next_byte(reading); /* masks, lengths, rounding */
    result->map = first & 7;
    reading->rex = (uint8_t)((~first >> 5 & 7) | (second >> 4 & 8));
    reading->other = ~second >> 3 & 15;
    result->prefix = PREFIX_OF_PP[second & 3];
    result->opcode = next_byte(reading);
    return !(first & 8) && second & 4 && result->map && result->map != 4 && result->map != 7;
}

/* Of vectors in general: what follows the opcode, and the few that write other registers. */
static uint16_t vector_shape(const struct x86_instruction *instruction)
{
    uint8_t opcode = instruction->opcode;
    switch (instruction->map) {
    case X86_MAP_0F:
    case X86_MAP_5:
        if (instruction->map == X86_MAP_0F && opcode == 0x77) /* vzeroupper */
            return 0;
        if (opcode == 0x2c || opcode == 0x2d || opcode == 0x50 || opcode == 0x78 ||
            opcode == 0x79 || opcode == 0x93 || opcode == 0xd7)
            return M | REG | GROUP;
        if (opcode == 0xc5)
            return M | I8 | REG;
        if (opcode == 0x7e)
            return M | RM | GROUP;
        return (opcode >= 0x70 && opcode <= 0x73) || (opcode >= 0xc2 && opcode <= 0xc6) ? M | I8
                                                                                        : M;
    case X86_MAP_0F3A:
        if (opcode >= 0x14 && opcode <= 0x17) /* pextrb and the like */
            return M | I8 | RM;
        if (opcode >= 0x60 && opcode <= 0x63) /* pcmpestri */
            return M | I8 | CX;
        return opcode == 0xf0 ? M | I8 | REG : M | I8; /* rorx */
    default: /* the last rows are those of andn, bzhi, mulx and their kin; 0xf3 is a group */
        return opcode >= 0xe0 && !(instruction->is_vector && opcode == 0xf3) ? M | REG : M;
    }
}

/* --- ModRM ------------------------------------------------------------------------------------ */

static void take_memory(struct reading *reading, uint8_t rm)
{
    struct x86_instruction *result = reading->result;
    bool has_index = false;
    uint8_t base = rm, b = (uint8_t)(reading->rex << 3 & 8);
    if (rm == 4) { /* SIB */
        uint8_t sib = next_byte(reading);
        has_index = ((sib >> 3 & 7) | (reading->rex << 2 & 8)) != 4;
        base = sib & 7;
    }
    size_t displacement_bytes = result->mod == 1 ? 1 : result->mod == 2 ? 4 : 0;
    result->base = base | b;
    if (result->mod == 0 && base == 5) { /* rip, or none */
        result->base = X86_NO_REGISTER;
        displacement_bytes = 4;
    }
    result->displacement = (int32_t)next_number(reading, displacement_bytes);
    bool is_plain = !has_index && !reading->has_segment && !reading->has_67;
    result->is_rip_relative = is_plain && rm == 5 && result->base == X86_NO_REGISTER;
    result->is_plain_address = is_plain && result->base != X86_NO_REGISTER;
}

static void take_modrm(struct reading *reading)
{
    struct x86_instruction *result = reading->result;
    uint8_t byte = next_byte(reading);
    result->has_modrm = true;
    result->mod = byte >> 6;
    result->reg = (uint8_t)((byte >> 3 & 7) | (reading->rex << 1 & 8));
    result->rm = (uint8_t)((byte & 7) | (reading->rex << 3 & 8));
    if (result->mod != 3)
        take_memory(reading, byte & 7);
}

/* The same opcode may be for general registers or for vectors: its prefix tells. */
static uint16_t refine_0f(const struct x86_instruction *instruction, uint16_t shape)
{
    bool is_f3 = instruction->prefix == 0xf3, is_f2 = instruction->prefix == 0xf2;
    unsigned which = instruction->reg & 7, no_rm = shape & ~(unsigned)RM;
    switch (instruction->opcode) {
    case 0x01: /* smsw, among many that have no operand */
        return (uint16_t)(which == 4 ? shape : no_rm);
    case 0x1e: /* rdssp, among hints */
        return (uint16_t)(is_f3 && which == 1 ? shape : no_rm);
    case 0x2c: /* cvttss2si; cvttps2pi */
    case 0x2d:
    case 0x78: /* vcvttss2usi; vcvttps2udq */
    case 0x79:
        return (uint16_t)(is_f2 || is_f3 ? shape : shape & ~(unsigned)REG);
    case 0x7e: /* movd; movq between vectors */
        return (uint16_t)(is_f3 ? no_rm : shape);
    case 0xae: /* rdfsbase, among fences */
        return (uint16_t)(is_f3 ? shape : no_rm);
    default:
        return shape;
    }
}

/* What an opcode whose meaning depends on ModRM.reg really is. */
static uint16_t refine_group(const struct x86_instruction *instruction, uint16_t shape)
{
    uint8_t which = instruction->reg & 7;
    if (instruction->map != X86_MAP_ONE)
        return refine_0f(instruction, shape);
    switch (instruction->opcode) {
    case 0x8f: /* pop; XOP */
        return which ? BAD : shape;
    case 0xf6:
    case 0xf7: /* test, not, neg, mul, div */
        if (which < 2)
            return shape | (instruction->opcode == 0xf6 ? I8 : IZ);
        return which < 4 ? shape | RM : shape | AX | DX;
    case 0xfe:
        return which < 2 ? shape | RM : BAD;
    case 0xff: /* inc, dec, call, jmp, push */
        return which < 2 ? shape | RM : which == 7 ? BAD : shape;
    default:
        return which == 7 ? shape : shape | RM; /* cmp writes nothing */
    }
}

/* --- the rest --------------------------------------------------------------------------------- */

static void take_immediates(struct reading *reading)
{
    struct x86_instruction *result = reading->result;
    uint16_t shape = reading->shape;
    size_t word_bytes = reading->has_66 && !result->is_wide ? 2 : 4;
    size_t bytes = shape & IZ ? word_bytes : 0;
    if (shape & IV)
        bytes = result->is_wide ? 8 : word_bytes;
    if (shape & J)
        bytes = 4;
    if (shape & OFFSET)
        bytes = reading->has_67 ? 4 : 8;
    if (shape & I16)
        result->immediate = next_number(reading, 2);
    if (bytes)
        result->immediate = next_number(reading, bytes);
    if (shape & I8)
        result->immediate = next_number(reading, 1);
}

/* The bit of a register operand. */
static unsigned bit_of(const struct reading *reading, uint8_t number)
{
    bool is_high = reading->shape & BYTE && !reading->has_rex && number >= 4 && number < 8;
    return 1u << (is_high ? number - 4 : number);
}

static uint16_t written_by(const struct reading *reading)
{
    const struct x86_instruction *result = reading->result;
    uint16_t shape = reading->shape;
    unsigned written = 0;
    if (shape & REG)
        written |= bit_of(reading, result->reg);
    if (shape & RM && result->mod == 3)
        written |= bit_of(reading, result->rm);
    if (shape & LOW)
        written |= bit_of(reading, result->rm);
    written |= shape & AX ? 1u << X86_RAX : 0;
    written |= shape & DX ? 1u << X86_RDX : 0;
    written |= shape & CX ? 1u << X86_RCX : 0;
    written |= shape & STRING ? 1u << X86_RSI | 1u << X86_RDI | 1u << X86_RCX : 0;
    if (result->is_vector && result->map == X86_MAP_0F38 &&
        (result->opcode == 0xf3 || result->opcode == 0xf6)) /* blsr and the like, mulx */
        written |= 1u << reading->other;
    if (!result->is_vector && result->map == X86_MAP_0F) {
        written |= result->opcode == 0x05 ? 1u << X86_R11 : 0;
        written |= result->opcode == 0xa2 ? 1u << X86_RBX : 0;
    }
    return (uint16_t)written;
}

/* Prefixes, map and opcode; and the opcode's shape. */
static bool take_opcode(struct reading *reading)
{
    struct x86_instruction *result = reading->result;
    uint8_t byte = take_prefixes(reading);
    bool is_known = true;
    result->is_vector = byte == 0xc4 || byte == 0xc5 || byte == 0x62;
    if (result->is_vector) {
        is_known = byte == 0x62 ? take_evex(reading) : take_vex(reading, byte == 0xc4);
        reading->has_rex = true;
        reading->shape = vector_shape(result);
    } else if (byte != 0x0f) {
        result->opcode = byte;
        reading->shape = ONE[byte];
    } else {
        byte = next_byte(reading);
        result->map = byte == 0x38 ? X86_MAP_0F38 : byte == 0x3a ? X86_MAP_0F3A : X86_MAP_0F;
        result->opcode = result->map == X86_MAP_0F ? byte : next_byte(reading);
        reading->shape = result->map == X86_MAP_0F ? TWO[byte] : vector_shape(result);
    }
    result->is_wide = reading->rex & 8;
    result->rm = (uint8_t)((result->opcode & 7) | (reading->rex << 3 & 8));
    return is_known && reading->shape != BAD;
}

bool x86_decode(const uint8_t *code, size_t bytes, struct x86_instruction *ret_instruction)
{
    struct x86_instruction *result = ret_instruction;
    *result = (struct x86_instruction){.base = X86_NO_REGISTER};
    struct reading reading = {
        .code = code, .bytes = bytes < X86_LENGTH_MOST ? bytes : X86_LENGTH_MOST, .result = result};
    if (!take_opcode(&reading))
        return false;
    if (reading.shape & M)
        take_modrm(&reading);
    if (reading.shape & GROUP)
        reading.shape = refine_group(result, reading.shape);
    if (reading.is_short || reading.shape == BAD)
        return false;
    take_immediates(&reading);
    result->length = (uint8_t)reading.at;
    result->written = written_by(&reading);
    return !reading.is_short;
}

bool x86_is_padding(const struct x86_instruction *instruction)
{
    if (instruction->is_vector)
        return false;
    return instruction->map == X86_MAP_ONE
               ? (instruction->opcode == 0x90 && instruction->rm == X86_RAX) ||
                     instruction->opcode == 0xcc
               : instruction->map == X86_MAP_0F && instruction->opcode == 0x1f;
}
