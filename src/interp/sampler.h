/* The sampler: while `pitviper record` is at work, every thread of this process is interrupted now
 * and then and notes where it is. */
#ifndef PITVIPER_INTERP_SAMPLER_H
#define PITVIPER_INTERP_SAMPLER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct sample_thread;

/* Ours are above those that programs usually have. */
enum { SAMPLER_FIRST_DESCRIPTOR = 200 };

/* Starts it if the environment asks for it; before main, on the only thread. */
void sampler_start(void);

bool sampler_is_on(void);

/* Python may come while the program runs, as a plug-in of it. When it starts it asks for the action
 * of every signal. */
void sampler_look_for_python(void);

/* A thread has begun: the calling one. */
void sampler_thread_begins(void);

/* The process is about to become another program: no signal may be left that would end it. */
void sampler_before_exec(const char *name);

/* ... and it did not. */
void sampler_exec_failed(void);

/* The process ends, without its destructors. */
void sampler_before_exit(void);

/* A process is another program since about this time (CLOCK_MONOTONIC), by posix_spawn. */
void sampler_note_program(const char *name, pid_t pid, uint64_t time_ns);

/* Whether a signal is in use by the sampler of this process. */
bool sampler_uses_signal(int signal);

/* Whether its handler is ours, even if the sampler has stopped. */
bool sampler_handles_signal(int signal);

/* A descriptor that the program does not know of; -1: there is none. */
int sampler_descriptor(void);

/* The calling thread, if it is interrupted while it waits, too; NULL: it is not. */
struct sample_thread *sampler_interrupts_waits(void);

/* Whether one of ours is to stand before handlers that the program installs now. */
bool sampler_is_before_handlers(void);

/* The program's action for a signal that we handle: it gets those that are not ours. */
void sampler_set_action(const struct sigaction *action);
void sampler_give_action(struct sigaction *ret_action);

#endif
