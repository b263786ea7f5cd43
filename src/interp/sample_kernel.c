/* A perf event interrupts the thread wherever it is. In the kernel that is no moment for a signal:
 * it comes on the way back, when the call is over. What the thread was doing is then in a buffer
 * that the kernel fills and the process maps:
 *
 *     read(2)   |--k1------k2------k3--| signal: three chains of the kernel, one user stack
 *
 * So time in long calls counts as often as it was interrupted.
 *
 * There is an event for each processor, which all threads inherit: the kernel hands it from thread
 * to thread as it is, without stopping it, and a new thread costs little. So the buffer of a
 * processor has records of all threads of this process, each with the thread's number and its time.
 * The kernel writes backwards and over its oldest records ("overwrite"), so the newest one is
 * always at `data_head`, nothing has to be given back, and the buffer is never full:
 *
 *     | ... older | k1 | k2 | other thread's | k3 ... free |        positions shrink
 *                                    data_head ^ (k3 is the newest)
 *
 * A thread reads from there on until it comes to the time of its last sample, in the buffers of the
 * processor that it is on and of the one that it was on then. Of a very long call, or after a long
 * sleep, that may not be there any more; for how much time the sample stands is then told by the
 * thread's CPU time, as it is now and then in any case. Other threads go on writing while one
 * reads, or loses the processor half-way: whether that has hurt what was read is seen afterwards
 * from how far `data_head` has come.
 *
 * The buffers' memory is locked, and how much of that a user may have is limited: three pages for
 * each processor. The kernel keeps an event alive while its buffer is mapped, so no descriptor is
 * needed, which programs might close. Forked children do not have the mapping. */
#include "interp/sample_kernel.h"

#include "base/clock.h"
#include "base/number.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PAGE_BYTES = 4096,
    DATA_BYTES = 2 * PAGE_BYTES,
    BUFFER_BYTES = PAGE_BYTES + DATA_BYTES,
    DATA_WORDS = DATA_BYTES / sizeof(uint64_t),
    READ_BYTES = DATA_BYTES / 2, /* the newest */
    CHECK_SAMPLES = 64,          /* so often the CPU time is looked at */
};

/* A record, in words: header, process and thread, time, number of entries, entries. */
enum { WORD_HEADER, WORD_IDS, WORD_TIME, WORD_COUNT, WORD_ENTRIES };

_Static_assert(READ_BYTES <= SAMPLE_KERNEL_WORDS * sizeof(uint64_t),
               "a chain takes less room than its record");

/* By the processor's number; zeros, which say that there is nothing, where there is no event. */
static uint8_t *buffers;
static size_t buffer_count;
static pid_t owner; /* the thread that opened the events */

/* --- events ---------------------------------------------------------------------------------- */

/* "0-3,8,10-11" */
static void parse_processors(const char *text, cpu_set_t *ret_processors)
{
    uint64_t first, last;
    CPU_ZERO(ret_processors);
    while (number_take(&text, 10, &first)) {
        last = first;
        if (*text == '-' && (text++, !number_take(&text, 10, &last)))
            break;
        for (uint64_t i = first; i <= last && i < CPU_SETSIZE; i++)
            CPU_SET(i, ret_processors);
        text += *text == ',';
    }
}

/* All that there are, since a thread may be allowed on others later; where nobody says which these
 * are, those that it is allowed on. */
static void find_processors(cpu_set_t *ret_processors)
{
    char text[4096] = "";
    int fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    parse_processors(text, ret_processors);
    if (!CPU_COUNT(ret_processors))
        sched_getaffinity(0, sizeof *ret_processors, ret_processors);
}

static bool open_event(const struct perf_event_attr *kind, int processor, void *place)
{
    struct perf_event_attr attr = *kind;
    attr.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
    attr.exclude_callchain_user = 1;
    attr.write_backward = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, processor, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return false;
    /* Without PROT_WRITE: the kernel overwrites what is old. */
    void *mapped = mmap(place, BUFFER_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
    close(fd);
    return mapped != MAP_FAILED;
}

bool sample_kernel_start(const struct perf_event_attr *attr)
{
    cpu_set_t processors;
    size_t count = CPU_SETSIZE;
    find_processors(&processors);
    while (count && !CPU_ISSET(count - 1, &processors))
        count--;
    uint8_t *area = mmap(NULL, count * BUFFER_BYTES, PROT_READ,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!CPU_ISSET(i, &processors) || open_event(attr, (int)i, area + i * BUFFER_BYTES))
            continue;
        munmap(area, count * BUFFER_BYTES);
        return false;
    }
    owner = (pid_t)syscall(SYS_gettid);
    buffers = area;
    __atomic_signal_fence(__ATOMIC_RELEASE); /* the events are on already */
    buffer_count = count;
    return true;
}

void sample_kernel_end(void)
{
    /* Other threads may be reading at this moment. They find zeros. */
    if (buffers)
        (void)mmap(buffers, buffer_count * BUFFER_BYTES, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    owner = 0;
}

static bool is_owner(void)
{
    return owner == (pid_t)syscall(SYS_gettid);
}

void sample_kernel_pause(void)
{
    if (buffers && !(is_owner() && prctl(PR_TASK_PERF_EVENTS_DISABLE) == 0))
        sample_kernel_end();
}

bool sample_kernel_resume(const struct perf_event_attr *attr)
{
    if (!buffers || (is_owner() && prctl(PR_TASK_PERF_EVENTS_ENABLE) == 0))
        return true;
    sample_kernel_start(attr);
    return false;
}

void sample_kernel_forget(void)
{
    buffers = NULL;
    buffer_count = 0;
    owner = 0;
}

/* --- reading --------------------------------------------------------------------------------- */

/* Positions are in bytes and wrap at 2^64; the first record ever ends at 0. */
struct reading {
    const struct perf_event_mmap_page *page;
    const volatile uint64_t *data;
    uint64_t head;     /* the newest record */
    uint64_t position; /* of the record at hand */
};

static uint64_t word(const struct reading *reading, uint64_t index)
{
    return reading->data[(reading->position / sizeof(uint64_t) + index) % DATA_WORDS];
}

static uint64_t newest_of(const struct perf_event_mmap_page *page)
{
    return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static struct reading begin_reading(size_t processor)
{
    const uint8_t *buffer = buffers + processor * BUFFER_BYTES;
    struct reading reading = {.page = (const void *)buffer,
                              .data = (const uint64_t *)(buffer + PAGE_BYTES)};
    reading.head = reading.position = newest_of(reading.page);
    return reading;
}

/* Whether nothing of what was read has been written over meanwhile. */
static bool is_intact(const struct reading *reading)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return reading->position - newest_of(reading->page) <= DATA_BYTES;
}

/* The header of the record at hand; false when there is none that can be read in `room` bytes. */
static bool read_header(const struct reading *reading, size_t room,
                        struct perf_event_header *ret_header)
{
    uint64_t start = word(reading, WORD_HEADER);
    memcpy(ret_header, &start, sizeof *ret_header);
    return ret_header->size >= sizeof *ret_header &&
           reading->position + ret_header->size - reading->head <= room;
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

/* Adds what one buffer has of the thread, newest first, and moves `newest_ns` on. Whether this is
 * all since `thread->kernel_ns`. */
static bool read_buffer(const struct sample_thread *thread, size_t processor, uint64_t *chains,
                        struct sample_kernel_result *result, uint64_t *newest_ns)
{
    if (processor >= buffer_count)
        return false;
    struct sample_kernel_result before = *result;
    struct reading reading = begin_reading(processor);
    struct perf_event_header header;
    size_t room = READ_BYTES - result->words * sizeof *chains;
    uint64_t newest = *newest_ns;
    bool is_all = false;
    while (!(is_all = reading.position == 0) && read_header(&reading, room, &header)) {
        uint64_t words = header.size / sizeof(uint64_t);
        bool is_sample = header.type == PERF_RECORD_SAMPLE && words >= WORD_ENTRIES;
        uint64_t time_ns = is_sample ? word(&reading, WORD_TIME) : UINT64_MAX;
        if ((is_all = time_ns <= thread->kernel_ns))
            break;
        if (is_sample && word(&reading, WORD_IDS) >> 32 == thread->tid) {
            take_record(thread, &reading, words, chains, result);
            newest = time_ns > newest ? time_ns : newest;
        }
        reading.position += header.size;
    }
    if (!is_intact(&reading)) {
        *result = before;
        return false;
    }
    *newest_ns = newest;
    return is_all;
}

static size_t this_processor(void)
{
    int number = sched_getcpu();
    return number >= 0 ? (size_t)number : SIZE_MAX;
}

/* As many interrupts as the thread's CPU time says, if `least` or more are missing: not all records
 * are left, or there was time without interrupts, as in switching between threads or while the
 * machine itself was not running. */
static void count_by_time(struct sample_thread *thread, uint64_t period_ns, uint64_t least,
                          struct sample_kernel_result *result)
{
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), seen = result->user + result->kernel;
    uint64_t left_ns = cpu_ns > thread->accounted_ns ? cpu_ns - thread->accounted_ns : 0;
    if (left_ns / period_ns >= seen + least)
        *(result->words ? &result->kernel : &result->user) += left_ns / period_ns - seen;
    else if (left_ns < seen * period_ns && cpu_ns > seen * period_ns)
        thread->accounted_ns = cpu_ns - seen * period_ns; /* it was ahead */
}

void sample_kernel_join(struct sample_thread *thread)
{
    thread->kernel_ns = clock_ns(CLOCK_MONOTONIC);
    thread->kernel_processor = this_processor();
    thread->kernel_is_ahead = false;
}

struct sample_kernel_result sample_kernel_read(struct sample_thread *thread, uint64_t now_ns,
                                               uint64_t period_ns, bool is_tick)
{
    struct sample_kernel_result result = {0};
    uint64_t *chains = thread->kernel_words;
    size_t processor = this_processor();
    uint64_t newest_ns = now_ns;
    bool is_all = read_buffer(thread, processor, chains, &result, &newest_ns);
    if (processor != thread->kernel_processor)
        is_all &= read_buffer(thread, thread->kernel_processor, chains, &result, &newest_ns);
    uint64_t found = result.user + result.kernel;
    if (is_tick)
        count_by_time(thread, period_ns, SAMPLE_MISSING_EVENTS, &result);
    else if (!is_all || ++thread->kernel_reads % CHECK_SAMPLES == 0)
        count_by_time(thread, period_ns, 1, &result);
    /* The record of this signal may have been read by the handler before, which it came in. */
    if (!is_tick && result.user + result.kernel == 0 && !thread->kernel_is_ahead)
        result.user = 1;
    thread->kernel_is_ahead = newest_ns > now_ns || (is_tick && found);
    thread->kernel_ns = newest_ns;
    thread->kernel_processor = processor;
    thread->accounted_ns += (result.user + result.kernel) * period_ns;
    return result;
}
