/* From the registers and a copy of the stack, as perf's --call-graph dwarf records them, to the
 * list of callers.
 *
 *     struct unwinder *unwinder;
 *     unwinder_open(EM_X86_64, (struct unwind_finder){find_code, &process}, &unwinder);
 *     for each sample:
 *         unwind_sample_from_perf(EM_X86_64, mask, registers, &sample);
 *         sample.stack = …; sample.stack_bytes = …;
 *         end = unwind(unwinder, &sample, &frames);
 *
 * One unwinder per process (address space): it remembers which rule is valid at which address.
 * unwinder_forget() when the answers of the finder have changed: at an MMAP or exec, and for code
 * that is generated at run time when other code comes to stand at an address. */
#ifndef PITVIPER_UNWIND_UNWIND_H
#define PITVIPER_UNWIND_UNWIND_H

#include "unwind/code_rules.h"

enum { UNWIND_REGISTERS = 32 };

struct unwind_cpu {
    uint64_t pc;                          /* avma */
    uint64_t registers[UNWIND_REGISTERS]; /* by DWARF number, the stack pointer among them */
    uint32_t known;                       /* bit n: registers[n] is valid */
};

struct unwind_sample {
    struct unwind_cpu cpu;
    const uint8_t *stack; /* copy of the memory from `stack_avma` on; borrowed */
    uint64_t stack_avma;  /* the stack pointer at the time of the sample, or before it */
    size_t stack_bytes;   /* how many of them are valid (perf's dyn_size) */
    /* The stack that was left for this one, when a signal handler runs on a stack of its own. */
    const uint8_t *outer_stack;
    uint64_t outer_avma;
    size_t outer_bytes; /* 0: there is none */
    /* The copy reaches the end of the stack: nothing can be behind it. perf never knows that: its
     * copies end early at pages that were not touched yet, too. */
    bool is_whole;
};

/* Room for the frames that are found, innermost first, and how many there are. */
struct unwind_frames {
    /* Each pc lies in the instruction that the frame is executing: the sampled pc itself, for
     * callers the return address minus 1, except where a signal interrupted (exact again). As perf
     * does it, and ready for the look-up of symbols and lines. */
    uint64_t *pcs;
    /* The canonical frame address of each frame, in the address space of the process: where its
     * part of the stack ends and the caller's begins. 0 where it is not known, which can be so for
     * the last frame only. NULL when nobody asks for them. */
    uint64_t *cfas;
    size_t capacity; /* of both arrays */
    size_t count;    /* set by unwind(): 1 at least if there is room */
};

/* What the caller knows of an address. */
struct unwind_code {
    struct unwind_table *table; /* NULL: there is none */
    struct code_rules *code;    /* where the table says nothing; NULL: frame pointers */
    uint64_t bias;              /* avma - svma of both */
    /* The same with the process's memory, by avma, where `code` does not tell; NULL: none. */
    struct code_rules *live_code;
    bool is_certain; /* the code is known: what it says needs no check */
};

/* Finds the code at an avma; false when nothing executable is known to be there. Tables and
 * code_rules must stay valid until unwinder_forget or unwinder_close. */
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

/* 0, -ENOMEM, or -ENOTSUP for a machine that is not known (EM_X86_64 and EM_AARCH64 are). */
int unwinder_open(uint16_t elf_machine, struct unwind_finder finder,
                  struct unwinder **ret_unwinder);
void unwinder_close(struct unwinder *unwinder);

void unwinder_forget(struct unwinder *unwinder);

/* Sets registers and stack_avma of a sample, the rest of it to 0, from perf's registers: `mask` is
 * the event's sample_regs_user, `values` one word per bit of it, ascending. False when pc or stack
 * pointer are not among them. */
bool unwind_sample_from_perf(uint16_t elf_machine, uint64_t mask, const uint64_t *values,
                             struct unwind_sample *ret_sample);

/* The word at an avma, if the copy has it. */
bool unwind_sample_word(const struct unwind_sample *sample, uint64_t avma, uint64_t *ret_word);

/* Keeps nothing of the sample. Only tables and code_rules allocate, for addresses that are new to
 * them. */
enum unwind_end unwind(struct unwinder *unwinder, const struct unwind_sample *sample,
                       struct unwind_frames *frames);

#endif
