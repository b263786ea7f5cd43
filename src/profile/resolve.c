/* Where the name of an address comes from:
 *
 *     kernel                                 kallsyms
 *     code that a jitdump has there, then    the dump; unless a file was mapped over it later
 *     a mapped file                          its symbol table
 *     memory without a file                  the process's perf map
 *     nothing is mapped there                no name: "[unknown]"
 *
 * Addresses are counted as perf does (struct profile_function.start): from the start of the file,
 * or as they are where there is none. */
#include "profile/resolve.h"

#include <string.h>

void resolver_done(struct resolver *resolver)
{
    pairmap_done(&resolver->known);
}

const struct jitdump_placement *resolve_generated(const struct task *task,
                                                  const struct region *region,
                                                  const struct resolve_place *place,
                                                  struct jit_dump **ret_dump)
{
    for (size_t i = task->dumps.count; i-- > 0;) {
        struct jit_dump *dump = task->dumps.items[i];
        const struct jitdump_placement *found = jit_dump_find(dump, place->avma, place->time_ns);
        bool is_hidden = found && region && !region->is_generated &&
                         (dump->clock == JIT_CLOCK_UNKNOWN ||
                          region->time_ns > found->timestamp + dump->clock_offset);
        if (found && !is_hidden) {
            *ret_dump = dump;
            return found;
        }
    }
    return NULL;
}

/* What was found out about an address. */
struct answer {
    uint32_t module;
    uint64_t address; /* as perf counts */
    bool has_symbol;
    struct symbol symbol;
    struct native *native; /* the file of the address; NULL: it is in none */
};

/* Of functions that are inlined into each other more are not shown. */
enum { MOST_PLACES = 32 };

static uint32_t offset_of(const struct answer *answer)
{
    uint64_t offset = answer->address - answer->symbol.start;
    return offset < UINT32_MAX ? (uint32_t)offset : UINT32_MAX;
}

/* Asks a perf map: that of the region (the parent's, for memory from before a fork), then that of
 * the process. */
static bool ask_maps(struct resolver *resolver, const struct resolve_place *place,
                     uint32_t region_module, struct symbol *symbol)
{
    uint32_t own = place->task->map_module;
    const char *dir = resolver->options->tmp_dir;
    struct jit_map *map = modules_map(resolver->modules, region_module, dir);
    bool found = map && jit_map_find(map, place->avma, symbol);
    if (!found && own != PROFILE_NONE && own != region_module) {
        map = modules_map(resolver->modules, own, dir);
        found = map && jit_map_find(map, place->avma, symbol);
    }
    resolver->profile->processes.items[place->task->process].has_perf_map |= found;
    return found;
}

static void ask_region(struct resolver *resolver, const struct resolve_place *place,
                       const struct region *region, struct answer *answer)
{
    answer->module = region->module;
    if (region->is_generated) {
        answer->address = place->avma;
        answer->has_symbol = ask_maps(resolver, place, region->module, &answer->symbol);
        resolver->is_momentary |= !answer->has_symbol && place->task->dumps.count;
        return;
    }
    answer->address = place->avma - region->start_avma + region->fileoff;
    int32_t pid = resolver->profile->processes.items[place->task->process].pid;
    struct native *native = modules_native(resolver->modules, region->module, pid);
    answer->native = native;
    if (native)
        answer->has_symbol = native_find(native, answer->address, &answer->symbol);
    else if (place->task->map_module != PROFILE_NONE)
        answer->has_symbol = ask_maps(resolver, place, place->task->map_module, &answer->symbol);
}

static void ask(struct resolver *resolver, const struct resolve_place *place, struct answer *answer)
{
    *answer = (struct answer){.address = place->avma};
    if (place->is_kernel) {
        answer->has_symbol =
            kernel_find(resolver->kernel, place->avma, &answer->module, &answer->symbol);
        resolver->profile->losses.kernel_hidden += resolver->kernel->is_hidden;
        return;
    }
    const struct region *region = regions_find(place->task->regions, place->avma);
    struct jit_dump *dump;
    const struct jitdump_placement *code = resolve_generated(place->task, region, place, &dump);
    if (code) {
        answer->symbol = jit_dump_symbol(dump, code, place->avma);
        answer->address = answer->symbol.start + (place->avma - code->avma);
        answer->has_symbol = true;
        resolver->is_momentary |= dump->index.ranges.overlap_count > 0;
        resolver->profile->processes.items[place->task->process].has_jitdump = true;
        answer->module = dump->module;
    } else if (region) {
        ask_region(resolver, place, region, answer);
    }
}

static int set_line(struct resolver *resolver, const char *file, uint32_t line,
                    struct profile_frame *frame)
{
    if (!file || !line)
        return 0;
    frame->line = line;
    return strings_intern(&resolver->profile->strings, file, strlen(file), &frame->file);
}

/* Whether it is a Python function of a recording that has lines: code of an image that was made for
 * such functions. */
static bool is_in_python_image(const struct answer *answer)
{
    return answer->native && answer->has_symbol && answer->symbol.name_length > 4 &&
           memcmp(answer->symbol.name, "py::", 4) == 0;
}

static bool wants_lines(const struct resolver *resolver, const struct answer *answer)
{
    return resolver->options->lines ||
           (resolver->options->python_lines && is_in_python_image(answer));
}

/* The line of a function's definition is the first of its image. */
static void set_first_line(struct resolver *resolver, const struct answer *answer,
                           uint32_t function)
{
    struct debug_place place;
    uint32_t *line = &resolver->profile->functions.items[function].line;
    if (!*line && native_places(answer->native, answer->symbol.start, &place, 1) == 1)
        *line = place.line;
}

/* Makes the frames of a place, as debug information tells: inlined ones, then `frame` itself (see
 * struct profile_frame.is_call). */
static int add_places(struct resolver *resolver, const struct answer *answer,
                      struct profile_frame frame, uint32_t *ret_frame)
{
    struct debug_place places[MOST_PLACES];
    struct profile_frame frames[MOST_PLACES + 1];
    bool lines = wants_lines(resolver, answer);
    size_t count = native_places(answer->native, answer->address, places, MOST_PLACES);
    if (count == 0)
        return functions_add_frames(resolver->functions, &frame, 1, ret_frame);
    if (!resolver->inlines)
        count = 1; /* with the line of the address */
    int error = 0;
    for (size_t i = 0; error == 0 && i < count; i++) {
        frames[i] = frame;
        frames[i].is_inlined = i + 1 < count;
        if (frames[i].is_inlined)
            error = functions_add_inlined(resolver->functions, frame.function, places[i].function,
                                          &frames[i].function);
        if (error == 0 && lines)
            error = set_line(resolver, places[i].file, places[i].line, &frames[i]);
    }
    if (error == 0 && lines && count > 1) {
        frames[count - 1].is_call = true;
        frames[count] = frame;
        error = set_line(resolver, places[0].file, places[0].line, &frames[count++]);
    }
    return error < 0 ? error : functions_add_frames(resolver->functions, frames, count, ret_frame);
}

static int add_frame(struct resolver *resolver, const struct resolve_place *place,
                     const struct answer *answer, uint32_t *ret_frame)
{
    struct profile_frame frame = {.ip_avma = place->avma, .is_kernel = place->is_kernel};
    int error = answer->has_symbol ? functions_add(resolver->functions, answer->module,
                                                   &answer->symbol, &frame.function)
                                   : functions_add_unresolved(resolver->functions, answer->module,
                                                              answer->address, &frame.function);
    if (error == 0 && answer->has_symbol) {
        frame.offset = offset_of(answer);
        error = set_line(resolver, answer->symbol.file, answer->symbol.line, &frame);
    }
    if (error < 0)
        return error;
    if (resolver->options->python_lines && is_in_python_image(answer))
        set_first_line(resolver, answer, frame.function);
    if (answer->native && answer->has_symbol &&
        (resolver->inlines || wants_lines(resolver, answer)))
        return add_places(resolver, answer, frame, ret_frame);
    return functions_add_frames(resolver->functions, &frame, 1, ret_frame);
}

int resolve(struct resolver *resolver, const struct resolve_place *place, uint32_t *ret_frame)
{
    uint32_t space = place->is_kernel ? RESOLVE_KERNEL : place->task->space;
    if (pairmap_get(&resolver->known, place->avma, space, ret_frame))
        return 0;
    bool was_momentary = resolver->is_momentary;
    resolver->is_momentary = false;
    struct answer answer;
    ask(resolver, place, &answer);
    int error = add_frame(resolver, place, &answer, ret_frame);
    if (error == 0 && !resolver->is_momentary)
        error = pairmap_set(&resolver->known, place->avma, space, *ret_frame);
    resolver->is_momentary |= was_momentary;
    return error;
}
