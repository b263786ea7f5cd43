/* A perf event interrupts the thread wherever it is. In the kernel that is no moment for a signal:
 * it comes on the way back, when the call is over. What the thread was doing is then in a buffer
 * that the kernel fills and the thread maps:
 *
 *     read(2)   |--k1------k2------k3--| signal: three chains of the kernel, one user stack
 *
 * So time in long calls counts as often as it was interrupted. The kernel writes backwards and over
 * its oldest records ("overwrite"), so the newest one is always at `data_head`, nothing has to be
 * given back, and the buffer is never full:
 *
 *     | ... older | k1 | k2 | k3 ... free |        positions shrink
 *                        data_head ^ (k3 is the newest)
 *
 * Of a very long call only the newest chains are left. How many there were is known all the same,
 * for each record has the CPU time so far.
 *
 * The buffer's memory is locked, and how much of that a user may have is limited: three pages a
 * thread. A new interrupt while the handler reads can only hurt the oldest records of a full
 * buffer, so the handler stays away from its second half.
 *
 * The kernel keeps the event alive while its buffer is mapped, so no descriptor is needed, which
 * programs might close. Forked children do not have the mapping. */
#include "interp/sample_kernel.h"

#include "interp/interpose.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    PAGE_BYTES = 4096,
    DATA_BYTES = 2 * PAGE_BYTES,
    BUFFER_BYTES = PAGE_BYTES + DATA_BYTES,
    DATA_WORDS = DATA_BYTES / sizeof(uint64_t),
    READ_BYTES = DATA_BYTES / 2, /* the newest */
};

/* A record, in words: header, time, CPU time, number of entries, entries. */
enum { WORD_HEADER, WORD_TIME, WORD_CPU, WORD_COUNT, WORD_ENTRIES };

_Static_assert(READ_BYTES <= SAMPLE_KERNEL_WORDS * sizeof(uint64_t),
               "a chain takes less room than its record");

/* All threads that have a buffer. Not for the handler. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sample_thread *first;

void sample_kernel_attr(struct perf_event_attr *attr)
{
    attr->sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN;
    attr->exclude_callchain_user = 1;
    attr->write_backward = 1;
    attr->use_clockid = 1;
    attr->clockid = CLOCK_MONOTONIC;
}

/* --- the list of buffers -----------------------------------------------------------------------
 */

/* A handler of the program that interrupts us here may want the list, too. */
static void enter(sigset_t *ret_before)
{
    sigset_t all;
    sigfillset(&all);
    interpose_sigmask(SIG_BLOCK, &all, ret_before);
    pthread_mutex_lock(&lock);
}

static void leave(const sigset_t *before)
{
    pthread_mutex_unlock(&lock);
    interpose_sigmask(SIG_SETMASK, before, NULL);
}

bool sample_kernel_map(struct sample_thread *thread, int fd)
{
    /* Without PROT_WRITE: the kernel overwrites what is old. */
    void *buffer = mmap(NULL, BUFFER_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (buffer == MAP_FAILED)
        return false;
    sigset_t before;
    enter(&before);
    thread->kernel_head = 0;
    thread->kernel_cpu_ns = 0;
    thread->kernel_next = first;
    thread->kernel_buffer = buffer;
    first = thread;
    leave(&before);
    return true;
}

static void take_out(struct sample_thread *thread)
{
    struct sample_thread **place = &first;
    while (*place && *place != thread)
        place = &(*place)->kernel_next;
    if (*place)
        *place = thread->kernel_next;
}

void sample_kernel_unmap(struct sample_thread *thread)
{
    if (!thread->kernel_buffer)
        return;
    sigset_t before;
    enter(&before);
    take_out(thread);
    munmap(thread->kernel_buffer, BUFFER_BYTES);
    thread->kernel_buffer = NULL;
    leave(&before);
}

void sample_kernel_unmap_all(void)
{
    sigset_t before;
    enter(&before);
    /* Others may be reading their buffers at this moment. They find zeros. */
    for (struct sample_thread *thread = first; thread; thread = thread->kernel_next)
        (void)mmap(thread->kernel_buffer, BUFFER_BYTES, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    leave(&before);
}

void sample_kernel_forget(struct sample_thread *thread)
{
    pthread_mutex_init(&lock, NULL);
    first = NULL;
    if (thread)
        thread->kernel_buffer = NULL;
}

/* --- reading -----------------------------------------------------------------------------------
 */

/* Positions are in bytes and wrap at 2^64. */
struct reading {
    const volatile uint64_t *data;
    uint64_t head;     /* the newest record */
    uint64_t position; /* of the record at hand */
    uint64_t end;      /* where those begin that have been read before */
};

static uint64_t word(const struct reading *reading, uint64_t index)
{
    return reading->data[(reading->position / sizeof(uint64_t) + index) % DATA_WORDS];
}

/* The header of the record at hand; false when there is none that can be read. */
static bool read_header(const struct reading *reading, struct perf_event_header *ret_header)
{
    if (reading->position == reading->end)
        return false;
    uint64_t start = word(reading, WORD_HEADER);
    memcpy(ret_header, &start, sizeof *ret_header);
    return ret_header->size >= sizeof *ret_header &&
           reading->position + ret_header->size - reading->head <= READ_BYTES;
}

/* Copies the addresses of a chain; how many. */
static size_t copy_chain(const struct reading *reading, uint64_t words, uint64_t *ret_addresses)
{
    uint64_t count = word(reading, WORD_COUNT);
    size_t copied = 0;
    if (count > words - WORD_ENTRIES)
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t entry = word(reading, WORD_ENTRIES + i);
        if (entry < (uint64_t)PERF_CONTEXT_MAX) /* else a marker: all of it is the kernel's */
            ret_addresses[copied++] = entry;
    }
    return copied;
}

/* What the handler itself lets the kernel do is not the program's. */
static bool is_ours(const struct sample_thread *thread, uint64_t time_ns)
{
    return time_ns <= thread->handled_ns;
}

static void take_record(const struct sample_thread *thread, const struct reading *reading,
                        uint64_t words, uint64_t *chains, struct sample_kernel_result *result)
{
    uint64_t *chain = chains + result->words;
    uint64_t time_ns = word(reading, WORD_TIME);
    size_t count = 0;
    if (!is_ours(thread, time_ns))
        count = copy_chain(reading, words, chain + 2);
    if (count == 0) {
        result->user++;
        return;
    }
    chain[0] = time_ns;
    chain[1] = count;
    result->words += 2 + count;
    result->kernel++;
    result->oldest_ns = time_ns;
}

struct sample_kernel_result sample_kernel_read(struct sample_thread *thread, uint64_t period_ns,
                                               uint64_t *chains)
{
    struct sample_kernel_result result = {0};
    const struct perf_event_mmap_page *page = thread->kernel_buffer;
    uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
    struct reading reading = {.data = (const uint64_t *)((const uint8_t *)page + PAGE_BYTES),
                              .head = head,
                              .position = head,
                              .end = thread->kernel_head};
    struct perf_event_header header;
    uint64_t newest_cpu_ns = 0;
    for (; read_header(&reading, &header); reading.position += header.size) {
        uint64_t words = header.size / sizeof(uint64_t);
        if (header.type != PERF_RECORD_SAMPLE || words < WORD_ENTRIES)
            continue;
        if (!newest_cpu_ns)
            newest_cpu_ns = word(&reading, WORD_CPU);
        take_record(thread, &reading, words, chains, &result);
    }
    if (newest_cpu_ns) {
        uint64_t passed = (newest_cpu_ns - thread->kernel_cpu_ns + period_ns / 2) / period_ns;
        if (reading.position != reading.end && passed > result.user + result.kernel)
            result.kernel = passed - result.user; /* there were more than are left */
        thread->kernel_cpu_ns = newest_cpu_ns;
    }
    if (!result.words) {
        result.user += result.kernel;
        result.kernel = 0;
    }
    thread->kernel_head = head;
    return result;
}
