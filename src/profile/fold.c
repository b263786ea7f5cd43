/* Whether a frame is hidden depends on what is below it (its callers), and for the frames below the
 * first Python function on whether one follows:
 *
 *     _start, main, Py_RunMain, …     hidden only in stacks that go on to a Python function
 *     Python functions                kept
 *     evaluator, calls                hidden behind a Python function
 *     garbage collection              its outermost function kept, the interpreter's on top hidden
 *     everything else                 kept
 *
 * So each stack has two folded ones: `whole`, as long as no Python function is in it, and `folded`,
 * in which everything is left out that is hidden. Parents come before their children in the table,
 * so one walk makes both. */
#include "profile/fold.h"

#include "profile/pairmap.h"

struct state {
    uint32_t whole; /* PROFILE_NONE behind a Python function */
    uint32_t folded;
    bool has_python;
    bool in_gc;
};

struct folding {
    struct fold *fold;
    const struct profile *profile;
    struct pairmap by_frame; /* (parent, frame) -> folded stack */
    struct state *states;    /* per stack of the profile */
};

static int add_node(struct folding *folding, uint32_t parent, uint32_t frame, uint32_t *ret_stack)
{
    struct fold *fold = folding->fold;
    if (pairmap_get(&folding->by_frame, parent, frame, ret_stack))
        return 0;
    struct profile_stack node = {
        .parent = parent, .frame = frame, .depth = fold->stacks.items[parent].depth + 1};
    if (vector_push(&fold->stacks, node) < 0)
        return -ENOMEM;
    *ret_stack = (uint32_t)(fold->stacks.count - 1);
    return pairmap_set(&folding->by_frame, parent, frame, *ret_stack);
}

static bool is_hidden(const struct folding *folding, const struct profile_function *function,
                      const struct state *parent)
{
    const struct profile_module *module = &folding->profile->modules.items[function->module];
    bool is_interpreter = module->kind == PROFILE_MODULE_INTERPRETER;
    switch ((enum profile_function_role)function->role) {
    case PROFILE_ROLE_EVALUATOR:
    case PROFILE_ROLE_CALL:
        return is_interpreter;
    case PROFILE_ROLE_START:
        return is_interpreter || module->kind == PROFILE_MODULE_LIBC;
    case PROFILE_ROLE_GC:
        return is_interpreter && parent->in_gc;
    case PROFILE_ROLE_NONE:
        break;
    }
    /* Stripped interpreters have no name for most of their evaluator. */
    bool is_unknown =
        function->kind == PROFILE_FUNCTION_UNRESOLVED && (is_interpreter || !parent->has_python);
    return (is_interpreter && parent->in_gc) || is_unknown;
}

static int fold_stack(struct folding *folding, uint32_t stack)
{
    const struct profile_stack *from = &folding->profile->stacks.items[stack];
    const struct profile_function *function = profile_function_of(folding->profile, stack);
    const struct state *parent = &folding->states[from->parent];
    bool is_python = function->kind == PROFILE_FUNCTION_PYTHON;
    struct state state = {.whole = PROFILE_NONE, .folded = parent->folded};
    state.has_python = parent->has_python || is_python;
    state.in_gc = !is_python && (parent->in_gc || function->role == PROFILE_ROLE_GC);

    int error = 0;
    if (is_python || !is_hidden(folding, function, parent))
        error = add_node(folding, parent->folded, from->frame, &state.folded);
    if (error == 0 && !state.has_python)
        error = add_node(folding, parent->whole, from->frame, &state.whole);
    folding->states[stack] = state;
    folding->fold->stack_of[stack] = state.has_python ? state.folded : state.whole;
    return error;
}

int fold_init(struct fold *fold, const struct profile *profile)
{
    size_t count = profile->stacks.count;
    *fold = (struct fold){.stack_of = calloc(count + 1, sizeof *fold->stack_of)};
    struct folding folding = {
        .fold = fold, .profile = profile, .states = calloc(count + 1, sizeof(struct state))};
    struct profile_stack root = {.parent = PROFILE_NONE, .frame = PROFILE_NONE};
    int error = fold->stack_of && folding.states ? vector_push(&fold->stacks, root) : -ENOMEM;
    for (uint32_t stack = 1; error == 0 && stack < count; stack++)
        error = fold_stack(&folding, stack);
    pairmap_done(&folding.by_frame);
    free(folding.states);
    if (error < 0)
        fold_done(fold);
    return error;
}

void fold_done(struct fold *fold)
{
    vector_done(&fold->stacks);
    free(fold->stack_of);
    fold->stack_of = NULL;
}
