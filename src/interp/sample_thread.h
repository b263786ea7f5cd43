/* What the sampler keeps for each thread. */
#ifndef PITVIPER_INTERP_SAMPLE_THREAD_H
#define PITVIPER_INTERP_SAMPLE_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum { SAMPLE_THREAD_FRAMES = 16384, SAMPLE_KERNEL_WORDS = 512 };

struct sample_thread {
    uint32_t tid;
    bool is_announced; /* the ring has its name */
    bool has_timer;
    bool has_signal_stack; /* that we gave it */
    timer_t timer;
    uint64_t cpu_ns;                 /* CPU time up to the last sample; 0: there was none */
    uint64_t time_ns;                /* time of the last sample */
    uint64_t cost_ns;                /* what a sample takes, of late */
    uint64_t rest_until_ns;          /* no sample before: the last ones took long */
    uint64_t owed_ns;                /* time of samples that were left out or lost since then */
    uintptr_t stack_low, stack_high; /* of the C stack; equal when it is not known */
    uint64_t *frames;                /* room for SAMPLE_THREAD_FRAMES entries */
    uint64_t *last_frames;           /* as much: those of the last deep sample in the ring */
    size_t last_count;
    uint32_t deep_number;   /* of the last deep sample */
    uint64_t deep_whole_ns; /* when one had all its frames */
    uint8_t *signal_stack;

    /* The kernel's part: see sample_kernel.c. */
    uint64_t kernel_ns;      /* records up to this time have been read */
    uint64_t kernel_cpu_ns;  /* CPU time that is accounted for */
    size_t kernel_processor; /* that it was on then */
    bool kernel_is_ahead;    /* a record has been read whose signal is still to come */
    uint32_t kernel_reads;   /* how often they were read */
    uint64_t handled_ns;     /* when the handler ended last */
    uint64_t *kernel_words;  /* room for SAMPLE_KERNEL_WORDS */
};

/* The calling thread's; NULL when it has none. Fit for signal handlers. */
struct sample_thread *sample_thread_mine(void);

/* Makes one for the calling thread. NULL when memory is short. */
struct sample_thread *sample_thread_begin(void);

/* Releases the calling thread's. The trigger must be off. */
void sample_thread_end(void);

#endif
