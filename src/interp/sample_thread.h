/* What the sampler keeps for each thread. */
#ifndef PITVIPER_INTERP_SAMPLE_THREAD_H
#define PITVIPER_INTERP_SAMPLE_THREAD_H

#include "interp/sample_chain.h"
#include "interp/sample_states.h"

#include <signal.h>
#include <time.h>
#include <ucontext.h>

enum {
    SAMPLE_KERNEL_WORDS = 512,
    SAMPLE_MISSING_EVENTS = 2, /* so many have not come: one is just late, perhaps */
};

struct sample_thread {
    uint32_t tid;
    bool is_announced; /* the ring has its name, which is ... */
    char name[16];     /* ... this; padded with 0 */
    uint64_t name_ns;  /* when it was looked at */
    bool has_timer;
    volatile bool has_ended_call; /* our signal, since somebody looked: see wait.c */
    volatile greg_t again_pc;     /* where our signal has made a system call begin again, ... */
    volatile greg_t again_call;   /* ... and which one: interrupted_call.c */
    volatile uint32_t handled;    /* signals for which a handler of the program's has run */
    timer_t timer;
    uint64_t accounted_ns;           /* CPU time that samples stand for */
    uint64_t born_ns;                /* its CPU time when it began */
    uint64_t tick_ns;                /* from one tick that it wants to the next */
    bool is_young;                   /* ticks tell what it does, not events: sample_rest.c */
    uint64_t time_ns;                /* time of the last sample; 0: there was none */
    uint64_t cost_ns;                /* what a sample takes, of late */
    uint64_t rest_until_ns;          /* no sample before: the last ones took long */
    uint32_t headless_count;         /* samples in a row whose chain was so; see is_put_off */
    uint64_t owed_ns;                /* time of samples that were left out or lost since then */
    uintptr_t stack_low, stack_high; /* of the C stack; equal when it is not known */
    uintptr_t stack_reached;         /* the lowest page of it that is known to be memory */
    struct sample_chain chain;       /* Python frames; without entries: they are not read */
    struct sample_states states;     /* of the thread, in several interpreters */
    size_t told;          /* outermost known ones that the last deep sample in the ring has, too */
    uint32_t deep_number; /* of that one */
    uint64_t deep_whole_ns;     /* when one had all its frames */
    uint8_t *signal_stack;      /* ours */
    stack_t their_signal_stack; /* that the program wants */

    /* The kernel's part: see sample_kernel.c. */
    uint64_t kernel_ns;      /* records up to this time have been read */
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

/* sigaltstack for the calling thread: what the program sees of signal stacks. */
int sample_thread_signal_stack(struct sample_thread *thread, const stack_t *wanted,
                               stack_t *ret_old);

/* Releases the calling thread's. The trigger must be off. */
void sample_thread_end(void);

/* The CPU time up to which the calling thread is accounted for although it has none any more; NULL
 * when it never had one. Fit for signal handlers. */
uint64_t *sample_thread_ended(void);

#endif
