/* One mapping per thread holds everything: the stack of the handler, room for frames, and the
 * structure itself. Untouched pages of it cost nothing.
 *
 *     | signal stack 64 KB | sample_thread | chains of the kernel 4 KB | Python frames 832 KB |
 *
 * The handler has a stack of its own so that it needs nothing of the thread's, which may be small
 * or nearly used up. A signal stack of the program's is used if it is large enough: ours needs 5
 * KB, most of it for what the kernel saves. Otherwise the program's handlers run on ours, too, and
 * the program sees what it has asked for. */
#include "interp/sample_thread.h"

#include "interp/interpose.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SIGNAL_STACK_BYTES = 64 << 10,
    ENOUGH_BYTES = 16 << 10, /* of a signal stack */
    THREAD_BYTES = 4096,
    PAGE_BYTES = 4096,
    /* Of a stack, memory from the start: the kernel makes 128 KB for the main thread's. The far end
     * of others may be a guard of the program's own. */
    FIRST_BYTES = 64 << 10,
    KERNEL_BYTES = SAMPLE_KERNEL_WORDS * sizeof(uint64_t),
};

static size_t bytes(void)
{
    return SIGNAL_STACK_BYTES + THREAD_BYTES + KERNEL_BYTES + sample_chain_bytes();
}

_Static_assert(sizeof(struct sample_thread) <= THREAD_BYTES, "fits its page");

static __thread __attribute__((tls_model("initial-exec"))) struct sample_thread *mine;
static __thread __attribute__((tls_model("initial-exec"))) uint64_t ended_ns; /* 0: it has not */

struct sample_thread *sample_thread_mine(void)
{
    return mine;
}

uint64_t *sample_thread_ended(void)
{
    return ended_ns ? &ended_ns : NULL;
}

/* Of the main thread's stack the kernel fills the end: arguments, environment, and a gap of up to 8
 * KB in front of them. No function is there, and every sample would have it. */
static void leave_out_arguments(struct sample_thread *thread)
{
    /* Others must not look for names: a library that starts a thread while it is loaded, and waits
     * for it, holds the loader's lock. */
    if (thread->tid != (uint32_t)getpid())
        return;
    void *const *first_word = dlsym(RTLD_DEFAULT, "__libc_stack_end"); /* the loader's */
    uintptr_t end = first_word ? (uintptr_t)*first_word : 0;
    if (end > thread->stack_low && end < thread->stack_high)
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
    thread->stack_reached = thread->stack_high;
    if (thread->stack_high - thread->stack_low >= 2 * (size_t)FIRST_BYTES)
        thread->stack_reached = (thread->stack_high - FIRST_BYTES) & ~(uintptr_t)(PAGE_BYTES - 1);
}

static bool is_disabled(const stack_t *stack)
{
    return stack->ss_flags & SS_DISABLE;
}

static void use_ours_if_better(struct sample_thread *thread)
{
    const stack_t *theirs = &thread->their_signal_stack;
    stack_t ours = {.ss_sp = thread->signal_stack, .ss_size = SIGNAL_STACK_BYTES};
    if (is_disabled(theirs) || (theirs->ss_size < ENOUGH_BYTES && !theirs->ss_flags))
        interpose_sigaltstack(&ours, NULL); /* fails in a handler that runs on one: then it stays */
}

int sample_thread_signal_stack(struct sample_thread *thread, const stack_t *wanted,
                               stack_t *ret_old)
{
    stack_t before = thread->their_signal_stack, now;
    if (interpose_sigaltstack(NULL, &now) == 0 && now.ss_flags & SS_ONSTACK &&
        !is_disabled(&before))
        before.ss_flags |= SS_ONSTACK;
    if (wanted && interpose_sigaltstack(wanted, NULL) < 0)
        return -1; /* as without us */
    if (wanted) {
        thread->their_signal_stack =
            is_disabled(wanted) ? (stack_t){.ss_flags = SS_DISABLE} : *wanted;
        thread->their_signal_stack.ss_flags &= ~SS_ONSTACK;
        use_ours_if_better(thread);
    }
    if (ret_old)
        *ret_old = before;
    return 0;
}

struct sample_thread *sample_thread_begin(void)
{
    if (mine)
        return mine;
    uint8_t *memory = mmap(NULL, bytes(), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct sample_thread *thread = (void *)(memory + SIGNAL_STACK_BYTES);
    thread->tid = (uint32_t)syscall(SYS_gettid);
    thread->signal_stack = memory;
    thread->kernel_words = (void *)(memory + SIGNAL_STACK_BYTES + THREAD_BYTES);
    sample_chain_init(&thread->chain, memory + SIGNAL_STACK_BYTES + THREAD_BYTES + KERNEL_BYTES);
    find_stack(thread);
    if (interpose_sigaltstack(NULL, &thread->their_signal_stack) == 0)
        use_ours_if_better(thread);
    mine = thread;
    ended_ns = 0;
    return thread;
}

void sample_thread_end(void)
{
    struct sample_thread *thread = mine;
    if (!thread)
        return;
    mine = NULL;
    ended_ns = thread->accounted_ns;
    stack_t now;
    if (interpose_sigaltstack(NULL, &now) == 0 && now.ss_sp == thread->signal_stack)
        interpose_sigaltstack(&thread->their_signal_stack, NULL);
    munmap(thread->signal_stack, bytes());
}
