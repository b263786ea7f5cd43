/* The cheapest possible eval-frame hook: it forwards to CPython's own evaluator and does nothing
 * else. What it costs is what any hook costs; ours is measured against it. Loaded with ctypes:
 *
 *     ctypes.PyDLL("forward_hook.so").install() */
#include <dlfcn.h>

typedef void *evaluator(void *thread_state, void *frame, int throw_flag);

int install(void);

static evaluator *evaluate;

static void *forward(void *thread_state, void *frame, int throw_flag)
{
    return evaluate(thread_state, frame, throw_flag);
}

int install(void)
{
    void *(*interpreter)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyInterpreterState_Get");
    void (*set_hook)(void *, evaluator *) =
        (void (*)(void *, evaluator *))dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc");
    evaluate = (evaluator *)dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    if (!interpreter || !set_hook || !evaluate)
        return -1;
    set_hook(interpreter(), forward);
    return 0;
}
