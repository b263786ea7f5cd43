/* The thread that was interrupted is the one that looks: nothing it reads can change meanwhile, and
 * no frame it is in can go away. What can be met is a frame half-way, between two stores of the
 * interpreter, which the compiler may have put in any order: a frame that is the thread's already
 * but does not know its caller yet, and on 3.10 to 3.12 a cframe without its frame. What stands
 * there instead was left by earlier calls. So the innermost frames are taken with care: memory is
 * asked for before it is touched, and a frame's code must be a code object that has the instruction
 * which the frame is at. Behind them lie frames that have waited for a while. A chain that can't be
 * followed is tried again from the cframe before, where there are some; else it is marked as cut.
 *
 * A generator has no caller while it waits, and some builds make it the thread's frame before they
 * give it one. That looks like the end of a chain, but no chain ends so: what runs a generator is a
 * function, or C code with a shim or cframe of its own. It lasts for a few instructions, but on 3.9
 * as long as an exception takes that throw() hands down by way of a `yield from` or an `await`.
 *
 * Of a deep stack each frame lies somewhere else, and where is known only when the one before has
 * been read: a processor would wait for every single one. But nearly all are where they were at the
 * sample before (sample_chain.h). So a frame is read at the address that is known of then, behind a
 * comparison with where it really is:
 *
 *     known   ... | A | B | C |     read B; its caller is at C, too? then read C, as it is known
 *
 * Processors guess how comparisons end, so they read C and those behind it before B is there. What
 * they read in vain, as the memory of a frame that is gone, has no effect. It takes half the time.
 */
#include "interp/sample_frames.h"

#include "interp/layout.h"
#include "interp/pyapi.h"
#include "interp/sample_codes.h"
#include "interp/sample_layout.h"

#include <dlfcn.h>
#include <string.h>

enum {
    CAREFUL_FRAMES = 3,
    FIRST_SEEN = 8,
    LAST_CODES = 16,
    NO_VALUE = 256, /* of a char */
};

static const struct sample_layout *layout;

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
    problem = layout_check(layout_of(py.minor), py.minor);
    if (problem)
        return problem;
    const struct sample_layout *known = sample_layout_of(py.minor);
    if (!known)
        return "this version is not known";
    if (!sample_codes_init(known))
        return "memory is short";
    if (!sample_states_init(known, py.minor))
        return "this build does not export a function that is needed";
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
    struct sample_chain *chain;
    struct sample_bounds stack;
    struct sample_frames_result result;
    struct sample_memory memory;
    struct met_code last[LAST_CODES];
};

static bool is_readable(struct walk *walk, const void *address)
{
    return sample_memory_is_readable(&walk->memory, address);
}

static bool add(struct walk *walk, uint64_t entry)
{
    bool is_added = sample_chain_add(walk->chain, entry);
    walk->result.is_full = walk->result.is_cut = !is_added;
    return is_added;
}

static bool is_on_stack(const struct walk *walk, const void *variable)
{
    return (uintptr_t)variable >= walk->stack.low && (uintptr_t)variable < walk->stack.high;
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

static size_t place_of(uint64_t word)
{
    return word / 64 % LAST_CODES;
}

/* Of the instruction that a frame is at, in bytes from the first one. */
static uint64_t offset_of(const char *frame, uint64_t start, const struct shape *shape)
{
    uint64_t at = (uintptr_t)pointer_at(frame, shape->instruction) & shape->mask;
    return (at - start) << shape->shift;
}

static inline struct sample_step step_of(const char *frame, const struct met_code *met,
                                         const struct shape *shape)
{
    uint32_t at;
    memcpy(&at, frame + shape->instruction, sizeof at);
    return (struct sample_step){.frame = frame, .key = met->entry | at};
}

/* One frame. False when the walk ends here. */
static bool add_frame(struct walk *walk, const char *frame)
{
    uint64_t word = (uintptr_t)pointer_at(frame, layout->frame_code);
    struct met_code *met = &walk->last[place_of(word)];
    if (met->word != word && !meet(walk, frame, met))
        return false;
    sample_chain_step(walk->chain, step_of(frame, met, &the_shape));
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

/* The function that a frame is of, if this walk has met it. `met` is that of the frame before. */
static inline bool has_met(const struct walk *walk, const char *frame, const struct shape *shape,
                           struct met_code *met)
{
    uint64_t word = (uintptr_t)pointer_at(frame, shape->code);
    if (__builtin_expect(word != met->word, 0))
        *met = walk->last[place_of(word)];
    return word == met->word;
}

/* The frames that are nearly all of a deep stack: of functions that this walk has met, and without
 * a mark; `most` of them, or up to the frame `seen`. What this loop needs is in registers, and it
 * takes half of what walk_one would. Returns how many. */
static size_t walk_easy(struct walk *walk, const char **frame, const char **cframe,
                        const char *seen, size_t most)
{
    const struct shape shape = the_shape;
    struct sample_chain *chain = walk->chain;
    struct sample_steps *steps = &chain->steps;
    const char *at = *frame, *outer = *cframe;
    struct met_code met = {.word = NO_WORD};
    uint64_t *out = chain->entries + chain->count;
    size_t room = sample_chain_room(chain), count = 0;
    for (most = most < room ? most : room; at && at != seen && count < most; count++) {
        if (!has_met(walk, at, &shape, &met) || at[shape.mark] == shape.mark_value ||
            (shape.has_borders && outer && !is_on_stack(walk, outer)))
            break;
        uint64_t offset = offset_of(at, met.start, &shape);
        if (offset > INT32_MAX)
            break;
        steps->items[steps->count] = step_of(at, &met, &shape);
        steps->places[steps->count++] = (uint16_t)(out - chain->entries);
        *out = met.entry | offset;
        out++;
        if (shape.has_borders) {
            *out++ = SAMPLE_FRAME_BORDER | (uintptr_t)outer;
            outer = outer_cframe(walk, outer);
        }
        at = pointer_at(at, shape.previous);
    }
    *frame = at;
    *cframe = outer;
    chain->count = (size_t)(out - chain->entries);
    return count;
}

/* Not past the cache (prefetchnta), to leave it to the program: some processors then forget what
 * they read, and the next sample has to wait for memory. */
static inline void ask_for(const char *frame, const struct shape *shape)
{
    __builtin_prefetch(frame + shape->previous);
    __builtin_prefetch(frame + shape->instruction);
}

/* The same address, but the compiler does not know it: else it would take the one that it was
 * compared with, and the processor would have to wait for that. */
static inline const char *as_known(const char *address)
{
    __asm__("" : "+r"(address));
    return address;
}

/* The known frames, as far as they are still the same. `has_cframes`: each frame has one, and a
 * border for it. Returns how many. */
static inline __attribute__((always_inline)) size_t walk_known(struct walk *walk,
                                                               const char **frame,
                                                               const char **cframe,
                                                               bool has_cframes, bool has_marks)
{
    const struct shape shape = the_shape;
    const struct sample_chain *chain = walk->chain;
    const struct sample_step *first = sample_chain_known(chain) + chain->next_step, *step = first;
    const struct sample_step *end = sample_chain_known(chain) + chain->known_steps.count;
    const uint64_t *border = chain->next + 1;
    const char *at = *frame, *outer = *cframe;
    struct met_code met = {.word = NO_WORD};
    for (; step < end; step++) {
        ask_for(step[SAMPLE_CHAIN_AHEAD].frame, &shape);
        const char *known = as_known(step->frame);
        if (step->frame != at || !has_met(walk, known, &shape, &met) ||
            step_of(known, &met, &shape).key != step->key ||
            (has_marks && known[shape.mark] == shape.mark_value))
            break;
        if (has_cframes) {
            const char *known_outer = as_known((const char *)(*border & ~SAMPLE_FRAME_BORDER));
            if (*border != (SAMPLE_FRAME_BORDER | (uintptr_t)outer))
                break;
            outer = outer_cframe(walk, known_outer);
            border += 2;
        }
        at = pointer_at(known, shape.previous);
    }
    *frame = at;
    *cframe = outer;
    sample_chain_pass(walk->chain, chain->next_step + (size_t)(step - first));
    return (size_t)(step - first);
}

/* Only 3.11 has marks in frames of functions: shims are of none. */
static size_t walk_fast(struct walk *walk, const char **frame, const char **cframe,
                        const char *seen, size_t most)
{
    if (!walk->chain->next)
        return walk_easy(walk, frame, cframe, seen, most);
    if (the_shape.has_borders && layout->thread_cframe)
        return walk_known(walk, frame, cframe, true, false);
    return layout->frame_is_entry ? walk_known(walk, frame, cframe, false, true)
                                  : walk_known(walk, frame, cframe, false, false);
}

/* One frame of any kind. False when the walk ends here. */
static bool walk_one(struct walk *walk, const char *frame, const char **cframe)
{
    if (is_shim(frame)) {
        sample_chain_step(walk->chain, (struct sample_step){.frame = frame});
        return add_border(walk, frame);
    }
    if (!add_frame(walk, frame))
        return false;
    if (!the_shape.has_borders && (!layout->frame_is_entry || !frame[layout->frame_is_entry]))
        return true;
    bool is_added = add_border(walk, *cframe);
    *cframe = outer_cframe(walk, *cframe);
    return is_added;
}

static void begin(struct walk *walk)
{
    walk->result = (struct sample_frames_result){0};
    sample_chain_begin(walk->chain);
}

/* Whether the chain ends with a generator, which somebody must have called; `cframe`: of the list,
 * what is left. On 3.10 and 3.11 that may be C code, without a frame: then there is no more. */
static bool is_headless(const struct walk *walk, const char *cframe)
{
    const char *frame = sample_chain_outermost(walk->chain);
    bool has_list = layout->thread_cframe && !layout->frame_owner;
    if (!frame || is_shim(frame) || (has_list && !is_on_stack(walk, cframe)))
        return false;
    int flags;
    memcpy(&flags, code_of(frame) + layout->code_flags, sizeof flags);
    return flags & CODE_IS_GENERATOR;
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
            sample_chain_join(walk->chain, frame);
        }
        bool is_behind_careful = steps >= CAREFUL_FRAMES;
        size_t fast =
            is_behind_careful ? walk_fast(walk, &frame, cframe, seen, next_seen - steps) : 0;
        steps += fast;
        if (fast)
            continue;
        if (!walk_one(walk, frame, cframe))
            return walk->result.is_full;
        frame = pointer_at(frame, layout->frame_previous);
        steps++;
    }
    walk->result.is_cut = walk->result.is_headless = is_headless(walk, *cframe);
    return true;
}

/* On 3.10 each frame has a cframe. While a call begins there is one more, the innermost, and while
 * one ends there is one less. */
static void walk_both(struct walk *walk, const char *frame, const char *cframe)
{
    const char *left = cframe;
    uint64_t last;
    if (!walk_from(walk, frame, &left) || !cframe || walk->result.is_cut ||
        !(last = sample_chain_last(walk->chain)))
        return;
    bool is_one_less = !(last & SAMPLE_FRAME_BORDER);
    if (!is_one_less && !is_on_stack(walk, left))
        return;
    begin(walk);
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
static void walk_chain(struct walk *walk, const struct py_thread *thread)
{
    const char *cframe = layout->thread_cframe ? pointer_at(thread, layout->thread_cframe) : NULL;
    if (layout->thread_frame) {
        walk_both(walk, pointer_at(thread, layout->thread_frame), cframe);
        return;
    }
    walk->result.is_cut = true;
    for (int i = 0; i < 2 && cframe && is_readable(walk, cframe); i++) {
        begin(walk);
        const char *next = cframe;
        if (walk_from(walk, pointer_at(cframe, layout->cframe_frame), &next) ||
            walk->result.is_lost || walk->result.is_late)
            return;
        cframe = pointer_at(cframe, layout->cframe_previous);
    }
}

/* The frames of a state that waits beneath another. Nothing of it is half-way. */
static void walk_suspended(struct walk *walk, const struct sample_state *state)
{
    const char *cframe = layout->thread_cframe ? state->frame : NULL, *frame = state->frame;
    if (cframe)
        frame = layout->thread_frame ? pointer_at(state->state, layout->thread_frame)
                                     : pointer_at(cframe, layout->cframe_frame);
    walk_from(walk, frame, &cframe);
}

/* The frames of all states of the thread: nearly always it has one. */
static void walk_states(struct walk *walk, struct sample_states *states)
{
    struct sample_states_found found = sample_states_find(states, &walk->memory, walk->stack);
    const struct sample_frames_result *result = &walk->result;
    if (found.current)
        walk_chain(walk, found.current);
    for (size_t i = 0; i < found.count; i++)
        if (!result->is_cut && !result->is_late && !result->is_lost)
            walk_suspended(walk, &found.suspended[i]);
}

struct sample_frames_result sample_frames_read(struct sample_ring *ring, struct sample_bounds stack,
                                               struct sample_states *states,
                                               struct sample_chain *chain)
{
    struct walk walk = {.ring = ring, .chain = chain, .stack = stack, .last = {{.word = NO_WORD}}};
    begin(&walk);
    if (layout)
        walk_states(&walk, states);
    sample_chain_end(chain);
    return walk.result;
}
