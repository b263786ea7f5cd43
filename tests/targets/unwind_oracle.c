/* Unwinds all stacks of a recording twice, by our tables and by libdw, and compares the PCs.
 *
 *     unwind_oracle perf.data [N]
 *
 * prints one line of JSON: samples, equal ones, how ours ended, frames; and, on standard error, the
 * first N stacks that differ.
 *
 * Where a function has popped its registers already, libdw looks for them below the stack pointer:
 * memory that is not in the recording. It goes blind then and stops early. Those samples are
 * counted apart; as far as libdw came, the PCs must be the same. */
#include "libdw_stacks.h"
#include "recorded_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_FRAMES = 4096 };

/* libdw takes the code that a signal handler returns to for a caller; it was never called. */
static bool is_same_pc(uint64_t ours, uint64_t theirs, bool may_be_signal)
{
    return ours == theirs || (may_be_signal && ours == theirs + 1);
}

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

static void print_stack(struct recorded_stacks *stacks, const char *who, const uint64_t *pcs,
                        size_t count)
{
    fprintf(stderr, "  %s, %zu frames:\n", who, count);
    for (size_t i = 0; i < count; i++) {
        const char *path = "?";
        uint64_t svma = 0;
        for (size_t j = 0; j < stacks->modules.count; j++) {
            const struct recorded_module *module = &stacks->modules.items[j];
            if (pcs[i] - module->mapping.start_avma < module->mapping.length) {
                path = module->path;
                svma = pcs[i] - module->bias;
            }
        }
        fprintf(stderr, "    %#" PRIx64 " %#" PRIx64 " %s\n", pcs[i], svma, path);
    }
}

int main(int argc, char **argv)
{
    static uint64_t ours[MOST_FRAMES], theirs[MOST_FRAMES];
    static const char *const ENDS[] = {"complete", "truncated", "broken"};
    if (argc < 2)
        return 2;
    long shown = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    struct recorded_stacks stacks;
    recorded_stacks_read(&stacks, argv[1]);
    struct unwinder *unwinder;
    struct unwind_finder finder = {recorded_stacks_find, &stacks};
    if (unwinder_open(EM_X86_64, finder, &unwinder) < 0)
        return 2;
    struct libdw_stacks *libdw = libdw_stacks_open(&stacks);
    size_t equal = 0, frame_count = 0, signals = 0, blind = 0, sigreturns = 0, ends[3] = {0};
    for (size_t i = 0; i < stacks.samples.count; i++) {
        const struct unwind_sample *sample = &stacks.samples.items[i];
        struct unwind_frames frames = {.pcs = ours, .capacity = MOST_FRAMES};
        enum unwind_end end = unwind(unwinder, sample, &frames);
        size_t our_count = frames.count;
        bool is_blind;
        size_t their_count = libdw_stacks_unwind(libdw, sample, theirs, MOST_FRAMES, &is_blind);
        bool same = our_count == their_count || (is_blind && our_count > their_count);
        for (size_t j = 0; j < their_count && same; j++) {
            bool is_signal = returns_from_signal(&stacks, ours[j]);
            signals += is_signal;
            same = is_same_pc(ours[j], theirs[j], is_signal);
        }
        ends[end]++;
        if (!same && is_in_sigreturn(&stacks, ours[0])) {
            sigreturns++;
            continue;
        }
        equal += same;
        blind += is_blind && same && our_count > their_count;
        frame_count += our_count;
        if (!same && shown-- > 0) {
            fprintf(stderr, "sample %zu, ours is %s\n", i, ENDS[end]);
            print_stack(&stacks, "ours", ours, our_count);
            print_stack(&stacks, "libdw", theirs, their_count);
        }
    }
    printf("{\"samples\": %zu, \"equal\": %zu, \"complete\": %zu, \"truncated\": %zu, "
           "\"broken\": %zu, \"frames\": %zu, \"signal_frames\": %zu, "
           "\"oracle_blind\": %zu, \"in_sigreturn\": %zu}\n",
           stacks.samples.count, equal, ends[0], ends[1], ends[2], frame_count, signals, blind,
           sigreturns);
    libdw_stacks_close(libdw);
    unwinder_close(unwinder);
    recorded_stacks_done(&stacks);
    return 0;
}
