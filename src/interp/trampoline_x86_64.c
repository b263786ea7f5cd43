/* The trampoline of x86-64.
 *
 *     offset   bytes         instruction       CFA        the caller's rbp
 *       0      f3 0f 1e fa   endbr64           rsp +  8   in rbp
 *       4      55            push %rbp         rsp +  8   in rbp
 *       5      48 89 e5      mov %rsp, %rbp    rsp + 16   at CFA - 16
 *       8      ff d1         call *%rcx        rbp + 16   at CFA - 16
 *      10      5d            pop %rbp          rbp + 16   at CFA - 16
 *      11      c3            ret               rsp +  8   in rbp
 *      12      cc ...        never reached
 *
 * rdi, rsi and edx hold the evaluator's arguments and pass through untouched; rcx, the fourth
 * argument, is the evaluator itself. The frame pointer costs two instructions and pays twice: those
 * who unwind by frame pointers pass through the trampoline even when the interpreter was built
 * without them (samply, which assumes them for code from nowhere), and the CFA does not depend on
 * the stack pointer while the evaluator runs.
 *
 *     stack:   ... caller's frame | return address | rbp | return address +10 | evaluator ...
 *                                 ^ CFA                    ^ into the trampoline
 *
 * endbr64 makes it a legal target where indirect branches are checked (CET).
 *
 * The two columns on the right are what the FDE below says, instruction by instruction. In the
 * image that perf makes of a jitdump record, .eh_frame follows the code at the next multiple of 8,
 * and .eh_frame_hdr follows .eh_frame; all distances are relative, so the bytes fit every function.
 */
#include "interp/trampoline.h"

#include <elf.h>

#if defined(__x86_64__)

const uint8_t TRAMPOLINE_CODE[TRAMPOLINE_BYTES] = {
    0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3, 0xcc, 0xcc, 0xcc, 0xcc,
};

const uint32_t TRAMPOLINE_ELF_MACHINE = EM_X86_64;

enum {
    CIE_BYTES = 24,
    FDE_BYTES = 32,
    EH_FRAME_BYTES = CIE_BYTES + FDE_BYTES,

    /* Distances from the field that holds them, or from .eh_frame_hdr in its table. */
    PC_TO_CODE = -(TRAMPOLINE_BYTES + CIE_BYTES + 8),
    HDR_TO_EH_FRAME = -(EH_FRAME_BYTES + 4),
    HDR_TO_CODE = -(TRAMPOLINE_BYTES + EH_FRAME_BYTES),
    HDR_TO_FDE = -FDE_BYTES,

    RBP = 6,
    RSP = 7,
    RETURN_ADDRESS = 16,
};

_Static_assert(TRAMPOLINE_BYTES % 8 == 0, "nothing may lie between the code and .eh_frame");
_Static_assert(EH_FRAME_BYTES + TRAMPOLINE_EH_FRAME_HDR_BYTES == TRAMPOLINE_UNWINDING_BYTES,
               "the parts make up the whole");

#define LE32(value)                                                                                \
    (uint8_t)(value), (uint8_t)((uint32_t)(value) >> 8), (uint8_t)((uint32_t)(value) >> 16),       \
        (uint8_t)((uint32_t)(value) >> 24)

#define CFA_ADVANCE(bytes) (0x40 | (bytes))
#define CFA_REGISTER_AT(reg, words) (0x80 | (reg)), (words) /* at CFA - 8 * words */
#define CFA_RESTORE(reg) (0xc0 | (reg))
#define CFA_IS(reg, offset) 0x0c, (reg), (offset)
#define CFA_IS_REGISTER(reg) 0x0d, (reg)
#define CFA_IS_OFFSET(offset) 0x0e, (offset)
#define CFA_NOP 0x00

const uint8_t TRAMPOLINE_UNWINDING[TRAMPOLINE_UNWINDING_BYTES] = {
    /* CIE: version 1; "zR"; code alignment 1, data alignment -8; FDE pointers pcrel | sdata4 */
    LE32(CIE_BYTES - 4), LE32(0), 1, 'z', 'R', 0, 1, 0x78, RETURN_ADDRESS, 1, 0x1b, CFA_IS(RSP, 8),
    CFA_REGISTER_AT(RETURN_ADDRESS, 1), CFA_NOP, CFA_NOP,

    /* FDE: distance to the CIE, start and size of the code, no augmentation data */
    LE32(FDE_BYTES - 4), LE32(CIE_BYTES + 4), LE32(PC_TO_CODE), LE32(TRAMPOLINE_BYTES), 0,
    /*  5 */ CFA_ADVANCE(5), CFA_IS_OFFSET(16), CFA_REGISTER_AT(RBP, 2),
    /*  8 */ CFA_ADVANCE(3), CFA_IS_REGISTER(RBP),
    /* 11 */ CFA_ADVANCE(3), CFA_IS(RSP, 8), CFA_RESTORE(RBP), CFA_NOP, CFA_NOP,

    /* .eh_frame_hdr: version 1; pointer pcrel | sdata4, count udata4, table datarel | sdata4 */
    1, 0x1b, 0x03, 0x3b, LE32(HDR_TO_EH_FRAME), LE32(1), LE32(HDR_TO_CODE), LE32(HDR_TO_FDE)};

#endif
