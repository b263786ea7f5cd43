#include "export/names.h"

#include "base/hashtable.h"

#include <stdio.h>
#include <string.h>

enum export_place export_place_of(const struct profile *profile,
                                  const struct profile_function *function)
{
    const struct profile_module *module = &profile->modules.items[function->module];
    if (function->kind == PROFILE_FUNCTION_PYTHON)
        return EXPORT_PLACE_PYTHON;
    switch ((enum profile_module_kind)module->kind) {
    case PROFILE_MODULE_INTERPRETER:
        return function->role == PROFILE_ROLE_GC ? EXPORT_PLACE_GC : EXPORT_PLACE_INTERPRETER;
    case PROFILE_MODULE_EXTENSION:
        return EXPORT_PLACE_EXTENSION;
    case PROFILE_MODULE_LIBC:
        return EXPORT_PLACE_LIBC;
    case PROFILE_MODULE_KERNEL:
        return EXPORT_PLACE_KERNEL;
    default:
        return function->kind == PROFILE_FUNCTION_UNRESOLVED && function->module == 0
                   ? EXPORT_PLACE_UNKNOWN
                   : EXPORT_PLACE_LIBRARY;
    }
}

const char *export_place_label(enum export_place place)
{
    static const char *const labels[EXPORT_PLACES] = {
        [EXPORT_PLACE_PYTHON] = "Python",           [EXPORT_PLACE_EXTENSION] = "C extension",
        [EXPORT_PLACE_INTERPRETER] = "interpreter", [EXPORT_PLACE_LIBC] = "libc",
        [EXPORT_PLACE_KERNEL] = "kernel",           [EXPORT_PLACE_GC] = "GC",
        [EXPORT_PLACE_LIBRARY] = "library",         [EXPORT_PLACE_UNKNOWN] = "unknown"};
    return labels[place];
}

/* Python functions are told apart by their name, which has the file in it; others by name and
 * module; nameless ones by module. Strings are interned, so numbers say whether texts are equal. */
static uint64_t key_of(const struct profile_function *function)
{
    bool is_python = function->kind == PROFILE_FUNCTION_PYTHON;
    return hash_u64((uint64_t)function->name << 32 | (is_python ? UINT32_MAX : function->module));
}

/* "[libfoo.so]"; modules that have brackets already stay as they are: "[unknown]", "[vdso]". */
static int name_of_module(struct names *names, struct strings_text module,
                          struct strings_text *ret_text)
{
    if (module.length && module.bytes[0] == '[') {
        *ret_text = module;
        return 0;
    }
    char *text = arena_alloc(&names->arena, module.length + 3);
    if (!text)
        return -ENOMEM;
    text[0] = '[';
    memcpy(text + 1, module.bytes, module.length);
    text[module.length + 1] = ']';
    *ret_text = (struct strings_text){text, module.length + 2};
    return 0;
}

static int add(struct names *names, const struct profile *profile, uint32_t number)
{
    const struct profile_function *function = &profile->functions.items[number];
    struct export_name new = {.symbol = strings_get(&profile->strings, function->name),
                              .file = strings_get(&profile->strings, function->file),
                              .line = function->line,
                              .function = number,
                              .module = function->module,
                              .place = (uint8_t)export_place_of(profile, function),
                              .is_python = function->kind == PROFILE_FUNCTION_PYTHON};
    if (!new.symbol.length &&
        name_of_module(
            names, strings_get(&profile->strings, profile->modules.items[function->module].name),
            &new.symbol) < 0)
        return -ENOMEM;
    new.name = new.is_python ? strings_get(&profile->strings, function->python_name) : new.symbol;
    return vector_push(&names->items, new);
}

static int merge(struct names *names, const struct profile *profile)
{
    struct hashtable known = {0};
    int result = 0;
    for (uint32_t i = 0; i < profile->functions.count && result == 0; i++) {
        uint64_t key = key_of(&profile->functions.items[i]), number;
        if (!hashtable_get(&known, key, &number)) {
            number = names->items.count;
            result = add(names, profile, i);
            if (result == 0)
                result = hashtable_set(&known, key, number);
        }
        names->of_function[i] = (uint32_t)number;
    }
    hashtable_done(&known);
    return result;
}

int names_init(struct names *names, const struct profile *profile)
{
    *names = (struct names){.of_function =
                                calloc(profile->functions.count + 1, sizeof *names->of_function)};
    int result = names->of_function ? merge(names, profile) : -ENOMEM;
    if (result < 0)
        names_done(names);
    return result;
}

void names_done(struct names *names)
{
    vector_done(&names->items);
    free(names->of_function);
    arena_done(&names->arena);
    *names = (struct names){0};
}
