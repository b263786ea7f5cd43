/* Unwinds all stacks of a recording twice, by our tables and by libdw, and compares the PCs and
 * the places of the frames on the stack.
 *
 *     unwind_oracle perf.data [N]
 *
 * prints one line of JSON: samples, equal ones, how ours ended, frames; and, on standard error, the
 * first N stacks that differ.
 *
 * In two cases libdw ends too early, for a reason that is known. Such samples are counted apart, if
 * both are the same as far as libdw came, and ours goes on to the outermost frame or to the end of
 * the copy:
 *
 *  - "oracle_blind": a function has popped its registers already, and libdw looks for them where
 *    they were, below the stack pointer: memory that is not in the recording.
 *  - "oracle_lost_rbx": where a function does not say what became of a register that calls keep, it
 *    is unchanged. libdw's table of those registers (x86_64_abi_cfi, elfutils 0.188 to 0.196) has
 *    register 0, rax, in the place of 3, rbx. So it loses rbx in the first instructions of a
 *    function, and stops at a caller whose CFA rests on rbx: ld.so's _dl_runtime_resolve. perf's
 *    libunwind agrees with ours there.
 *
 * In the kernel's part of rt_sigreturn the pc is behind the system call, where libc's description
 * ends. libdw guesses there; so it is asked about the address before, which is described. */
#include "libdw_stacks.h"
#include "recorded_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FRAMES = 4096, RBX = 3 };

struct stack {
    uint64_t pcs[MOST_FRAMES];
    uint64_t cfas[MOST_FRAMES]; /* 0: not known */
    size_t count;
};

struct sides {
    struct recorded_stacks stacks;
    struct unwinder *unwinder;
    struct libdw_stacks *libdw;
    long most_shown; /* of the stacks that differ */
};

struct counts {
    size_t samples, equal, blind, lost_rbx, sigreturns, frames, signal_frames, ends[3];
};

static const struct unwind_rule *rule_at(struct recorded_stacks *stacks, uint64_t pc)
{
    struct unwind_code code;
    return recorded_stacks_find(stacks, pc, &code) && code.table
               ? unwind_table_find(code.table, pc - code.bias)
               : NULL;
}

static bool returns_from_signal(struct recorded_stacks *stacks, uint64_t pc)
{
    const struct unwind_rule *rule = rule_at(stacks, pc);
    return rule && rule->is_signal;
}

static bool is_in_sigreturn(struct recorded_stacks *stacks, uint64_t pc)
{
    return !rule_at(stacks, pc) && returns_from_signal(stacks, pc - 1);
}

/* Whether libdw's stack is ours, as far as it goes. It takes the code that a signal handler returns
 * to for a caller, one byte before; it was never called. */
static bool is_start_of(struct recorded_stacks *stacks, const struct stack *theirs,
                        const struct stack *ours, struct counts *counts)
{
    for (size_t i = 0; i < theirs->count; i++) {
        bool is_signal = i < ours->count && returns_from_signal(stacks, ours->pcs[i]);
        counts->signal_frames += is_signal;
        if (i >= ours->count ||
            (ours->pcs[i] != theirs->pcs[i] && !(is_signal && ours->pcs[i] == theirs->pcs[i] + 1)))
            return false;
        if (theirs->cfas[i] && ours->cfas[i] != theirs->cfas[i])
            return false;
    }
    return true;
}

/* Whether the frame that libdw stopped at needs rbx, and the one that it called says nothing of
 * it. */
static bool needs_unspoken_rbx(struct recorded_stacks *stacks, const struct stack *theirs)
{
    if (theirs->count < 2)
        return false;
    const struct unwind_rule *last = rule_at(stacks, theirs->pcs[theirs->count - 1]);
    const struct unwind_rule *called = rule_at(stacks, theirs->pcs[theirs->count - 2]);
    return last && last->cfa_number == RBX && called && !(called->restored >> RBX & 1);
}

static void print_stack(struct recorded_stacks *stacks, const char *who, const struct stack *stack)
{
    fprintf(stderr, "  %s, %zu frames:\n", who, stack->count);
    for (size_t i = 0; i < stack->count; i++) {
        const char *path = "?";
        uint64_t svma = 0;
        for (size_t j = 0; j < stacks->modules.count; j++) {
            const struct recorded_module *module = &stacks->modules.items[j];
            if (stack->pcs[i] - module->mapping.start_avma < module->mapping.length) {
                path = module->path;
                svma = stack->pcs[i] - module->bias;
            }
        }
        fprintf(stderr, "    %#" PRIx64 " %#" PRIx64 " %#" PRIx64 " %s\n", stack->pcs[i],
                stack->cfas[i], svma, path);
    }
}

/* Whether libdw went blind. */
static bool unwind_by_libdw(struct sides *sides, struct unwind_sample sample, struct stack *theirs,
                            struct counts *counts)
{
    static uint64_t sps[MOST_FRAMES + 1];
    struct libdw_frames frames = {.pcs = theirs->pcs, .sps = sps, .capacity = MOST_FRAMES};
    bool is_sigreturn = is_in_sigreturn(&sides->stacks, sample.cpu.pc);
    sample.cpu.pc -= is_sigreturn;
    counts->sigreturns += is_sigreturn;
    libdw_stacks_unwind(sides->libdw, &sample, &frames);
    theirs->count = frames.count;
    if (is_sigreturn && frames.count)
        theirs->pcs[0]++;
    sps[frames.count] = 0;
    for (size_t i = 0; i < frames.count; i++)
        theirs->cfas[i] = sps[i + 1];
    return frames.is_blind;
}

/* Counts one sample, and prints it if it should when the two differ for no reason that is known. */
static void compare(struct sides *sides, const struct unwind_sample *sample, struct counts *counts)
{
    static const char *const ENDS[] = {"complete", "truncated", "broken"};
    static struct stack ours, theirs;
    struct recorded_stacks *stacks = &sides->stacks;
    struct unwind_frames frames = {.pcs = ours.pcs, .cfas = ours.cfas, .capacity = MOST_FRAMES};
    enum unwind_end end = unwind(sides->unwinder, sample, &frames);
    ours.count = frames.count;
    bool is_blind = unwind_by_libdw(sides, *sample, &theirs, counts);
    size_t number = counts->samples++;
    counts->ends[end]++;
    counts->frames += ours.count;
    bool is_start = is_start_of(stacks, &theirs, &ours, counts);
    bool ends_early = is_start && theirs.count < ours.count && end != UNWIND_BROKEN;
    if (is_start && theirs.count == ours.count)
        counts->equal++;
    else if (ends_early && is_blind)
        counts->blind++;
    else if (ends_early && needs_unspoken_rbx(stacks, &theirs))
        counts->lost_rbx++;
    else if (sides->most_shown-- > 0) {
        fprintf(stderr, "sample %zu, ours is %s\n", number, ENDS[end]);
        print_stack(stacks, "ours", &ours);
        print_stack(stacks, "libdw", &theirs);
    }
}

int main(int argc, char **argv)
{
    static struct sides sides;
    struct counts counts = {0};
    if (argc < 2)
        return 2;
    sides.most_shown = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    recorded_stacks_read(&sides.stacks, argv[1]);
    struct unwind_finder finder = {recorded_stacks_find, &sides.stacks};
    if (unwinder_open(EM_X86_64, finder, &sides.unwinder) < 0)
        return 2;
    sides.libdw = libdw_stacks_open(&sides.stacks);
    for (size_t i = 0; i < sides.stacks.samples.count; i++)
        compare(&sides, &sides.stacks.samples.items[i], &counts);
    printf("{\"samples\": %zu, \"equal\": %zu, \"oracle_blind\": %zu, \"oracle_lost_rbx\": %zu, "
           "\"complete\": %zu, \"truncated\": %zu, \"broken\": %zu, \"frames\": %zu, "
           "\"signal_frames\": %zu, \"sigreturns\": %zu}\n",
           counts.samples, counts.equal, counts.blind, counts.lost_rbx,
           counts.ends[UNWIND_COMPLETE], counts.ends[UNWIND_TRUNCATED], counts.ends[UNWIND_BROKEN],
           counts.frames, counts.signal_frames, counts.sigreturns);
    libdw_stacks_close(sides.libdw);
    unwinder_close(sides.unwinder);
    recorded_stacks_done(&sides.stacks);
    return 0;
}
