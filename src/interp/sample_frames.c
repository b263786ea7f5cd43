/* The thread that was interrupted is the one that looks: nothing it reads can change meanwhile, and
 * no frame it is in can go away. What can be met is a frame half-way, between two stores of the
 * interpreter, which the compiler may have put in any order: a frame that is the thread's already
 * but does not know its caller yet, and on 3.10 to 3.12 a cframe without its frame. What stands
 * there instead was left by earlier calls. So the innermost frames are taken with care: memory is
 * asked for before it is touched, and a frame's code must be a code object that has the instruction
 * which the frame is at. Behind them lie frames that have waited for a while. A chain that can't be
 * followed is tried again from the cframe before, where there are some; else it is marked as cut.
 */
#include "interp/sample_frames.h"

#include "interp/layout.h"
#include "interp/pyapi.h"
#include "interp/sample_codes.h"
#include "interp/sample_layout.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    CAREFUL_FRAMES = 3,
    FIRST_SEEN = 8,
    PAGE_BYTES = 4096,
    KNOWN_PAGES = 4,
    LAST_CODES = 16,
    NO_VALUE = 256, /* of a char */
};

static const struct sample_layout *layout;
static struct py_thread *(*current_thread)(void);
static struct py_thread *(*thread_of_gil)(void);

/* What is asked of each frame, from the layout. */
static struct shape {
    size_t code, previous;
    size_t instruction; /* the one that the frame is at: a pointer, or an offset */
    bool has_offset;
    unsigned shift; /* makes bytes of it */
    uint64_t mask;
    bool has_borders; /* behind each frame: 3.9 and 3.10; later ... */
    size_t mark;      /* ... this byte tells where one is ... */
    int mark_value;   /* ... by this value */
} the_shape;

static void find_shape(void)
{
    bool has_offset = layout->frame_offset_unit != 0;
    the_shape = (struct shape){
        .code = layout->frame_code,
        .previous = layout->frame_previous,
        .instruction = has_offset ? layout->frame_offset : layout->frame_instruction,
        .has_offset = has_offset,
        .shift = layout->frame_offset_unit == 2,
        .mask = has_offset ? UINT32_MAX : UINT64_MAX, /* an int */
        .has_borders = !layout->frame_owner && !layout->frame_is_entry,
        .mark = layout->frame_owner      ? layout->frame_owner
                : layout->frame_is_entry ? layout->frame_is_entry
                                         : layout->frame_code, /* is read anyhow */
        .mark_value = layout->frame_owner      ? FRAME_OWNER_SHIM
                      : layout->frame_is_entry ? true
                                               : NO_VALUE,
    };
}

const char *sample_frames_load(void)
{
    if (!dlsym(RTLD_DEFAULT, "Py_GetVersion"))
        return "";
    const char *problem = pyapi_load();
    if (problem)
        return problem;
    if (dlsym(RTLD_DEFAULT, "_Py_NegativeRefcount"))
        return "debug builds are not supported";
    *(void **)&current_thread = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
    if (!current_thread)
        *(void **)&current_thread = dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
    *(void **)&thread_of_gil = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (!current_thread || !thread_of_gil)
        return "this build does not export a function that is needed";
    problem = layout_check(layout_of(py.minor), py.minor);
    if (problem)
        return problem;
    const struct sample_layout *known = sample_layout_of(py.minor);
    if (!known)
        return "this version is not known";
    if (!sample_codes_init(known))
        return "memory is short";
    layout = known;
    find_shape();
    return NULL;
}

static void *pointer_at(const void *object, size_t offset)
{
    return *(void *const *)((const char *)object + offset);
}

/* --- walking --------------------------------------------------------------------------------- */

/* A code object that was met on this walk: deep stacks have the same over and over. */
struct met_code {
    uint64_t word;  /* a frame's field for it */
    uint64_t start; /* of its instructions, as frames tell theirs */
    uint64_t entry; /* its number, for the ring */
};

#define NO_WORD UINT64_MAX /* stands where 0 would be found */

struct walk {
    struct sample_ring *ring;
    uint64_t *entries;
    size_t capacity;
    uintptr_t stack_low, stack_high;
    struct sample_frames_result result;
    uintptr_t pages[KNOWN_PAGES]; /* that can be read */
    size_t page_count;
    struct met_code last[LAST_CODES];
};

/* Whether 8 bytes can be read there, without touching them: the kernel looks at the set before it
 * looks at what to do with it, and refuses the latter. */
static bool is_readable(struct walk *walk, const void *address)
{
    uintptr_t word = (uintptr_t)address & ~(uintptr_t)7, page = word & ~(uintptr_t)(PAGE_BYTES - 1);
    for (size_t i = 0; i < KNOWN_PAGES; i++)
        if (page && walk->pages[i] == page)
            return true;
    if (!page || syscall(SYS_rt_sigprocmask, ~0, word, NULL, 8) >= 0 || errno != EINVAL)
        return false;
    walk->pages[walk->page_count++ % KNOWN_PAGES] = page;
    return true;
}

static bool add(struct walk *walk, uint64_t entry)
{
    if (walk->result.count == walk->capacity) {
        walk->result.is_cut = true;
        return false;
    }
    walk->entries[walk->result.count++] = entry;
    return true;
}

static bool is_on_stack(const struct walk *walk, const void *variable)
{
    return (uintptr_t)variable >= walk->stack_low && (uintptr_t)variable < walk->stack_high;
}

static bool add_border(struct walk *walk, const void *variable)
{
    uintptr_t address = (uintptr_t)variable;
    if (address && !is_on_stack(walk, variable))
        return true; /* 3.15 keeps one that belongs to no call of the evaluator */
    return add(walk, SAMPLE_FRAME_BORDER | address);
}

static const char *code_of(const char *frame)
{
    uintptr_t word = (uintptr_t)pointer_at(frame, layout->frame_code);
    return (const char *)(word & ~(uintptr_t)layout->frame_code_tags);
}

static bool is_code(const char *code)
{
    return code && pointer_at(code, OBJECT_TYPE) == (void *)py.code_type;
}

/* A code object that is new on this walk. False when the walk ends here. */
static bool meet(struct walk *walk, const char *frame, struct met_code *ret_met)
{
    const char *code = code_of(frame);
    if (!is_code(code)) {
        walk->result.is_cut = true;
        return false;
    }
    uint32_t number = sample_codes_number(walk->ring, code);
    walk->result.is_lost = number == SAMPLE_CODES_NO_ROOM;
    walk->result.is_late = number == SAMPLE_CODES_BUSY;
    if (walk->result.is_lost || walk->result.is_late)
        return false;
    ret_met->word = (uintptr_t)pointer_at(frame, layout->frame_code);
    ret_met->start = the_shape.has_offset ? 0 : (uintptr_t)code + layout->code_instructions;
    ret_met->entry = (uint64_t)number << 32;
    return true;
}

static struct met_code *place_of(struct walk *walk, uint64_t word)
{
    return &walk->last[word / 64 % LAST_CODES];
}

/* Of the instruction that a frame is at, in bytes from the first one. */
static uint64_t offset_of(const char *frame, uint64_t start, const struct shape *shape)
{
    uint64_t at = (uintptr_t)pointer_at(frame, shape->instruction) & shape->mask;
    return (at - start) << shape->shift;
}

/* One frame. False when the walk ends here. */
static bool add_frame(struct walk *walk, const char *frame)
{
    uint64_t word = (uintptr_t)pointer_at(frame, layout->frame_code);
    struct met_code *met = place_of(walk, word);
    if (met->word != word && !meet(walk, frame, met))
        return false;
    uint64_t offset = offset_of(frame, met->start, &the_shape);
    return add(walk, met->entry | (offset > INT32_MAX ? (uint32_t)SAMPLE_OFFSET_NONE : offset));
}

static bool is_shim(const char *frame)
{
    return layout->frame_owner && frame[layout->frame_owner] == FRAME_OWNER_SHIM;
}

/* Whether what is there can be a frame. */
static bool is_frame(struct walk *walk, const char *frame)
{
    if ((uintptr_t)frame & 7 || !is_readable(walk, frame) || !is_readable(walk, frame + 104))
        return false;
    if (is_shim(frame))
        return true;
    const char *code = code_of(frame);
    if ((uintptr_t)code & 7 || !is_readable(walk, code) || !is_readable(walk, code + 200) ||
        !is_code(code))
        return false;
    if (!layout->frame_instruction)
        return true;
    const char *at = pointer_at(frame, layout->frame_instruction);
    ptrdiff_t offset = at - (code + layout->code_instructions);
    return offset >= -2 && offset < (ptrdiff_t)((size_t)pointer_at(code, CODE_UNITS) * 2);
}

/* The one before, NULL behind the last. The outermost one is part of the thread's state and has
 * garbage in the place of another; it is met before the last frame, since generators that pass a
 * throw() on are frames without a call of the evaluator. */
static const char *outer_cframe(const struct walk *walk, const char *cframe)
{
    bool has_outer = cframe && is_on_stack(walk, cframe);
    return has_outer ? pointer_at(cframe, layout->cframe_previous) : NULL;
}

/* The frames that are nearly all of a deep stack: of functions that this walk has met, and without
 * a mark. What this loop needs is in registers, and it takes half of what walk_one would. It ends
 * behind `most` entries, or at the frame `seen`. Returns how many entries it has added. */
static size_t walk_easy(struct walk *walk, const char **frame, const char **cframe,
                        const char *seen, size_t most)
{
    const struct shape shape = the_shape;
    const char *at = *frame, *outer = *cframe;
    struct met_code met = {.word = NO_WORD};
    size_t room = walk->capacity - walk->result.count;
    uint64_t *first = walk->entries + walk->result.count, *out = first;
    const uint64_t *end = first + (most < room ? most : room) - 1;
    while (at && out < end) {
        uint64_t word = (uintptr_t)pointer_at(at, shape.code);
        if (word != met.word)
            met = *place_of(walk, word);
        uint64_t offset = offset_of(at, met.start, &shape);
        if (word != met.word || at[shape.mark] == shape.mark_value || offset > INT32_MAX)
            break;
        if (shape.has_borders) {
            if (outer && !is_on_stack(walk, outer))
                break;
            out[1] = SAMPLE_FRAME_BORDER | (uintptr_t)outer;
            outer = outer_cframe(walk, outer);
        }
        *out = met.entry | offset;
        out += shape.has_borders ? 2 : 1;
        at = pointer_at(at, shape.previous);
        if (at == seen)
            break;
    }
    *frame = at;
    *cframe = outer;
    walk->result.count += (size_t)(out - first);
    return (size_t)(out - first);
}

/* One frame of any kind. False when the walk ends here. */
static bool walk_one(struct walk *walk, const char *frame, const char **cframe)
{
    if (is_shim(frame))
        return add_border(walk, frame);
    if (!add_frame(walk, frame))
        return false;
    if (!the_shape.has_borders && (!layout->frame_is_entry || !frame[layout->frame_is_entry]))
        return true;
    bool is_added = add_border(walk, *cframe);
    *cframe = outer_cframe(walk, *cframe);
    return is_added;
}

/* From a frame on; `cframe` is where the list of cframes has got to. Whether it came to the end, or
 * there was no more room. What was left by earlier calls can lead in a circle: there, one of the
 * frames that are kept in mind, ever farther apart, is met again. */
static bool walk_from(struct walk *walk, const char *frame, const char **cframe)
{
    const char *seen = NULL;
    size_t steps = 0, next_seen = FIRST_SEEN;
    while (frame) {
        if (frame == seen || (steps < CAREFUL_FRAMES && !is_frame(walk, frame))) {
            walk->result.is_cut = true;
            return false;
        }
        if (steps >= next_seen) {
            seen = frame;
            next_seen = 2 * steps;
        }
        bool is_behind_careful = steps >= CAREFUL_FRAMES;
        size_t easy =
            is_behind_careful ? walk_easy(walk, &frame, cframe, seen, next_seen - steps) : 0;
        steps += easy;
        if (easy)
            continue;
        if (!walk_one(walk, frame, cframe))
            return walk->result.count == walk->capacity;
        frame = pointer_at(frame, layout->frame_previous);
        steps++;
    }
    return true;
}

/* On 3.10 each frame has a cframe. While a call begins there is one more, the innermost, and while
 * one ends there is one less. */
static void walk_both(struct walk *walk, const char *frame, const char *cframe)
{
    const char *left = cframe;
    if (!walk_from(walk, frame, &left) || !cframe || !walk->result.count || walk->result.is_cut)
        return;
    bool is_one_less = !(walk->entries[walk->result.count - 1] & SAMPLE_FRAME_BORDER);
    if (!is_one_less && !is_on_stack(walk, left))
        return;
    walk->result.count = 0;
    if (!is_one_less)
        cframe = outer_cframe(walk, cframe);
    else if (add_frame(walk, frame) && add(walk, SAMPLE_FRAME_BORDER))
        frame = pointer_at(frame, layout->frame_previous);
    else
        return;
    walk_from(walk, frame, &cframe);
}

/* On 3.11 and 3.12 the innermost frame belongs to the innermost cframe. That one may have none yet:
 * what stands there was left by others. Then the one before is taken. */
static void walk_chain(struct walk *walk, struct py_thread *thread)
{
    const char *cframe = layout->thread_cframe ? pointer_at(thread, layout->thread_cframe) : NULL;
    if (layout->thread_frame) {
        walk_both(walk, pointer_at(thread, layout->thread_frame), cframe);
        return;
    }
    walk->result.is_cut = true;
    for (int i = 0; i < 2 && cframe && is_readable(walk, cframe); i++) {
        walk->result = (struct sample_frames_result){0};
        const char *next = cframe;
        if (walk_from(walk, pointer_at(cframe, layout->cframe_frame), &next) ||
            walk->result.is_lost || walk->result.is_late)
            return;
        cframe = pointer_at(cframe, layout->cframe_previous);
    }
}

/* The calling thread's state, whether it holds the GIL or not; NULL when it is none of Python's. */
static struct py_thread *thread_state(struct walk *walk)
{
    struct py_thread *current = current_thread();
    if (current) {
        pthread_t owner;
        memcpy(&owner, (const char *)current + layout->thread_id, sizeof owner);
        if (owner == pthread_self())
            return current;
    }
    struct py_thread *mine = thread_of_gil();
    return mine && is_readable(walk, (const char *)mine + layout->thread_id) ? mine : NULL;
}

struct sample_frames_result sample_frames_read(struct sample_ring *ring, uintptr_t stack_low,
                                               uintptr_t stack_high, uint64_t *entries,
                                               size_t capacity)
{
    struct walk walk = {.ring = ring,
                        .entries = entries,
                        .capacity = capacity,
                        .stack_low = stack_low,
                        .stack_high = stack_high,
                        .last = {{.word = NO_WORD}}};
    struct py_thread *thread = layout ? thread_state(&walk) : NULL;
    if (thread)
        walk_chain(&walk, thread);
    return walk.result;
}
