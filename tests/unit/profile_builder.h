/* Profiles made by hand, for tests of what is made from profiles:
 *
 *     struct profile *p = build_profile();
 *     uint32_t libc = build_module(p, "libc.so.6", PROFILE_MODULE_LIBC);
 *     uint32_t main_ = build_frame(p, libc, "main", 0x100);
 *     build_sample(p, "app", 1, 10, (uint32_t[]){main_, read_}, 2);       outermost first
 *     free_profile(p);
 */
#ifndef PITVIPER_TESTS_PROFILE_BUILDER_H
#define PITVIPER_TESTS_PROFILE_BUILDER_H

#include "profile/profile.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline uint32_t build_string(struct profile *profile, const char *text)
{
    uint32_t id;
    int result = strings_intern(&profile->strings, text, strlen(text), &id);
    assert(result == 0);
    (void)result;
    return id;
}

static inline uint32_t build_module(struct profile *profile, const char *name,
                                    enum profile_module_kind kind)
{
    struct profile_module module = {.path = build_string(profile, name),
                                    .name = build_string(profile, name),
                                    .kind = (uint8_t)kind};
    int result = vector_push(&profile->modules, module);
    assert(result == 0);
    (void)result;
    return (uint32_t)profile->modules.count - 1;
}

/* A profile with one event that has call chains. */
static inline struct profile *build_profile(void)
{
    struct profile *profile = calloc(1, sizeof *profile);
    assert(profile);
    int result = strings_init(&profile->strings);
    struct profile_event event = {.name = build_string(profile, "cpu-clock"),
                                  .has_callchains = true};
    struct profile_stack root = {.parent = PROFILE_NONE, .frame = PROFILE_NONE};
    result |= vector_push(&profile->events, event);
    result |= vector_push(&profile->stacks, root);
    assert(result == 0);
    (void)result;
    build_module(profile, "[unknown]", PROFILE_MODULE_OTHER);
    return profile;
}

static inline void free_profile(struct profile *profile)
{
    strings_done(&profile->strings);
    vector_done(&profile->events);
    vector_done(&profile->modules);
    vector_done(&profile->functions);
    vector_done(&profile->frames);
    vector_done(&profile->stacks);
    vector_done(&profile->processes);
    vector_done(&profile->threads);
    vector_done(&profile->samples);
    free(profile);
}

/* A function and a frame in it; the name NULL: unresolved. Python functions are told by their name,
 * "py::NAME:FILE". */
static inline uint32_t build_frame(struct profile *profile, uint32_t module, const char *name,
                                   uint64_t start)
{
    bool is_kernel = profile->modules.items[module].kind == PROFILE_MODULE_KERNEL;
    struct profile_function function = {.module = module, .start = start};
    if (name) {
        function.name = build_string(profile, name);
        function.size = 16;
        function.kind = is_kernel ? PROFILE_FUNCTION_KERNEL : PROFILE_FUNCTION_NATIVE;
        if (strncmp(name, "py::", 4) == 0) {
            char qualified[128];
            const char *colon = strchr(name + 4, ':');
            snprintf(qualified, sizeof qualified, "%.*s", (int)(colon - name - 4), name + 4);
            function.kind = PROFILE_FUNCTION_PYTHON;
            function.python_name = build_string(profile, qualified);
            function.file = build_string(profile, colon + 1);
        }
    }
    struct profile_frame frame = {
        .function = (uint32_t)profile->functions.count, .ip_avma = start, .is_kernel = is_kernel};
    int result = vector_push(&profile->functions, function);
    result |= vector_push(&profile->frames, frame);
    assert(result == 0);
    (void)result;
    return (uint32_t)profile->frames.count - 1;
}

static inline uint32_t build_thread(struct profile *profile, uint32_t comm, int32_t tid)
{
    for (uint32_t i = 0; i < profile->threads.count; i++)
        if (profile->threads.items[i].tid == tid)
            return i;
    struct profile_process process = {.pid = tid, .parent = PROFILE_NONE, .comm = comm};
    struct profile_thread thread = {
        .tid = tid, .process = (uint32_t)profile->processes.count, .comm = comm};
    int result = vector_push(&profile->processes, process);
    result |= vector_push(&profile->threads, thread);
    assert(result == 0);
    (void)result;
    return (uint32_t)profile->threads.count - 1;
}

static inline uint32_t build_stack(struct profile *profile, const uint32_t *frames, size_t count)
{
    uint32_t stack = PROFILE_ROOT;
    for (size_t i = 0; i < count; i++) {
        uint32_t next = stack + 1;
        while (next < profile->stacks.count && !(profile->stacks.items[next].parent == stack &&
                                                 profile->stacks.items[next].frame == frames[i]))
            next++;
        if (next == profile->stacks.count) {
            struct profile_stack entry = {
                .parent = stack, .frame = frames[i], .depth = (uint32_t)i + 1};
            int result = vector_push(&profile->stacks, entry);
            assert(result == 0);
            (void)result;
        }
        stack = next;
    }
    return stack;
}

/* A sample of the last frame, called by those before it. */
static inline void build_sample(struct profile *profile, const char *comm, int32_t tid,
                                uint64_t period, const uint32_t *frames, size_t count)
{
    struct profile_sample sample = {
        .time_ns = profile->samples.count + 1,
        .period = period,
        .comm = build_string(profile, comm),
        .stack = build_stack(profile, frames, count),
        .leaf = frames[count - 1],
        .cpu = UINT32_MAX,
        .cpumode = profile->frames.items[frames[count - 1]].is_kernel ? 'k' : '.',
    };
    sample.thread = build_thread(profile, sample.comm, tid);
    int result = vector_push(&profile->samples, sample);
    assert(result == 0);
    (void)result;
    profile->events.items[0].samples++;
    profile->events.items[0].periods += period;
    profile->losses.samples++;
    profile->losses.complete++;
}

#endif
