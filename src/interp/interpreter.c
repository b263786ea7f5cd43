/* Interpreters come and go: subinterpreters end, and a program that embeds Python may finalize it
 * and start again. The new one often gets the address of the old one, so an entry must be known to
 * be dead before. A capsule in the interpreter's own dictionary sees to that: its destructor runs
 * when the interpreter clears that dictionary, near its end.
 *
 * Our hook is left in place then. The interpreter is half torn down, its trampolines stay valid,
 * and for code that has none the cold path just calls the evaluator. */
#include "interp/interpreter.h"

#include "interp/registration.h"

#include <stdlib.h>

static const char CAPSULE_NAME[] = "pitviper.interpreter";

_Alignas(64) struct interpreter interpreter_first;
const struct layout *interpreter_layout;

struct interpreter *interpreter_find(const struct py_interpreter *handle)
{
    struct interpreter *entry = &interpreter_first;
    while (entry && entry->handle != handle)
        entry = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE);
    return entry;
}

static void on_end_of_interpreter(struct py_object *capsule)
{
    struct interpreter *entry = py.capsule_pointer(capsule, CAPSULE_NAME);
    registration_forget(entry);
    entry->active = false;
    entry->handle = NULL;
}

/* An entry that nobody uses, or a new one at the end of the list. */
static struct interpreter *unused_entry(void)
{
    struct interpreter *entry = interpreter_find(NULL);
    if (entry)
        return entry;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    struct interpreter *last = &interpreter_first;
    while (last->next)
        last = last->next;
    __atomic_store_n(&last->next, entry, __ATOMIC_RELEASE);
    return entry;
}

static bool watch_end(struct interpreter *entry, struct py_interpreter *handle)
{
    struct py_object *dict = py.interpreter_dict(handle);
    struct py_object *capsule =
        dict ? py.capsule_new(entry, CAPSULE_NAME, on_end_of_interpreter) : NULL;
    bool stored = capsule && py.dict_set(dict, CAPSULE_NAME, capsule) == 0;
    if (capsule)
        py.decref(capsule);
    return stored;
}

struct interpreter *interpreter_current(void)
{
    struct py_interpreter *handle = py.interpreter_get();
    struct interpreter *entry = interpreter_find(handle);
    if (entry)
        return entry;
    ptrdiff_t index = py.request_extra_index(registration_on_code_end);
    if (index < 0) {
        py.err_set_string(*py.exc_runtime_error, "no index for data of code objects is left");
        return NULL;
    }
    registration_lock();
    entry = unused_entry();
    if (entry) {
        struct interpreter *next = entry->next;
        *entry = (struct interpreter){.handle = handle,
                                      .index = index,
                                      .hot_index = INTERPRETER_INDEX_COLD,
                                      .evaluator = py.evaluator,
                                      .next = next};
    }
    registration_unlock();
    if (entry && watch_end(entry, handle))
        return entry;
    if (entry)
        entry->handle = NULL;
    if (!py.err_occurred())
        py.err_set_string(*py.exc_runtime_error, "out of memory");
    return NULL;
}
