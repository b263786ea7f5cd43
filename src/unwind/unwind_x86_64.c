/* x86-64: a call pushes the return address, and nothing else is certain.
 *
 *     CFA ->   ...                 the caller's stack pointer
 *     CFA - 8  return address
 *     CFA - 16 caller's rbp        only with frame pointers
 *     rbp ->   (CFA - 16)
 *
 * perf numbers registers as the kernel saves them, DWARF as the ABI lists them. */
#include "unwind/unwind_machine.h"

#include <elf.h>

enum { RBP = 6, RSP = 7 };

const struct unwind_machine unwind_x86_64 = {
    .elf_machine = EM_X86_64,
    .sp = RSP,
    .frame_pointer = RBP,
    .link = UNWIND_NO_REGISTER,
    .pc = 16,
    .saved = 1u << 3 | 1u << RBP | 0xfu << 12, /* rbx, rbp, r12 to r15 */
    .least_frame_bytes = 8,
    .least_leaf_bytes = 8,
    .code_mask = UINT64_MAX,
    .frame_pointer_rule =
        {
            .is_guess = 1,
            .cfa = UNWIND_CFA_REGISTER,
            .cfa_number = RBP,
            .cfa_offset = 16,
            .return_address = {.kind = UNWIND_AT_CFA, .offset = -8},
            .place_count = 1,
            .places = {{.kind = UNWIND_AT_CFA, .offset = -16, .target = RBP}},
        },
    .follow = unwind_follow_x86_64,
    .is_behind_call = unwind_is_behind_call_x86_64,
    .perf_registers =
        {0, 3, 2, 1, 4, 5,                                        /* rax, rbx, rcx, rdx, rsi, rdi */
         RBP, RSP, UNWIND_PERF_PC, [9 ... 15] = UNWIND_PERF_NONE, /* flags, segments */
         [16] = 8, [17] = 9, [18] = 10, [19] = 11, [20] = 12, [21] = 13, [22] = 14, [23] = 15,
         [24 ... 63] = UNWIND_PERF_NONE}, /* vector registers */
};
