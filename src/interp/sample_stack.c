/* Usually it is all from the stack pointer to the end of the thread's stack, and the red zone
 * before it; of a deep one, what the recorder does not know yet (formats/sample_landmarks.h).
 *
 * Handlers of the program's own with SA_ONSTACK, as CPython installs them, run on the thread's
 * signal stack: the one that we gave it or one of its own. When a sample comes there, its callers
 * are on two stacks:
 *
 *     signal stack     | our handler | their handler | what the kernel saved |
 *                                    ^ stack pointer           |
 *     thread's stack              | interrupted function | its callers ... |
 *                                 ^ the stack pointer saved there
 *
 * What the kernel saved first lies at the very end of the signal stack. It is recognised by the
 * place and size of that stack, which are a part of it. */
#include "interp/sample_stack.h"

#include <stddef.h>
#include <string.h>

enum {
    MOST_BYTES = SAMPLE_RING_RECORD_MOST - SAMPLE_RED_ZONE_BYTES, /* of a stack */
    MOST_INNER_BYTES = MOST_BYTES / 4,                            /* when there are two */
    MOST_OUTER_BYTES = MOST_BYTES / 2,
    MOST_SAVED_BYTES = 16 << 10, /* by the kernel: nearly all of it vector registers */
    READ_BYTES = offsetof(ucontext_t, uc_mcontext) + sizeof(gregset_t), /* of it */
    PAGE_BYTES = 4096,
};

static bool is_on_thread_stack(const struct sample_thread *thread, uintptr_t pointer)
{
    return pointer >= thread->stack_low && pointer < thread->stack_high;
}

static size_t bytes_up_to(uintptr_t pointer, uintptr_t end, size_t most)
{
    size_t bytes = (end - pointer) & ~(size_t)7;
    return bytes < most ? bytes : most;
}

/* What lies before the stack pointer is read only where it is certain to be memory: in its own
 * page, or in one that the thread's stack has reached before. */
static size_t red_zone_bytes(struct sample_thread *thread, uintptr_t pointer)
{
    uintptr_t low = pointer & ~(uintptr_t)(PAGE_BYTES - 1);
    if (is_on_thread_stack(thread, pointer)) {
        if (low < thread->stack_reached)
            thread->stack_reached = low;
        low = thread->stack_reached;
    }
    return pointer - low >= SAMPLE_RED_ZONE_BYTES ? SAMPLE_RED_ZONE_BYTES : 0;
}

/* The stack pointer when the thread left its own stack; 0 when it is not found. */
static uintptr_t interrupted_pointer(uintptr_t pointer, const stack_t *signal_stack)
{
    uintptr_t base = (uintptr_t)signal_stack->ss_sp, end = base + signal_stack->ss_size;
    uintptr_t first = end - pointer > MOST_SAVED_BYTES ? end - MOST_SAVED_BYTES : pointer;
    if (end - first < READ_BYTES)
        return 0;
    for (uintptr_t place = (end - READ_BYTES) & ~(uintptr_t)7; place >= first; place -= 8) {
        const ucontext_t *saved = (const ucontext_t *)place;
        if ((uintptr_t)saved->uc_stack.ss_sp == base &&
            saved->uc_stack.ss_size == signal_stack->ss_size && !saved->uc_link)
            return (uintptr_t)saved->uc_mcontext.gregs[REG_RSP];
    }
    return 0;
}

static void leave_out_known(const struct sample_ring *ring, const struct sample_thread *thread,
                            struct sample_stack *stack)
{
    if (!stack->is_whole || stack->inner_bytes < SAMPLE_LANDMARKS_LEAST_BYTES)
        return;
    uint64_t end = stack->inner + stack->inner_bytes;
    end = sample_landmarks_check(ring, thread->tid, stack->inner, end, &stack->known);
    stack->inner_bytes = (size_t)(end - stack->inner);
    stack->is_whole = !stack->known.count;
}

struct sample_stack sample_stack_find(const struct sample_ring *ring, struct sample_thread *thread,
                                      const ucontext_t *at)
{
    const stack_t *signal_stack = &at->uc_stack;
    uintptr_t pointer = (uintptr_t)at->uc_mcontext.gregs[REG_RSP];
    struct sample_stack stack = {.inner = pointer,
                                 .red_zone_bytes = red_zone_bytes(thread, pointer)};
    if (is_on_thread_stack(thread, pointer)) {
        stack.inner_bytes = bytes_up_to(pointer, thread->stack_high, MOST_BYTES);
        stack.is_whole = stack.inner_bytes < MOST_BYTES;
        leave_out_known(ring, thread, &stack);
        return stack;
    }
    /* A stack that somebody made. Its page is there, and nothing is known of others; not even the
     * page, when the pointer is at its end and nothing was pushed yet. */
    stack.inner_bytes = -pointer & (PAGE_BYTES - 1) & ~(size_t)7;
    if (pointer - (uintptr_t)signal_stack->ss_sp >= signal_stack->ss_size)
        return stack;
    stack.outer = interrupted_pointer(pointer, signal_stack);
    if (!is_on_thread_stack(thread, stack.outer))
        return stack;
    stack.inner_bytes = bytes_up_to(pointer, (uintptr_t)signal_stack->ss_sp + signal_stack->ss_size,
                                    MOST_INNER_BYTES);
    stack.outer_bytes = bytes_up_to(stack.outer, thread->stack_high, MOST_OUTER_BYTES);
    stack.is_whole = stack.outer_bytes < MOST_OUTER_BYTES;
    return stack;
}

size_t sample_stack_bytes(const struct sample_stack *stack)
{
    size_t end = stack->outer_bytes   ? sizeof(struct sample_two_stacks)
                 : stack->known.count ? sizeof stack->known
                                      : 0;
    return stack->red_zone_bytes + stack->inner_bytes + stack->outer_bytes + end;
}

/* Returns what is behind the copy. Not memcpy: a sanitizer in the program has one of its own, which
 * ends the program when it is asked for memory between a function's variables. */
static uint8_t *copy_words(uint8_t *out, uintptr_t from, size_t bytes)
{
    size_t words = bytes / sizeof(uint64_t);
    __asm__ volatile("rep movsq" : "+D"(out), "+S"(from), "+c"(words) : : "memory");
    return out;
}

void sample_stack_copy(const struct sample_stack *stack, uint8_t *out)
{
    size_t bytes = stack->red_zone_bytes + stack->inner_bytes;
    out = copy_words(out, stack->inner - stack->red_zone_bytes, bytes);
    if (stack->known.count)
        memcpy(out, &stack->known, sizeof stack->known);
    if (!stack->outer_bytes)
        return;
    out = copy_words(out, stack->outer, stack->outer_bytes);
    struct sample_two_stacks end = {.inner_bytes = stack->inner_bytes, .outer_avma = stack->outer};
    memcpy(out, &end, sizeof end);
}
