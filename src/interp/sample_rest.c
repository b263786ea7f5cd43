/* A perf event that a thread inherits comes when the thread has run for a whole period, so a thread
 * that ends earlier has no sample. A server with a thread or a process for each request consists of
 * such threads:
 *
 *     events       |         |         |            one period of a thread's time apart
 *     threads      [---1--]  [----2-----]  [-3-]    2 has one sample, 1 and 3 have none
 *     ticks             ^                    ^      of the kernel's clock, at any moment
 *
 * When a thread ends, the time that no sample stands for goes to an account. A new thread that is
 * interrupted by a tick before it has any sample (sample_trigger.c) takes one that stands for all
 * that is on the account. So all of the time is there, divided among functions as the ticks fall,
 * 250 times a second or more often. A program whose threads live long has next to nothing on its
 * account, and no such samples.
 *
 * The account is a page of memory that forked processes share. It is only ever added to and
 * emptied, in one step each. */
#include "interp/sample_rest.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

/* More than this and a period is not what is left between two ticks: nobody else should have it. */
enum { MOST_NS = 20000000 };

static _Atomic int64_t *account; /* in ns; NULL: there is none */

void sample_rest_start(void)
{
    void *page =
        mmap(NULL, sizeof *account, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    account = page == MAP_FAILED ? NULL : page;
}

void sample_rest_leave(struct sample_thread *thread, uint64_t period_ns)
{
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t most = (int64_t)period_ns + MOST_NS;
    int64_t left = (int64_t)(cpu_ns - thread->accounted_ns + thread->owed_ns);
    thread->accounted_ns = cpu_ns;
    thread->owed_ns = 0;
    if (account && left <= most && left >= -most)
        atomic_fetch_add_explicit(account, left, memory_order_relaxed);
}

uint64_t sample_rest_take(uint64_t period_ns)
{
    int64_t left = account ? atomic_load_explicit(account, memory_order_relaxed) : 0;
    if (left < (int64_t)(period_ns / 2) ||
        !atomic_compare_exchange_strong_explicit(account, &left, 0, memory_order_relaxed,
                                                 memory_order_relaxed))
        return 0; /* or another thread was faster */
    return (uint64_t)left;
}
