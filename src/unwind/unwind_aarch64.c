/* aarch64: a call leaves the return address in x30, the link register. A function that calls others
 * saves it, mostly in a frame record:
 *
 *     CFA ->   ...                 the caller's stack pointer
 *     CFA - 8  x30                 wherever the function has put its record, in fact
 *     CFA - 16 caller's x29
 *     x29 ->   (CFA - 16)
 *
 * A return address may be signed (pointer authentication): the signature is in the bits above those
 * that addresses use. Programs have 48 bits of address, more only where they ask for it, which
 * nobody does for code.
 *
 * Not here yet: the kernel's signal frame. Kernels since 5.8 describe its code by no CFI, so it is
 * passed by frame pointers; the interrupted function is found, but its stack pointer is not, and
 * the walk goes on only through functions with frame records. */
#include "unwind/unwind_machine.h"

#include <elf.h>

enum { X29 = 29, X30 = 30, SP = 31, PERF_PC = 32 };

#define FOUR(first) (first), (first) + 1, (first) + 2, (first) + 3

const struct unwind_machine unwind_aarch64 = {
    .elf_machine = EM_AARCH64,
    .sp = SP,
    .frame_pointer = X29,
    .link = X30,
    .pc = UNWIND_NO_REGISTER,
    .saved = 0x7ffu << 19, /* x19 to x29 */
    .least_frame_bytes = 16,
    .least_leaf_bytes = 0,
    .code_mask = (UINT64_C(1) << 48) - 1,
    .frame_pointer_rule =
        {
            .is_guess = 1,
            .cfa = UNWIND_CFA_REGISTER,
            .cfa_number = X29,
            .cfa_offset = 16,
            .return_address = {.kind = UNWIND_AT_CFA, .offset = -8},
            .place_count = 1,
            .places = {{.kind = UNWIND_AT_CFA, .offset = -16, .target = X29}},
        },
    /* perf has the same numbers as DWARF. */
    .perf_registers = {FOUR(0), FOUR(4), FOUR(8), FOUR(12), FOUR(16), FOUR(20), FOUR(24),
                       FOUR(28), [PERF_PC] = UNWIND_PERF_PC,
                       [PERF_PC + 1 ... 63] = UNWIND_PERF_NONE},
};
