/* A function is known by where it starts, in which module. Generated code may be replaced by other
 * code at the same address; then the names differ, and the newer function takes the place in the
 * index. An older one that comes again would be entered twice: harmless, and rare. */
#include "profile/functions.h"

#include "base/cleanup.h"
#include "profile/classify.h"
#include "symbol/demangle.h"

#include <string.h>

void functions_init(struct functions *functions, struct profile *profile, bool demangle_names)
{
    *functions = (struct functions){.profile = profile, .demangle = demangle_names};
}

void functions_done(struct functions *functions)
{
    pairmap_done(&functions->by_start);
    pairmap_done(&functions->by_inline);
    pairmap_done(&functions->by_ip);
}

static int push(struct functions *functions, const struct profile_function *function,
                uint32_t *ret_function)
{
    struct profile *profile = functions->profile;
    if (profile->functions.count >= UINT32_MAX - 1 ||
        vector_push(&profile->functions, *function) < 0)
        return -ENOMEM;
    *ret_function = (uint32_t)(profile->functions.count - 1);
    return pairmap_set(&functions->by_start, function->start, function->module, *ret_function);
}

/* The name as people know it. */
static int intern_name(struct functions *functions, const struct symbol *symbol, uint32_t *ret_name)
{
    struct strings *strings = &functions->profile->strings;
    bool may_be_mangled = symbol->name_length > 2 && symbol->name[0] == '_' &&
                          (symbol->name[1] == 'Z' || symbol->name[1] == 'R');
    if (functions->demangle && may_be_mangled) {
        CLEANUP(cleanup_free) char *copy = strndup(symbol->name, symbol->name_length);
        CLEANUP(cleanup_free) char *readable = copy ? demangle(copy) : NULL;
        if (readable)
            return strings_intern(strings, readable, strlen(readable), ret_name);
    }
    return strings_intern(strings, symbol->name, symbol->name_length, ret_name);
}

static int describe_python(struct profile *profile, const struct symbol *symbol,
                           const struct classify_python *python, struct profile_function *function)
{
    function->kind = PROFILE_FUNCTION_PYTHON;
    function->line = symbol->first_line;
    profile->modules.items[function->module].kind = PROFILE_MODULE_PYTHON;
    int error = strings_intern(&profile->strings, python->name, python->name_length,
                               &function->python_name);
    return error < 0 ? error
                     : strings_intern(&profile->strings, python->file, python->file_length,
                                      &function->file);
}

int functions_add(struct functions *functions, uint32_t module, const struct symbol *symbol,
                  uint32_t *ret_function)
{
    struct profile *profile = functions->profile;
    struct profile_function function = {
        .module = module, .start = symbol->start, .size = symbol->size};
    int error = intern_name(functions, symbol, &function.name);
    if (error < 0)
        return error;
    uint32_t known;
    if (pairmap_get(&functions->by_start, symbol->start, module, &known) &&
        profile->functions.items[known].name == function.name) {
        *ret_function = known;
        return 0;
    }
    struct strings_text name = strings_get(&profile->strings, function.name);
    struct classify_python python;
    bool is_kernel = profile->modules.items[module].kind == PROFILE_MODULE_KERNEL;
    function.kind = is_kernel ? PROFILE_FUNCTION_KERNEL : PROFILE_FUNCTION_NATIVE;
    if (!is_kernel && classify_python(name.bytes, name.length, &python))
        error = describe_python(profile, symbol, &python, &function);
    else if (!is_kernel)
        function.role = (uint8_t)classify_function(name.bytes, name.length);
    return error < 0 ? error : push(functions, &function, ret_function);
}

int functions_add_unresolved(struct functions *functions, uint32_t module, uint64_t address,
                             uint32_t *ret_function)
{
    struct profile_function function = {
        .module = module, .start = address, .kind = PROFILE_FUNCTION_UNRESOLVED};
    if (pairmap_get(&functions->by_start, address, module, ret_function) &&
        functions->profile->functions.items[*ret_function].kind == PROFILE_FUNCTION_UNRESOLVED)
        return 0;
    return push(functions, &function, ret_function);
}

int functions_add_inlined(struct functions *functions, uint32_t into, const char *name,
                          uint32_t *ret_function)
{
    struct profile *profile = functions->profile;
    struct profile_function function = profile->functions.items[into];
    struct symbol symbol = {.name = name, .name_length = strlen(name)};
    int error = intern_name(functions, &symbol, &function.name);
    *ret_function = into;
    if (error < 0 || function.name == profile->functions.items[into].name ||
        pairmap_get(&functions->by_inline, function.name, into, ret_function))
        return error;
    struct strings_text text = strings_get(&profile->strings, function.name);
    function.is_inlined = true;
    function.kind = PROFILE_FUNCTION_NATIVE;
    function.role = (uint8_t)classify_function(text.bytes, text.length);
    if (profile->functions.count >= UINT32_MAX - 1 ||
        vector_push(&profile->functions, function) < 0)
        return -ENOMEM;
    *ret_function = (uint32_t)(profile->functions.count - 1);
    return pairmap_set(&functions->by_inline, function.name, into, *ret_function);
}

int functions_add_frames(struct functions *functions, const struct profile_frame *frames,
                         size_t count, uint32_t *ret_frame)
{
    struct profile *profile = functions->profile;
    const struct profile_frame *outer = &frames[count - 1];
    if (pairmap_get(&functions->by_ip, outer->ip_avma, outer->function, ret_frame))
        return 0;
    if (profile->frames.count >= UINT32_MAX - 1 - count ||
        vector_reserve(&profile->frames, profile->frames.count + count) < 0)
        return -ENOMEM;
    *ret_frame = (uint32_t)profile->frames.count;
    for (size_t i = 0; i < count; i++)
        vector_push(&profile->frames, frames[i]);
    return pairmap_set(&functions->by_ip, outer->ip_avma, outer->function, *ret_frame);
}
