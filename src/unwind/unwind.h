/* From the registers and a copy of the stack, as perf's --call-graph dwarf records them, to the
 * list of callers.
 *
 *     struct unwinder *unwinder;
 *     unwinder_open(EM_X86_64, (struct unwind_finder){find_code, &process}, &unwinder);
 *     for each sample:
 *         unwind_cpu_from_perf(EM_X86_64, mask, registers, &sample.cpu);
 *         end = unwind(unwinder, &sample, pcs, count_of_pcs, &count);
 *
 * One unwinder per process (address space): it remembers which rule is valid at which address.
 * unwinder_forget() when the answers of the finder have changed: at an MMAP or exec, and for code
 * that is generated at run time when other code comes to stand at an address. */
#ifndef PITVIPER_UNWIND_UNWIND_H
#define PITVIPER_UNWIND_UNWIND_H

#include "unwind/unwind_table.h"

enum { UNWIND_REGISTERS = 32 };

struct unwind_cpu {
    uint64_t pc;                          /* avma */
    uint64_t registers[UNWIND_REGISTERS]; /* by DWARF number, the stack pointer among them */
    uint32_t known;                       /* bit n: registers[n] is valid */
};

struct unwind_sample {
    struct unwind_cpu cpu;
    const uint8_t *stack; /* copy of the memory from `stack_avma` on; borrowed */
    uint64_t stack_avma;  /* the stack pointer at the time of the sample */
    size_t stack_bytes;   /* how many of them are valid (perf's dyn_size) */
    bool is_whole;        /* the copy reaches the end of the stack: nothing can be behind it */
};

/* What the caller knows of an address. */
struct unwind_code {
    const struct unwind_table *table; /* NULL: only frame pointers can help */
    uint64_t bias;                    /* avma - svma of the table */
};

/* Finds the code at an avma; false when nothing executable is known to be there. The tables must
 * stay valid until unwinder_forget or unwinder_close. */
struct unwind_finder {
    bool (*find)(void *context, uint64_t avma, struct unwind_code *ret_code);
    void *context;
};

enum unwind_end {
    UNWIND_COMPLETE,  /* the outermost frame was reached */
    UNWIND_TRUNCATED, /* the copy of the stack, or the room for PCs, was too small */
    UNWIND_BROKEN,    /* no rule at an address, or a rule that leads nowhere */
};

struct unwinder;

/* 0, -ENOMEM, or -ENOTSUP for a machine that is not known (EM_X86_64 is). */
int unwinder_open(uint16_t elf_machine, struct unwind_finder finder,
                  struct unwinder **ret_unwinder);
void unwinder_close(struct unwinder *unwinder);

void unwinder_forget(struct unwinder *unwinder);

/* Turns perf's registers into ours: `mask` is the event's sample_regs_user, `values` one word per
 * bit of it, ascending. False when pc or stack pointer are not among them. */
bool unwind_cpu_from_perf(uint16_t elf_machine, uint64_t mask, const uint64_t *values,
                          struct unwind_cpu *ret_cpu);

/* Writes the PCs of the frames, innermost first, `*ret_count` of them: 1 at least if there is room.
 * Each lies in the instruction that the frame is executing: the sampled pc itself, for callers the
 * return address minus 1, except where a signal interrupted (exact again). As perf does it, and
 * ready for the look-up of symbols and lines. Allocates nothing. */
enum unwind_end unwind(struct unwinder *unwinder, const struct unwind_sample *sample, uint64_t *pcs,
                       size_t capacity, size_t *ret_count);

#endif
