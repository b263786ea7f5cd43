/* One mapping per thread holds everything: the stack of the handler, room for frames, and the
 * structure itself. Untouched pages of it cost nothing.
 *
 *     | signal stack 64 KB | frames 128 KB, twice | chains of the kernel 4 KB | sample_thread |
 *
 * The handler has a stack of its own so that it needs nothing of the thread's, which may be small
 * or nearly used up; unless the program has given the thread one already. */
#include "interp/sample_thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SIGNAL_STACK_BYTES = 64 << 10,
    FRAMES_BYTES = SAMPLE_THREAD_FRAMES * sizeof(uint64_t),
    KERNEL_BYTES = SAMPLE_KERNEL_WORDS * sizeof(uint64_t),
    ROOM_BYTES = SIGNAL_STACK_BYTES + 2 * FRAMES_BYTES + KERNEL_BYTES,
    BYTES = ROOM_BYTES + 4096,
};

_Static_assert(sizeof(struct sample_thread) <= 4096, "fits its page");

static __thread __attribute__((tls_model("initial-exec"))) struct sample_thread *mine;

struct sample_thread *sample_thread_mine(void)
{
    return mine;
}

/* Of the main thread's stack the kernel fills the end: arguments, environment, and a gap of up to 8
 * KB in front of them. No function is there, and every sample would have it. */
static void leave_out_arguments(struct sample_thread *thread)
{
    void *const *first_word = dlsym(RTLD_DEFAULT, "__libc_stack_end"); /* the loader's */
    uintptr_t end = first_word ? (uintptr_t)*first_word : 0;
    if (thread->tid == (uint32_t)getpid() && end > thread->stack_low && end < thread->stack_high)
        thread->stack_high = end;
}

static void find_stack(struct sample_thread *thread)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &bytes) == 0) {
        thread->stack_low = (uintptr_t)low;
        thread->stack_high = (uintptr_t)low + bytes;
    }
    pthread_attr_destroy(&attributes);
    leave_out_arguments(thread);
}

struct sample_thread *sample_thread_begin(void)
{
    if (mine)
        return mine;
    uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct sample_thread *thread = (void *)(memory + ROOM_BYTES);
    thread->tid = (uint32_t)syscall(SYS_gettid);
    thread->signal_stack = memory;
    thread->frames = (void *)(memory + SIGNAL_STACK_BYTES);
    thread->last_frames = (void *)(memory + SIGNAL_STACK_BYTES + FRAMES_BYTES);
    thread->kernel_words = (void *)(memory + SIGNAL_STACK_BYTES + 2 * FRAMES_BYTES);
    find_stack(thread);
    stack_t own = {.ss_sp = memory, .ss_size = SIGNAL_STACK_BYTES}, old;
    if (sigaltstack(NULL, &old) == 0 && old.ss_flags & SS_DISABLE)
        thread->has_signal_stack = sigaltstack(&own, NULL) == 0;
    mine = thread;
    return thread;
}

void sample_thread_end(void)
{
    struct sample_thread *thread = mine;
    if (!thread)
        return;
    mine = NULL;
    stack_t none = {.ss_flags = SS_DISABLE}, now;
    if (thread->has_signal_stack && sigaltstack(NULL, &now) == 0 &&
        now.ss_sp == thread->signal_stack)
        sigaltstack(&none, NULL);
    munmap(thread->signal_stack, BYTES);
}
