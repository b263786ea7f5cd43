/* All states of all interpreters are in lists, which others change meanwhile: a thread may end, or
 * an interpreter with all that belongs to it, and its memory be gone. So nothing of the lists is
 * read but by the kernel, which refuses where there is no memory, and what was read counts only if
 * it is a state of this thread: by the thread's number, or since its cframe lies on this stack.
 * Those go away by nobody else's hand while this thread has frames in them.
 *
 *     head -> interpreter -> interpreter -> ... main
 *               |              |
 *             state          state -> state -> ...
 *
 * Up to 3.11 the number is that of the thread which made the interpreter, whoever runs it, so there
 * the cframe decides. 3.9 has none: only the state that the thread had first is known to be its
 * own.
 *
 * That takes a system call for each. But a state that is suspended stays at its frame, so those
 * that were found before are good for as long as they are at the same frame and the current state
 * is the same. Now and then they are looked for in spite of that: a list that was just being
 * changed may have been cut short. */
#include "interp/sample_states.h"

#include "interp/layout.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

enum {
    MOST_READS = 1024, /* of interpreters and states: what is read may lead in a circle */
    MOST_STEPS = 512,  /* up to the border of the innermost frames */
    MOST_USES = 64,
    MOST_USES_OF_NONE = 4,
    STATE_NEXT = 8,
    STATE_BYTES = 192,       /* what is read of one ... */
    MOST_STATE_BYTES = 1024, /* ... of so many at most, up to 3.11 */
    FRAME_BYTES = 80,
    FIRST_WITH_OFFSETS = 13,
    /* Positions in CPython's own table of offsets, see layout.c. */
    PUBLISHED_INTERPRETER_NEXT = 64,
    PUBLISHED_INTERPRETER_THREADS = 72,
};

static const struct sample_layout *layout;
static size_t thread_interpreter, interpreter_next, interpreter_threads;
static const struct py_interpreter *(*main_interpreter)(void);
static const struct py_interpreter *(*first_interpreter)(void);
static const struct py_thread *(*current_thread)(void);
static const struct py_thread *(*thread_of_gil)(void);

static uint64_t published(size_t position)
{
    uint64_t number;
    memcpy(&number, (const char *)py.runtime + position, sizeof number);
    return number;
}

bool sample_states_init(const struct sample_layout *known, int minor)
{
    *(void **)&current_thread = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (!current_thread)
        *(void **)&current_thread = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    *(void **)&main_interpreter = dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
    *(void **)&first_interpreter = dlsym(RTLD_DEFAULT, "PyInterpreterState_Head");
    *(void **)&thread_of_gil = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (!current_thread || !thread_of_gil || !main_interpreter || !first_interpreter)
        return false;
    bool is_published = minor >= FIRST_WITH_OFFSETS;
    layout = known;
    thread_interpreter = layout_of(minor)->thread_interpreter;
    interpreter_next = is_published ? published(PUBLISHED_INTERPRETER_NEXT) : 0;
    interpreter_threads =
        is_published ? published(PUBLISHED_INTERPRETER_THREADS) : layout->interpreter_threads;
    return true;
}

/* Nothing lies beneath a state of the main interpreter. */
static bool is_of_main(const struct py_thread *state)
{
    return layout_pointer(state, thread_interpreter) == main_interpreter();
}

static bool has_others(void)
{
    return first_interpreter() != main_interpreter(); /* new ones come first */
}

static const void *read_pointer(const void *object, size_t offset)
{
    const void *pointer;
    return sample_memory_read((const char *)object + offset, &pointer, sizeof pointer) ? pointer
                                                                                       : NULL;
}

/* A look at one thread's states. */
struct search {
    struct sample_states *states;
    const struct py_thread *current;
    struct sample_bounds stack;
    int reads_left;
};

static bool is_on_stack(const struct search *search, const void *address)
{
    return (uintptr_t)address >= search->stack.low && (uintptr_t)address < search->stack.high;
}

/* Where a state is on the C stack; 0 when nowhere, as 3.15's that do nothing: they have a frame,
 * too. Deep ones lie far out. */
static uintptr_t position_of(const struct search *search, const char *frame)
{
    char bytes[FRAME_BYTES];
    for (int i = 0; i < MOST_STEPS; i++) {
        if (!frame || !sample_memory_read(frame, bytes, sizeof bytes))
            return 0;
        if (bytes[layout->frame_owner] == FRAME_OWNER_SHIM && is_on_stack(search, frame))
            return (uintptr_t)frame;
        frame = layout_pointer(bytes, layout->frame_previous);
    }
    return search->stack.high;
}

/* Reads a state, into `bytes` and `ret_state`. Whether it is of this thread, and has frames. */
static bool is_suspended(const struct search *search, const struct py_thread *state, char *bytes,
                         struct sample_state *ret_state)
{
    pthread_t owner;
    *ret_state = (struct sample_state){.state = state};
    if (!sample_memory_read(state, bytes, STATE_BYTES)) {
        memset(bytes, 0, STATE_BYTES);
        return false;
    }
    memcpy(&owner, bytes + layout->thread_id, sizeof owner);
    if (layout->thread_cframe) {
        ret_state->frame = layout_pointer(bytes, layout->thread_cframe);
        return is_on_stack(search, ret_state->frame);
    }
    ret_state->frame = layout_pointer(bytes, layout->thread_frame);
    return ret_state->frame && owner == pthread_self();
}

static void add(struct sample_states *states, struct sample_state state)
{
    if (states->count == SAMPLE_STATES_MOST)
        return;
    size_t place = states->count++;
    for (; place > 0 && states->items[place - 1].position > state.position; place--)
        states->items[place] = states->items[place - 1];
    states->items[place] = state;
}

static void search_interpreter(struct search *search, const struct py_interpreter *interpreter)
{
    const struct py_thread *next = read_pointer(interpreter, interpreter_threads);
    char bytes[STATE_BYTES];
    while (next && search->reads_left-- > 0) {
        struct sample_state state;
        bool is_wanted = is_suspended(search, next, bytes, &state) && next != search->current;
        next = layout_pointer(bytes, STATE_NEXT);
        if (!is_wanted)
            continue;
        state.position =
            layout->thread_cframe ? (uintptr_t)state.frame : position_of(search, state.frame);
        if (state.position)
            add(search->states, state);
    }
}

static void search_all(struct search *search)
{
    for (const struct py_interpreter *interpreter = first_interpreter();
         interpreter && search->reads_left-- > 0;
         interpreter = read_pointer(interpreter, interpreter_next))
        search_interpreter(search, interpreter);
}

/* On 3.9: the thread's first one. Without the GIL, which state is current is not known either: it
 * is the one that was, if the first one still waits at the same frame. */
static void take_first(struct search *search)
{
    struct sample_states *states = search->states;
    char bytes[STATE_BYTES];
    struct sample_state first, last;
    if (!is_suspended(search, thread_of_gil(), bytes, &first))
        return;
    if (search->current) {
        states->current = search->current;
        states->beneath = first.frame;
    } else if (states->beneath == first.frame &&
               is_suspended(search, states->current, bytes, &last)) {
        add(states, last);
    }
    add(states, first);
}

/* Whether those that were found before are still where they were. */
static bool are_the_same(const struct search *search)
{
    struct sample_states *states = search->states;
    char bytes[STATE_BYTES];
    bool is_known =
        search->current ? states->current == search->current : !states->current && states->count;
    if (!is_known || states->uses++ >= (states->count ? MOST_USES : MOST_USES_OF_NONE))
        return false;
    for (size_t i = 0; i < states->count; i++) {
        struct sample_state now;
        if (!is_suspended(search, states->items[i].state, bytes, &now) ||
            now.frame != states->items[i].frame)
            return false;
    }
    return true;
}

static void look(struct search *search)
{
    struct sample_states *states = search->states;
    bool has_positions = layout->thread_cframe || layout->frame_owner;
    if (has_positions && are_the_same(search))
        return;
    states->count = states->uses = 0;
    if (has_positions) {
        states->current = search->current;
        search_all(search);
    } else {
        take_first(search);
    }
}

/* Whether the state that holds the GIL is the calling thread's. On 3.10 and 3.11 the one whose
 * stack its cframe lies on runs it, if it is not the main interpreter's. */
static bool is_mine(const struct search *search, const struct py_thread *state)
{
    pthread_t owner;
    memcpy(&owner, (const char *)state + layout->thread_id, sizeof owner);
    bool is_owner = owner == pthread_self();
    if (!layout->thread_cframe || layout->frame_owner || is_of_main(state))
        return is_owner;
    const char *cframe = layout_pointer(state, layout->thread_cframe);
    bool is_idle = cframe - (const char *)state < MOST_STATE_BYTES && cframe >= (const char *)state;
    return is_on_stack(search, cframe) || (is_owner && is_idle);
}

/* The innermost state, whether it holds the GIL or not. Up to 3.11 one without the GIL is found as
 * the thread's first: `ret_is_sure` is false where others may be further in. */
static const struct py_thread *find_current(const struct search *search,
                                            struct sample_memory *memory, bool *ret_is_sure)
{
    const struct py_thread *current = current_thread();
    *ret_is_sure = true;
    if (current && is_mine(search, current))
        return current;
    const struct py_thread *mine = thread_of_gil();
    if (!mine || !sample_memory_is_readable(memory, (const char *)mine + layout->thread_id))
        return NULL;
    *ret_is_sure = layout->frame_owner || !has_others();
    return mine;
}

/* A thread that ends an interpreter has no state for a while, though others of its wait. */
struct sample_states_found sample_states_find(struct sample_states *states,
                                              struct sample_memory *memory,
                                              struct sample_bounds stack)
{
    struct search search = {.states = states, .stack = stack, .reads_left = MOST_READS};
    bool is_sure;
    const struct py_thread *current = find_current(&search, memory, &is_sure);
    struct sample_states_found found = {.current = current};
    if (current ? is_sure && is_of_main(current) : !states->has_been_seen || !has_others()) {
        states->has_been_seen |= current != NULL;
        return found;
    }
    search.current = is_sure ? current : NULL;
    look(&search);
    states->has_been_seen = true;
    if (!is_sure && states->count)
        found.current = NULL;
    found.suspended = states->items;
    found.count = states->count;
    return found;
}
