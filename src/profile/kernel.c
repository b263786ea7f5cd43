/* perf notes the kernel as a mapping "[kernel.kallsyms]_text" whose file offset is the address of
 * the symbol _text, and each module as a mapping of its file. Names come from kallsyms: of this
 * machine if it still runs the kernel that was recorded (by build-id, where both are known),
 * otherwise from perf's cache. If the machine was started again in the meantime, all addresses
 * have moved by the same number of bytes, which the symbol tells.
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
    *kernel = (struct kernel){.modules = modules, .options = options, .buildid_dir = buildid_dir};
}

void kernel_done(struct kernel *kernel)
{
    regions_done(&kernel->regions);
    kallsyms_done(&kernel->kallsyms);
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
    bool replaced;
    if (error == 0)
        error = regions_add(&kernel->regions, &region, &replaced);
    return error == -ENOMEM ? error : 0;
}

/* The build-id of the kernel that was recorded, in hexadecimal. False when it is not known. */
static bool recorded_build_id(const struct kernel *kernel, char hex[41], uint8_t id[20])
{
    const struct profile *profile = kernel->modules->profile;
    for (size_t i = 0; i < profile->modules.count; i++) {
        const struct profile_module *module = &profile->modules.items[i];
        if (module->build_id_size != 20 ||
            strcmp(profile_text(profile, module->path), kernel_name) != 0)
            continue;
        memcpy(id, module->build_id, 20);
        for (size_t byte = 0; byte < 20; byte++)
            snprintf(hex + byte * 2, 3, "%02x", id[byte]);
        return true;
    }
    return false;
}

static bool runs_here(const uint8_t id[20])
{
    CLEANUP(file_done) struct file notes = {0};
    if (file_read("/sys/kernel/notes", &notes) < 0)
        return true;
    size_t length;
    const uint8_t *own = elf_build_id_in_notes(notes.data, notes.length, &length);
    return !own || (length == 20 && memcmp(own, id, 20) == 0);
}

static void read_symbols(struct kernel *kernel)
{
    char path[PATH_MAX] = "/proc/kallsyms", hex[41];
    uint8_t id[20];
    if (kernel->options->kallsyms)
        snprintf(path, sizeof path, "%s", kernel->options->kallsyms);
    else if (recorded_build_id(kernel, hex, id) && !runs_here(id))
        snprintf(path, sizeof path, "%s/%s/%s/kallsyms",
                 kernel->buildid_dir ? kernel->buildid_dir : "", kernel_name, hex);
    if (kallsyms_read(&kernel->kallsyms, path) < 0)
        kernel->kallsyms = (struct kallsyms){0};
    uint64_t here =
        kernel->reference_name[0] ? kallsyms_address(&kernel->kallsyms, kernel->reference_name) : 0;
    if (here && kernel->reference_avma)
        kernel->moved = kernel->reference_avma - here;
}

bool kernel_find(struct kernel *kernel, uint64_t avma, uint32_t *ret_module,
                 struct symbol *ret_symbol)
{
    if (!kernel->is_tried)
        read_symbols(kernel);
    kernel->is_tried = true;
    const struct region *region = regions_find(&kernel->regions, avma);
    *ret_module = region ? region->module : 0;
    if (!region || !kallsyms_find(&kernel->kallsyms, avma - kernel->moved, ret_symbol))
        return false;
    ret_symbol->start += kernel->moved;
    return true;
}
