/* What interrupts the threads: a perf event of the kernel, or a timer per thread. */
#ifndef PITVIPER_INTERP_SAMPLE_TRIGGER_H
#define PITVIPER_INTERP_SAMPLE_TRIGGER_H

#include "formats/sample_ring.h"
#include "interp/sample_thread.h"

#include <signal.h>

/* Chooses the best one and starts it for the calling thread, the only one of the process. A thread
 * that is young, as the caller says, is no longer so where there are no events. */
enum sample_trigger sample_trigger_start(enum sample_clock clock, uint32_t frequency_hz,
                                         struct sample_thread *thread);

/* The signal of a kind of trigger; 0: none. */
int sample_trigger_signal(enum sample_trigger trigger);

/* The same for one more thread, the calling one, as far as it does not share that of the first. */
void sample_trigger_add(enum sample_trigger trigger, uint32_t frequency_hz,
                        struct sample_thread *thread);
void sample_trigger_remove(struct sample_thread *thread);

/* A young thread's time up to now is accounted for. It may be young no longer. For signal handlers.
 */
void sample_trigger_rejoin(enum sample_trigger trigger, uint32_t frequency_hz,
                           struct sample_thread *thread);

/* A tick has come to a thread that is not young, and events were missing or not: how often to look.
 * For signal handlers. */
void sample_trigger_after_tick(uint32_t frequency_hz, struct sample_thread *thread,
                               bool is_missing);

/* For good, and for all threads that have a perf event. */
void sample_trigger_end(void);

/* For a while, and for all threads that share one. Resuming is for the thread that has paused;
 * false when other threads have ticks only from now on. */
void sample_trigger_pause(void);
bool sample_trigger_resume(uint32_t frequency_hz);

/* In the child of a fork: what the parent had is not ours. `thread` may be NULL. */
void sample_trigger_forget(struct sample_thread *thread);

/* The descriptor of an event that ends when it is closed; -1: none. */
int sample_trigger_descriptor(void);

/* Whether the signal comes from the trigger. */
bool sample_trigger_is_source(const siginfo_t *info);

/* Whether it is no event, but a tick of the kernel's clock. */
bool sample_trigger_is_tick(enum sample_trigger trigger, const siginfo_t *info);

#endif
