/* glibc knows where a thread's stack lies. For the main thread it reads /proc/self/maps and the
 * limit of the stack's size, which is slow; so the answer is kept per thread.
 *
 * The reserve must hold everything that runs between two checks: the evaluator, a C function that
 * calls back, and the making of the exception. A quarter of a megabyte is plenty for the usual 8
 * MB; threads with small stacks keep a quarter of theirs.
 *
 * Thread-local data is of the initial-exec model: quick, and without the call of __tls_get_addr
 * that would tie the object to glibc's loader. */
#include "interp/thread_stack.h"

#include <pthread.h>
#include <stdbool.h>

enum { MOST_RESERVE_BYTES = 256 << 10 };

static __thread __attribute__((tls_model("initial-exec"))) struct {
    bool known;
    struct thread_stack stack;
} mine;

struct thread_stack thread_stack_of_caller(void)
{
    return mine.known ? mine.stack : thread_stack_ask();
}

struct thread_stack thread_stack_ask(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t bytes = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &low, &bytes) != 0)
            bytes = 0;
        pthread_attr_destroy(&attributes);
    }
    size_t reserve = bytes / 4 < MOST_RESERVE_BYTES ? bytes / 4 : MOST_RESERVE_BYTES;
    mine.stack = (struct thread_stack){.low = (uintptr_t)low + reserve, .bytes = bytes - reserve};
    mine.known = true;
    return mine.stack;
}
