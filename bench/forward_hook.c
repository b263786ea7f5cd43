/* The cheapest possible eval-frame hook: it forwards to CPython's own evaluator and does nothing
 * else. What it costs is what any hook costs; ours is measured against it. Loaded with ctypes:
 *
 *     ctypes.PyDLL("forward_hook.so").install()
 *
 * install_over() forwards to the hook that is there already, as well-behaved ones do. */
#include <dlfcn.h>

typedef void *evaluator(void *thread_state, void *frame, int throw_flag);

int install(void);
int install_over(void);

static evaluator *evaluate;

static void *forward(void *thread_state, void *frame, int throw_flag)
{
    return evaluate(thread_state, frame, throw_flag);
}

static void *api(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static int install_before(evaluator *next)
{
    void *(*interpreter)(void) = (void *(*)(void))api("PyInterpreterState_Get");
    void (*set_hook)(void *, evaluator *) =
        (void (*)(void *, evaluator *))api("_PyInterpreterState_SetEvalFrameFunc");
    if (!interpreter || !set_hook || !next)
        return -1;
    evaluate = next;
    set_hook(interpreter(), forward);
    return 0;
}

int install(void)
{
    return install_before((evaluator *)api("_PyEval_EvalFrameDefault"));
}

int install_over(void)
{
    void *(*interpreter)(void) = (void *(*)(void))api("PyInterpreterState_Get");
    evaluator *(*get_hook)(void *) =
        (evaluator * (*)(void *)) api("_PyInterpreterState_GetEvalFrameFunc");
    return interpreter && get_hook ? install_before(get_hook(interpreter())) : -1;
}
