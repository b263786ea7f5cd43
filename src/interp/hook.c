/* Every Python call comes through here, so the way of a function that is known must be short:
 *
 *     frame -> code object -> co_extra -> value: positive?  jump to it
 *
 *     caller in C                                      caller in C
 *     evaluator's caller  ---- calls the hook ----->   evaluator's caller
 *     hook                                             trampoline          (the hook has jumped,
 *                                                      evaluator            it left no frame)
 *
 * Everything else is the cold path, in a function of its own that ends in a jump as well: functions
 * called for the first time, after a fork or after a change of files, calls near the end of the C
 * stack, calls while we are off but another hook still hands them to us.
 *
 * The C stack. Without a hook, CPython 3.11 and later run a Python call inside the caller's
 * evaluator; with one, every call takes C stack. Who raises the recursion limit must get a
 * RecursionError as before, not a crash, and who does not must reach the usual depth:
 *
 * - 3.9 to 3.11 know nothing of the C stack. We compare the stack pointer with the bounds of the
 *   thread's stack, which are kept for the thread that called last: one comparison covers too low
 *   and too high, and another thread, or another stack, takes the cold path and is looked up.
 * Beyond the bounds, RecursionError is raised in the place of the call. The evaluator of these
 * versions does the same when its own limit is reached: it returns NULL before it touches the
 * frame.
 * - 3.12 and 3.13 count C calls down from a limit, whatever the size of the stack, and a hooked
 * call uses up two: 3.12.1 would stop at a depth of 748. When the count has gone down by a little,
 * the cold path looks at the real stack and gives the callee what was lost, as far as the stack
 * allows, and takes it back afterwards. This is the one case in which a frame of ours stays on the
 * stack, every hundred calls. At the end of the stack the count is set to nothing, and the
 * evaluator raises RecursionError itself; in these versions it must, since it owns the frame.
 * What was lost is an estimate: calls from Python to Python would have cost nothing, calls through
 * C (repr, functools.lru_cache) the same as now. Of `used` C calls at a Python depth of D, used - 2
 * D were made by C code itself; each of these is taken to have led to a Python call, up to D. So a
 * program that recurses through C still gets its RecursionError where it did.
 * - 3.14 and later compare the stack pointer with the bounds themselves. */
#include "interp/hook.h"

#include "interp/class_calls.h"
#include "interp/registration.h"
#include "interp/thread_stack.h"
#include "interp/trampoline.h"

#include <errno.h>

enum {
    BYTES_PER_C_CALL = 800, /* what CPython's limit assumes: 10,000 calls in 8 MB */
    /* How many C calls may be made before the stack is looked at: an eighth of what it holds. */
    MOST_UNCHECKED = 200,
    FEWEST_UNCHECKED = 10,
    SMALLEST_REFILL = 50,
};

#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define NEVER_INLINE __attribute__((noinline))

/* Whether the call may go on without a look at the C stack. */
static ALWAYS_INLINE bool stack_is_fine(const struct layout *layout,
                                        const struct interpreter *interpreter,
                                        struct py_thread *thread)
{
    if (layout->checks_stack)
        return true;
    if (!LIKELY(interpreter->stack_thread == thread))
        return false;
    if (layout->thread_c_recursion)
        return *layout_int(thread, layout->thread_c_recursion) >= interpreter->c_recursion_low;
    return trampoline_stack_pointer() - interpreter->stack_low < interpreter->stack_bytes;
}

/* What the calls below this one on the thread's stack were given, in all. */
static __thread __attribute__((tls_model("initial-exec"))) int refilled;

/* Calls `target`, or without one the evaluator, with more or fewer C calls to spend; see above. */
static NEVER_INLINE struct py_object *call_with_refill(struct py_thread *thread,
                                                       struct py_frame *frame, int throwflag,
                                                       trampoline_function *target,
                                                       py_evaluator *evaluator, int refill)
{
    refilled += refill;
    *layout_int(thread, interpreter_layout->thread_c_recursion) += refill;
    struct py_object *result =
        target ? target(thread, frame, throwflag, evaluator) : evaluator(thread, frame, throwflag);
    *layout_int(thread, interpreter_layout->thread_c_recursion) -= refill;
    refilled -= refill;
    return result;
}

/* What the cold path finds out about the C stack. */
struct room {
    bool exhausted;
    int refill; /* 3.12, 3.13: C calls to add for the callee; negative takes away what is left */
};

static int between(size_t value, int least, int most)
{
    return value < (size_t)least ? least : value > (size_t)most ? most : (int)value;
}

static int python_depth(struct py_thread *thread)
{
    return *layout_int(thread, interpreter_layout->thread_py_limit) -
           *layout_int(thread, interpreter_layout->thread_py_left);
}

/* How many of the C calls that were used would have been used without a hook: see above. */
static int c_calls_without_hook(int used, int depth)
{
    int by_c = used - 2 * depth > 0 ? used - 2 * depth : 0;
    return by_c + 2 * (by_c < depth ? by_c : depth);
}

/* 3.12 and 3.13. `above_low` is what is left of a known stack. */
static int find_refill(struct interpreter *interpreter, struct py_thread *thread,
                       const struct thread_stack *stack, size_t above_low)
{
    int left = *layout_int(thread, interpreter_layout->thread_c_recursion);
    if (left - refilled > interpreter->c_recursion_full)
        interpreter->c_recursion_full = left - refilled;
    int full = interpreter->c_recursion_full;
    int unchecked = between(stack->bytes / BYTES_PER_C_CALL / 8, FEWEST_UNCHECKED, MOST_UNCHECKED);
    interpreter->c_recursion_low = full - unchecked;
    int used = full - (left - refilled);
    int allowed = full - c_calls_without_hook(used, python_depth(thread));
    if (left - allowed >= SMALLEST_REFILL)
        return allowed - left; /* what looked like Python calling Python went through C */
    int wanted = between(above_low / BYTES_PER_C_CALL, 0, allowed);
    int worth_it = left < SMALLEST_REFILL ? 1 : SMALLEST_REFILL;
    return wanted - left >= worth_it ? wanted - left : 0;
}

/* Looks at the calling thread's stack and notes its bounds for the hot path. */
static struct room find_room(struct interpreter *interpreter, struct py_thread *thread)
{
    struct room room = {.exhausted = false};
    if (interpreter_layout->checks_stack)
        return room;
    struct thread_stack stack = thread_stack_of_caller();
    if (trampoline_stack_pointer() < stack.low)
        stack = thread_stack_ask();
    interpreter->stack_thread = thread;
    interpreter->stack_low = stack.low;
    interpreter->stack_bytes = stack.bytes;

    /* A pointer that is neither in the stack nor in its reserve belongs to a stack that somebody
     * made: nothing is known of it. */
    uintptr_t pointer = trampoline_stack_pointer();
    size_t reserve = stack.bytes / 3; /* at least as much as thread_stack.c keeps */
    bool known = pointer - stack.low < stack.bytes;
    room.exhausted = pointer < stack.low && pointer >= stack.low - reserve;
    bool counts = interpreter_layout->thread_c_recursion != 0;
    if (counts && room.exhausted)
        room.refill = -*layout_int(thread, interpreter_layout->thread_c_recursion);
    else if (counts)
        room.refill = find_refill(interpreter, thread, &stack, known ? pointer - stack.low : 0);
    return room;
}

/* 3.13: the trampoline of an __init__ that has been named, after a look at the class. NULL for all
 * other functions. */
static trampoline_function *enter_init(struct interpreter *interpreter, struct py_frame *frame)
{
    const struct layout *layout = interpreter_layout;
    if (!layout->frame_locals)
        return NULL;
    trampoline_function *target =
        registration_of_init(interpreter, layout_frame_code(layout, frame));
    if (target)
        class_calls_note(layout_pointer(frame, layout->frame_locals));
    return target;
}

static NEVER_INLINE struct py_object *cold(struct interpreter *interpreter,
                                           struct py_thread *thread, struct py_frame *frame,
                                           int throwflag)
{
    interpreter->reached = true;
    py_evaluator *evaluator = interpreter->evaluator;
    trampoline_function *target = enter_init(interpreter, frame);
    if (target && stack_is_fine(interpreter_layout, interpreter, thread))
        return target(thread, frame, throwflag, evaluator);
    int saved_errno = errno;
    if (registration_is_after_fork())
        registration_after_fork(thread);
    if (!interpreter->active) {
        errno = saved_errno;
        return evaluator(thread, frame, throwflag);
    }
    if (__atomic_load_n(&interpreter->expired, __ATOMIC_RELAXED))
        registration_renew(interpreter);
    struct room room = find_room(interpreter, thread);
    target = NULL;
    if (!room.exhausted) {
        target = registration_of(interpreter, layout_frame_code(interpreter_layout, frame));
        enter_init(interpreter, frame);
    }
    errno = saved_errno;
    if (room.exhausted && !interpreter_layout->thread_c_recursion) {
        py.err_set_string(*py.exc_recursion_error, "maximum recursion depth exceeded");
        return NULL;
    }
    if (room.refill)
        return call_with_refill(thread, frame, throwflag, target, evaluator, room.refill);
    if (!target)
        return evaluator(thread, frame, throwflag);
    return target(thread, frame, throwflag, evaluator);
}

static ALWAYS_INLINE struct py_object *enter(const struct layout *layout,
                                             struct interpreter *interpreter,
                                             struct py_thread *thread, struct py_frame *frame,
                                             int throwflag)
{
    void **value = layout_extra(layout, layout_frame_code(layout, frame), interpreter->hot_index);
    if (LIKELY(value && (intptr_t)*value > 0)) {
        if (LIKELY(stack_is_fine(layout, interpreter, thread))) {
            trampoline_function *trampoline = *(trampoline_function **)value;
            return trampoline(thread, frame, throwflag, interpreter->evaluator);
        }
    }
    return cold(interpreter, thread, frame, throwflag);
}

/* Two hooks per layout: for the first interpreter, whose address is known, and for all others. */
#define HOOKS(version)                                                                             \
    static struct py_object *first_##version(struct py_thread *thread, struct py_frame *frame,     \
                                             int throwflag)                                        \
    {                                                                                              \
        return enter(&LAYOUT_##version, &interpreter_first, thread, frame, throwflag);             \
    }                                                                                              \
    static struct py_object *other_##version(struct py_thread *thread, struct py_frame *frame,     \
                                             int throwflag)                                        \
    {                                                                                              \
        struct interpreter *interpreter =                                                          \
            interpreter_find(layout_pointer(thread, LAYOUT_##version.thread_interpreter));         \
        if (!interpreter)                                                                          \
            return py.evaluator(thread, frame, throwflag);                                         \
        return enter(&LAYOUT_##version, interpreter, thread, frame, throwflag);                    \
    }

HOOKS(3_9)
HOOKS(3_11)
HOOKS(3_12)
HOOKS(3_13)
HOOKS(3_14)

py_evaluator *hook_for(const struct interpreter *interpreter, int minor)
{
    bool first = interpreter == &interpreter_first;
    switch (minor) {
    case 9:
    case 10:
        return first ? first_3_9 : other_3_9;
    case 11:
        return first ? first_3_11 : other_3_11;
    case 12:
        return first ? first_3_12 : other_3_12;
    case 13:
        return first ? first_3_13 : other_3_13;
    default:
        return first ? first_3_14 : other_3_14;
    }
}
