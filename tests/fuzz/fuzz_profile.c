/* Any bytes as a recording from which a profile is made: processes, mappings, unwinding, names. The
 * result holds together: every number is one of a table, and the sums agree.
 *
 * The files that the corpus names are made here: object.so and jit-1.dump have a function each,
 * perf-1.map a line. Nothing else that is needed lies outside. */
#include "formats/elf_image.h"
#include "profile/fold.h"
#include "profile/profile.h"

#include "scratch.h"

#include <elf.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { JIT_AVMA = 0x20000, CODE_BYTES = 64 };

static const uint8_t CODE[CODE_BYTES] = {0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};

static void make_files(void)
{
    static uint8_t bytes[4096];
    struct writer writer;
    writer_init(&writer, bytes, sizeof bytes);
    jitdump_encode_header(&writer, &(struct jitdump_header){
                                       .elf_machine = EM_X86_64, .pid = 1, .timestamp = 1000000});
    struct jitdump_line lines[] = {{.avma = JIT_AVMA, .line = 1, .file = "/a.py"},
                                   {.avma = JIT_AVMA + 8, .line = 2, .file = "/a.py"}};
    jitdump_encode_debug_info(&writer, 1000001, JIT_AVMA, lines, 2);
    jitdump_encode_load(&writer, 1000001,
                        &(struct jitdump_load){.pid = 1,
                                               .tid = 1,
                                               .vma = JIT_AVMA,
                                               .code_avma = JIT_AVMA,
                                               .code_size = CODE_BYTES,
                                               .name = "py::f:/a.py",
                                               .name_length = 11,
                                               .code = CODE});
    REQUIRE(writer_fits(&writer));
    scratch_write("jit-1.dump", bytes, writer.length);

    struct jitdump_index index;
    const char *problem;
    REQUIRE(jitdump_index_init(&index, "dump", bytes, writer.length, &problem) == 0);
    struct elf_image_function function = {.avma = JIT_AVMA, .code = &index.codes.items[0]};
    struct elf_image_source source = {
        .functions = &function, .count = 1, .elf_machine = EM_X86_64, .title = "object"};
    struct elf_image image;
    REQUIRE(elf_image_make(&source, &image) == 0);
    scratch_write("object.so", image.data, image.length);
    elf_image_done(&image);
    jitdump_index_done(&index);
    static const char map[] = "30000 1000 py::g:/b.py\n";
    scratch_write("perf-1.map", map, sizeof map - 1);
}

static void check_stacks(const struct profile *profile)
{
    for (size_t i = 0; i < profile->functions.count; i++)
        REQUIRE(profile->functions.items[i].module < profile->modules.count);
    for (size_t i = 0; i < profile->frames.count; i++)
        REQUIRE(profile->frames.items[i].function < profile->functions.count);
    for (size_t i = 1; i < profile->stacks.count; i++) {
        const struct profile_stack *stack = &profile->stacks.items[i];
        REQUIRE(stack->parent < i && stack->frame < profile->frames.count);
        REQUIRE(stack->depth == profile->stacks.items[stack->parent].depth + 1);
    }
}

static void check_samples(const struct profile *profile)
{
    uint64_t of_events = 0;
    for (size_t i = 0; i < profile->events.count; i++)
        of_events += profile->events.items[i].samples;
    REQUIRE(of_events == profile->samples.count);
    for (size_t i = 0; i < profile->samples.count; i++) {
        const struct profile_sample *sample = &profile->samples.items[i];
        REQUIRE(sample->thread < profile->threads.count);
        REQUIRE(profile->threads.items[sample->thread].process < profile->processes.count);
        REQUIRE(sample->stack < profile->stacks.count && sample->leaf < profile->frames.count);
        REQUIRE(sample->event < profile->events.count);
    }
    const struct profile_losses *losses = &profile->losses;
    REQUIRE(losses->samples == profile->samples.count);
    REQUIRE(losses->complete + losses->truncated + losses->broken + losses->without_stack ==
            losses->samples);
    REQUIRE(losses->unresolved_frames <= losses->frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!scratch_path[0]) {
        scratch_make();
        make_files();
    }
    scratch_write("perf.data", data, size);
    struct profile_options options = profile_options_default();
    options.buildid_dir = options.debug_dir = options.tmp_dir = SCRATCH;
    options.kallsyms = SCRATCH "/kallsyms";
    options.lines = true;
    options.inlines = PROFILE_INLINES_ALL;
    struct profile *profile;
    const char *problem;
    int result = profile_load(SCRATCH "/perf.data", &options, &problem, &profile);
    if (result < 0) {
        REQUIRE(problem && (result == -EBADMSG || result == -ENODATA || result == -ENOTSUP));
        return 0;
    }
    check_stacks(profile);
    check_samples(profile);
    struct fold fold;
    REQUIRE(fold_init(&fold, profile) == 0);
    for (size_t i = 0; i < profile->stacks.count; i++)
        REQUIRE(fold.stack_of[i] < fold.stacks.count);
    fold_done(&fold);
    profile_free(profile);
    return 0;
}
