/* One profiled process while it is recorded: its ring is emptied, its samples become call chains
 * of C and Python functions. After an exec it is another one, of the same number. */
#ifndef PITVIPER_RECORD_PROCESS_H
#define PITVIPER_RECORD_PROCESS_H

#include "base/hashtable.h"
#include "formats/sample_ring.h"
#include "record/evaluators.h"
#include "record/generated_code.h"
#include "record/known_stacks.h"
#include "record/process_maps.h"
#include "record/programs.h"
#include "record/recording.h"
#include "record/thread_frames.h"
#include "unwind/unwind.h"

/* How good the recording is. */
struct process_counts {
    uint64_t samples;
    uint64_t complete, truncated, broken; /* stacks of C functions, by how their unwinding ended */
    uint64_t python;                      /* samples with Python frames or evaluators */
    uint64_t starting, unmatched;         /* of these: see merge.h */
    uint64_t cut;     /* Python frames that the sampler could not follow to the end */
    uint64_t lost;    /* samples for which the ring had no room */
    uint64_t damaged; /* records that make no sense */
};

/* Room for the sample at hand, which all processes share. */
struct process_room {
    uint64_t *pcs, *cfas, *frames, *chain; /* RECORDING_CHAIN_MOST each and more; owned */
    size_t frame_capacity;                 /* of `frames` */
    uint32_t *evaluators;                  /* RECORDING_CHAIN_MOST; owned */
};

/* What all processes of a recorder share; borrowed. */
struct process_context {
    struct recording *recording;
    struct code_files *files;
    struct programs programs; /* that they have started */
    struct process_room room;
    struct process_counts counts;
    uint64_t now_ns;
};

enum { PROCESS_CACHE_BITS = 13, PROCESS_RANGES = 16 };

struct process_cached {
    uint64_t frame; /* 0: free */
    uint64_t avma;
};

struct process {
    struct process_context *context;
    struct sample_ring ring;
    int32_t pid, parent_pid;
    int32_t own_pid; /* as it sees itself; another one in a PID namespace of its own */
    int pidfd;       /* -1: none */
    char command[sizeof((struct sample_ring_header *)0)->command];
    bool has_successor; /* another program has its number now */
    bool has_python;    /* its Python functions are mapped */
    uint64_t newest_ns; /* of its records */
    uint64_t lost;      /* samples, as counted so far */

    struct process_maps maps;
    uint64_t maps_wait_ns; /* no list of mappings before this long after the last one */
    bool wants_maps;       /* there was code that is not in the list */

    struct unwinder *unwinder;
    struct generated_code generated;
    struct known_stacks known_stacks;
    struct thread_frames thread_frames;
    struct evaluators evaluators;
    struct merge_range trampolines[PROCESS_RANGES]; /* mappings that have some */
    size_t trampoline_count;
    struct merge_range starters[PROCESS_RANGES]; /* of greenlets */
    size_t starter_count;
    struct hashtable threads;                                 /* by tid: enum thread_state */
    VECTOR(uint32_t) functions;                               /* by code number */
    struct process_cached addresses[1 << PROCESS_CACHE_BITS]; /* of Python frames */
};

int process_room_init(struct process_room *room); /* 0 or -ENOMEM */
void process_room_done(struct process_room *room);

/* Takes over an open ring. 0 or -ENOMEM; then the ring is still the caller's. */
int process_open(struct process_context *context, const struct sample_ring *ring,
                 struct process **ret_process);
void process_close(struct process *process);

/* Writes everything that is in the ring now. How full it was, in 1/256. */
unsigned process_drain(struct process *process);

/* Whether it is gone, or another program, and nothing is left to drain. */
bool process_has_ended(const struct process *process);

#endif
