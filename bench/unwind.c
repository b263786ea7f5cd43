/* How many stacks of a recording are unwound in a second of CPU time? By our tables, or by
 * elfutils' libdw.
 *
 *     bench_unwind ours|libdw perf.data       prints: set_up_ns stacks frames ns checksum
 *
 * One process per measurement, so that the caller can interleave them. Set-up is opening the files,
 * for ours only. Both sides read frame information as they go, in a first pass that is not counted.
 * The samples are walked as often as it takes to run for a second. The checksum adds up
 * the PCs of one pass. */
#ifdef HAVE_LIBDW
#include "libdw_stacks.h"
#endif
#include "recorded_stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_FRAMES = 4096, SECOND_NS = 1000000000 };

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_nsec;
}

/* One of the two sides. */
struct side {
    struct unwinder *unwinder;
    struct libdw_stacks *libdw;
};

static size_t unwind_one(struct side *side, const struct unwind_sample *sample, uint64_t *pcs)
{
    size_t count = 0;
    if (side->unwinder) {
        static uint64_t cfas[MOST_FRAMES];
        struct unwind_frames frames = {.pcs = pcs, .cfas = cfas, .capacity = MOST_FRAMES};
        unwind(side->unwinder, sample, &frames);
        count = frames.count;
    }
#ifdef HAVE_LIBDW
    if (side->libdw) {
        struct libdw_frames frames = {.pcs = pcs, .capacity = MOST_FRAMES};
        libdw_stacks_unwind(side->libdw, sample, &frames);
        count = frames.count;
    }
#endif
    return count;
}

struct totals {
    uint64_t stacks, frames, checksum;
};

static void walk_all(struct side *side, const struct recorded_stacks *stacks, struct totals *totals)
{
    static uint64_t pcs[MOST_FRAMES];
    for (size_t i = 0; i < stacks->samples.count; i++) {
        size_t count = unwind_one(side, &stacks->samples.items[i], pcs);
        totals->stacks++;
        totals->frames += count;
        for (size_t j = 0; j < count; j++)
            totals->checksum += pcs[j];
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct recorded_stacks stacks;
    uint64_t begin = now_ns();
    recorded_stacks_read(&stacks, argv[2]);
    uint64_t set_up_ns = now_ns() - begin;
    struct side side = {0};
    struct unwind_finder finder = {recorded_stacks_find, &stacks};
    if (strcmp(argv[1], "ours") == 0 && unwinder_open(EM_X86_64, finder, &side.unwinder) < 0)
        return 2;
#ifdef HAVE_LIBDW
    if (strcmp(argv[1], "libdw") == 0)
        side.libdw = libdw_stacks_open(&stacks);
#endif
    struct totals first = {0}, all = {0};
    walk_all(&side, &stacks, &first);
    if (!first.frames)
        return 2;
    begin = now_ns();
    uint64_t ns;
    do
        walk_all(&side, &stacks, &all);
    while ((ns = now_ns() - begin) < SECOND_NS);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", set_up_ns, all.stacks,
           all.frames, ns, first.checksum);
    return 0;
}
