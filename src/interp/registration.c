/* From a code object to its trampoline, by the value that we keep in its co_extra:
 *
 *     0                      never called while we were on
 *     trampoline             the hot path jumps there
 *     trampoline + top bit   it has a trampoline, but the file that counts now lacks its name
 *
 * The hot path takes positive values only, so the third kind comes to the cold path at its next
 * call, where the name is written and the bit removed. That is how fork and the change from one
 * file to the other are handled: all values are marked, and functions are named again as they are
 * called.
 *
 * Only the one who holds an interpreter's GIL may touch its code objects, and since 3.12 there may
 * be one for each. So a change that concerns all of them is only noted: `expired` is set, and every
 * call takes the cold path, where each interpreter marks what is its own.
 *
 * Functions that interp/class_calls.c is concerned with always take the cold path; a second bit
 * says that they are named.
 *
 * Fork. The handler of pthread_atfork does the least possible, because most children only call
 * exec: it makes every call take the cold path. The first such call, or os.fork() itself through
 * os.register_at_fork, does the rest: the child gets files of its own, everything is marked, and
 * the functions that the forking thread is in are named right away, since they may never be called
 * again. The parent's files are not touched: no buffer exists that the child could write.
 *
 * The lock is held around fork, so the child never sees an arena or a file half-way. */
#include "interp/registration.h"

#include "interp/class_calls.h"
#include "interp/symbol_name.h"

#include <pthread.h>
#include <unistd.h>

#define STALE ((uintptr_t)1 << 63)
#define NAMED_INIT ((uintptr_t)1 << 62)
#define TAGS (STALE | NAMED_INIT)

enum { MOST_FRAMES_AFTER_FORK = 100000 };

/* What pthread_atfork stands for in glibc. Weak, because a preloaded object must not keep a program
 * of another C library (musl) from starting; there is no Python that we support in those. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *object) __attribute__((weak));
extern void *__dso_handle;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol_file files[SYMBOL_KINDS];
static bool after_fork;

void registration_lock(void)
{
    pthread_mutex_lock(&lock);
}

void registration_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Other threads read it at any time, without a lock. */
static void set_hot_index(struct interpreter *interpreter, ptrdiff_t index)
{
    __atomic_store_n(&interpreter->hot_index, index, __ATOMIC_RELAXED);
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    after_fork = true;
    for (struct interpreter *each = &interpreter_first; each; each = each->next)
        set_hot_index(each, INTERPRETER_INDEX_COLD);
}

static code_arena_owner named_bit(enum symbol_kind kind)
{
    return kind == SYMBOL_MAP ? CODE_ARENA_NAMED_IN_MAP : CODE_ARENA_NAMED_IN_DUMP;
}

static void mark_if_unnamed(trampoline_function *trampoline, code_arena_owner *owner, void *context)
{
    struct interpreter *interpreter = context;
    if (*owner & named_bit(interpreter->kind))
        return;
    void **value = layout_extra(interpreter_layout, code_arena_code(*owner), interpreter->index);
    if (value && *value)
        *value = (void *)((uintptr_t)trampoline | STALE);
}

static void expire(struct interpreter *interpreter)
{
    code_arena_each(&interpreter->arena, mark_if_unnamed, interpreter);
}

void registration_renew(struct interpreter *interpreter)
{
    registration_lock();
    expire(interpreter);
    interpreter->expired = false;
    set_hot_index(interpreter, interpreter->index);
    registration_unlock();
}

static void clear_bits(trampoline_function *trampoline, code_arena_owner *owner, void *context)
{
    (void)trampoline;
    *owner &= ~*(code_arena_owner *)context;
}

/* Nothing is in the files of these bits any more. */
static void expire_all(code_arena_owner bits)
{
    for (struct interpreter *each = &interpreter_first; each; each = each->next) {
        code_arena_each(&each->arena, clear_bits, &bits);
        __atomic_store_n(&each->expired, true, __ATOMIC_RELAXED);
        set_hot_index(each, INTERPRETER_INDEX_COLD);
    }
}

static int open_locked(enum symbol_kind kind, bool keep)
{
    static bool watches_fork;
    struct symbol_file *file = &files[kind];
    if (!watches_fork && __register_atfork)
        watches_fork = __register_atfork(before_fork, in_parent, in_child, &__dso_handle) == 0;
    if (file->open && file->pid == getpid() && symbol_file_is_in_place(file))
        return 0;
    symbol_file_close(file);
    expire_all(named_bit(kind));
    return symbol_file_open(file, kind, keep);
}

int registration_ready(struct interpreter *interpreter)
{
    registration_lock();
    int result = code_arena_ready(&interpreter->arena);
    registration_unlock();
    return result;
}

int registration_open(enum symbol_kind kind, bool keep)
{
    registration_lock();
    int result = open_locked(kind, keep);
    registration_unlock();
    return result;
}

/* Writes the name of a trampoline, unless it is there already. */
static void name_trampoline(enum symbol_kind kind, trampoline_function *trampoline,
                            code_arena_owner *owner)
{
    if (*owner & named_bit(kind))
        return;
    struct symbol symbol = {.avma = (uintptr_t)trampoline};
    symbol_name_of(interpreter_layout, code_arena_code(*owner), &symbol);
    symbol_file_add(&files[kind], &symbol);
    *owner |= named_bit(kind); /* also when it was lost: it would be again at every call */
}

static trampoline_function *find_or_take(struct interpreter *interpreter, struct py_object *code,
                                         uintptr_t value)
{
    trampoline_function *trampoline = (trampoline_function *)(value & ~TAGS);
    registration_lock();
    code_arena_owner *owner = trampoline ? code_arena_find(*(void **)&trampoline) : NULL;
    if (!owner || code_arena_code(*owner) != code) {
        trampoline = NULL;
        if (code_arena_take(&interpreter->arena, code, &trampoline) == 0)
            owner = code_arena_find(*(void **)&trampoline);
    }
    if (trampoline && owner)
        name_trampoline(interpreter->kind, trampoline, owner);
    registration_unlock();
    return trampoline;
}

/* Nobody owns the trampoline any more; it stays unused. */
static void give_up(trampoline_function *trampoline)
{
    registration_lock();
    code_arena_owner *owner = code_arena_find(*(void **)&trampoline);
    if (owner)
        *owner = 0;
    registration_unlock();
}

/* Notes the trampoline in the code object. False when there was no memory for that: then we would
 * not hear of its end either. */
static bool set_value(struct interpreter *interpreter, struct py_object *code,
                      trampoline_function *trampoline)
{
    uintptr_t tags = class_calls_concern(code) ? STALE | NAMED_INIT : 0;
    void *new_value = (void *)((uintptr_t)trampoline | tags);
    void **value = layout_extra(interpreter_layout, code, interpreter->index);
    if (value) {
        *value = new_value;
        return true;
    }
    if (py.set_extra(code, interpreter->index, new_value) == 0)
        return true;
    py.err_clear();
    return false;
}

trampoline_function *registration_of_init(struct interpreter *interpreter, struct py_object *code)
{
    void **value = layout_extra(interpreter_layout, code, interpreter->hot_index);
    if (!value || ((uintptr_t)*value & TAGS) != TAGS)
        return NULL;
    return (trampoline_function *)((uintptr_t)*value & ~TAGS);
}

trampoline_function *registration_of(struct interpreter *interpreter, struct py_object *code)
{
    void **value = layout_extra(interpreter_layout, code, interpreter->index);
    if (value && (intptr_t)*value > 0)
        return *(trampoline_function **)value;

    struct py_object *type = NULL, *exception = NULL, *traceback = NULL;
    bool has_exception = py.err_occurred() != NULL;
    if (has_exception)
        py.err_fetch(&type, &exception, &traceback);
    trampoline_function *trampoline =
        find_or_take(interpreter, code, value ? (uintptr_t)*value : 0);
    if (trampoline && !set_value(interpreter, code, trampoline)) {
        give_up(trampoline);
        trampoline = NULL;
    }
    if (has_exception)
        py.err_restore(type, exception, traceback);
    return trampoline;
}

bool registration_is_after_fork(void)
{
    return after_fork;
}

/* The functions that the thread is in, innermost first. Frames that belong to no function have
 * something else in the place of a code object. */
static void name_running(struct interpreter *interpreter, struct py_thread *thread)
{
    const struct layout *layout = interpreter_layout;
    struct py_frame *frame = layout_current_frame(layout, thread);
    for (int i = 0; frame && i < MOST_FRAMES_AFTER_FORK; i++) {
        struct py_object *code = layout_frame_code(layout, frame);
        if (code && layout_pointer(code, sizeof(void *)) == py.code_type) {
            void **value = layout_extra(layout, code, interpreter->index);
            if (value && *value)
                registration_of(interpreter, code);
        }
        frame = layout_pointer(frame, layout->frame_previous);
    }
}

void registration_after_fork(struct py_thread *thread)
{
    bool wanted[SYMBOL_KINDS] = {false};
    registration_lock();
    after_fork = false;
    for (int kind = 0; kind < SYMBOL_KINDS; kind++)
        symbol_file_close(&files[kind]);
    expire_all(CODE_ARENA_NAMED);
    for (struct interpreter *each = &interpreter_first; each; each = each->next) {
        if (each->active)
            wanted[each->kind] = true;
    }
    for (int kind = 0; kind < SYMBOL_KINDS; kind++) {
        if (wanted[kind])
            open_locked(kind, false);
    }
    registration_unlock();

    struct interpreter *mine =
        interpreter_find(layout_pointer(thread, interpreter_layout->thread_interpreter));
    if (mine && mine->active) {
        registration_renew(mine);
        name_running(mine, thread);
    }
}

void registration_forget(struct interpreter *interpreter)
{
    registration_lock();
    code_arena_forget(&interpreter->arena);
    registration_unlock();
}

void registration_on_code_end(void *value)
{
    if (value)
        give_up((trampoline_function *)((uintptr_t)value & ~TAGS));
}

const struct symbol_file *registration_file(enum symbol_kind kind)
{
    return &files[kind];
}
