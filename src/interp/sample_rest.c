/* A perf event that a thread inherits comes when the thread has run for a whole period, then for
 * two, and so on. A thread that ends earlier has no sample, and of a longer one the end is never
 * seen. A server with a thread or a process for each request consists of such threads:
 *
 *     events       |         |         |            one period of a thread's time apart
 *     threads      [---1--]  [----2-----]  [-3-]    1 and 3 have none, and 2 always at that place
 *     ticks             ^                    ^      of the kernel's clock, at any moment
 *
 * So a young thread has no samples at events. All of its time goes to an account, whenever it is
 * interrupted and when it ends. The ticks of the kernel's clock, 250 a second or more, which know
 * nothing of threads, interrupt it, too (sample_trigger.c), and a sample that is taken at a tick in
 * a young thread stands for what is on the account. So all of the time is there, divided among
 * functions as the ticks fall. When a thread is older, events take over, and at its end only the
 * rest of a period is left to the account.
 *
 * The account is a page of memory that forked processes share. */
#include "interp/sample_rest.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

enum {
    /* More than this and a period is not what is left between two ticks: it is nobody else's. */
    MOST_LEFT_NS = 20000000,
    /* Threads may come in step with the ticks, and none is met for a while: the next one should not
     * stand for all of them. */
    MOST_TAKEN_NS = 12000000,
    MOST_TAKEN_PERIODS = 2, /* if that is more */
};

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
    int64_t most = (int64_t)period_ns + MOST_LEFT_NS;
    int64_t left = (int64_t)(cpu_ns - thread->accounted_ns);
    if (left > most || left < -most)
        left = 0;
    left += (int64_t)thread->owed_ns;
    thread->accounted_ns = cpu_ns;
    thread->owed_ns = 0;
    if (account)
        atomic_fetch_add_explicit(account, left, memory_order_relaxed);
}

uint64_t sample_rest_take(uint64_t period_ns)
{
    int64_t most = (int64_t)period_ns * MOST_TAKEN_PERIODS;
    int64_t left = account ? atomic_load_explicit(account, memory_order_relaxed) : 0;
    if (left < (int64_t)(period_ns / 2))
        return 0;
    if (most < MOST_TAKEN_NS)
        most = MOST_TAKEN_NS;
    int64_t taken = left < most ? left : most;
    /* Another thread may be faster: then it is that one's. */
    return atomic_compare_exchange_strong_explicit(account, &left, left - taken,
                                                   memory_order_relaxed, memory_order_relaxed)
               ? (uint64_t)taken
               : 0;
}
