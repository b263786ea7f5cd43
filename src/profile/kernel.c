/* perf notes the kernel as a mapping "[kernel.kallsyms]_text" whose file offset is the address of
 * the symbol _text, and each module as a mapping of its file. Names come from one of two lists:
 *
 *     address in     the recorded kernel runs here    it does not
 *     the kernel     perf's copy, /proc/kallsyms      perf's copy
 *     a module       /proc/kallsyms                   perf's copy
 *
 * A copy is made by `perf record` for each kernel, by build-id. The file in /proc is written anew
 * by the kernel for each reader, which takes longer than all the rest of a small report. If the
 * machine was started again in between, the kernel has moved by a number of bytes that the symbol
 * tells; modules have moved in other ways, so for them the list must be of the same start.
 *
 * Where this user may not see the kernel's addresses all of them stay without names, as with perf.
 */
#include "profile/kernel.h"

#include "base/cleanup.h"
#include "elf/elf_file.h"

#include <limits.h>
#include <string.h>

static const char kernel_name[] = "[kernel.kallsyms]";

void kernel_init(struct kernel *kernel, struct modules *modules,
                 const struct profile_options *options, const char *buildid_dir)
{
    *kernel = (struct kernel){
        .modules = modules, .options = options, .buildid_dir = buildid_dir, .core = PROFILE_NONE};
}

void kernel_done(struct kernel *kernel)
{
    regions_done(&kernel->regions);
    kallsyms_done(&kernel->live.kallsyms);
    kallsyms_done(&kernel->copy.kallsyms);
}

/* "/lib/modules/6.1.0/kernel/net/nf_nat.ko.xz" and "[nf_nat]" are both shown as "[nf_nat]". */
static void module_name(const char *path, char *name, size_t name_bytes)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    size_t length = strcspn(base, ".");
    if (base[0] == '[')
        snprintf(name, name_bytes, "%s", base);
    else
        snprintf(name, name_bytes, "[%.*s]", (int)(length < 100 ? length : 100), base);
    for (char *c = name; *c; c++)
        if (*c == '-')
            *c = '_';
}

int kernel_map(struct kernel *kernel, const struct perfdata_record *record)
{
    const struct perfdata_mmap *mmap = &record->mmap;
    bool is_core = strncmp(mmap->path, kernel_name, sizeof kernel_name - 1) == 0;
    char name[128];
    struct modules_wanted wanted = {.path = is_core ? kernel_name : mmap->path,
                                    .name = is_core ? kernel_name : name,
                                    .build_id = mmap->build_id_size ? mmap->build_id : NULL,
                                    .build_id_size = mmap->build_id_size,
                                    .kind = PROFILE_MODULE_KERNEL};
    struct region region = {.start_avma = mmap->start_avma,
                            .end_avma = mmap->start_avma + mmap->length,
                            .is_generated = true};
    if (is_core) {
        kernel->reference_avma = mmap->fileoff;
        snprintf(kernel->reference_name, sizeof kernel->reference_name, "%s",
                 mmap->path + sizeof kernel_name - 1);
    } else {
        module_name(mmap->path, name, sizeof name);
    }
    int error = modules_find(kernel->modules, &wanted, &region.module);
    if (error == 0 && is_core)
        kernel->core = region.module;
    bool replaced;
    if (error == 0)
        error = regions_add(&kernel->regions, &region, &replaced);
    return error == -ENOMEM ? error : 0;
}

static bool is_running(const uint8_t *build_id, size_t size)
{
    CLEANUP(file_done) struct file notes = {0};
    if (file_read("/sys/kernel/notes", &notes) < 0)
        return true;
    size_t length;
    const uint8_t *own = elf_build_id_in_notes(notes.data, notes.length, &length);
    return !own || (length == size && memcmp(own, build_id, size) == 0);
}

/* What the recording says about its kernel. */
static void know_kernel(struct kernel *kernel)
{
    const struct profile *profile = kernel->modules->profile;
    kernel->is_known_kernel = kernel->runs_here = true;
    for (size_t i = 0; i < profile->modules.count; i++) {
        const struct profile_module *module = &profile->modules.items[i];
        size_t size = module->build_id_size;
        if (!size || size * 2 >= sizeof kernel->build_id ||
            strcmp(profile_text(profile, module->path), kernel_name) != 0)
            continue;
        for (size_t byte = 0; byte < size; byte++)
            snprintf(kernel->build_id + byte * 2, 3, "%02x", module->build_id[byte]);
        kernel->has_build_id = true;
        kernel->runs_here = is_running(module->build_id, size);
        return;
    }
}

/* Whether the list is of use. */
static bool read_list(struct kernel *kernel, struct kernel_symbols *symbols, const char *path)
{
    struct kallsyms *kallsyms = &symbols->kallsyms;
    if (!symbols->is_tried) {
        symbols->is_tried = true;
        if (kallsyms_read(kallsyms, path) < 0)
            *kallsyms = (struct kallsyms){0};
        uint64_t here =
            kernel->reference_name[0] ? kallsyms_address(kallsyms, kernel->reference_name) : 0;
        if (here && kernel->reference_avma)
            symbols->moved = kernel->reference_avma - here;
    }
    return kallsyms->entries.count > 0;
}

static bool read_copy(struct kernel *kernel)
{
    char path[PATH_MAX];
    if (!kernel->has_build_id || !kernel->buildid_dir || !kernel->reference_avma)
        return false;
    snprintf(path, sizeof path, "%s/%s/%s/kallsyms", kernel->buildid_dir, kernel_name,
             kernel->build_id);
    return read_list(kernel, &kernel->copy, path);
}

/* The list to look into for a module's symbols, as the table at the top says. */
static const struct kernel_symbols *choose(struct kernel *kernel, uint32_t module)
{
    const char *file = kernel->options->kallsyms;
    if (!kernel->is_known_kernel)
        know_kernel(kernel);
    bool prefers_copy = !file && (module == kernel->core || !kernel->runs_here);
    const struct kernel_symbols *chosen = &kernel->copy;
    if (!prefers_copy || (!read_copy(kernel) && kernel->runs_here)) {
        chosen = &kernel->live;
        read_list(kernel, &kernel->live, file ? file : "/proc/kallsyms");
    }
    kernel->is_hidden |= chosen->kallsyms.is_hidden;
    return chosen;
}

bool kernel_find(struct kernel *kernel, uint64_t avma, uint32_t *ret_module,
                 struct symbol *ret_symbol)
{
    const struct region *region = regions_find(&kernel->regions, avma);
    *ret_module = region ? region->module : 0;
    const struct kernel_symbols *symbols = choose(kernel, region ? region->module : kernel->core);
    if (!region || !kallsyms_find(&symbols->kallsyms, avma - symbols->moved, ret_symbol))
        return false;
    ret_symbol->start += symbols->moved;
    return true;
}
