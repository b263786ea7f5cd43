/* perf tells modules apart by path and build-id; so does this. Most recordings have no build-id in
 * their mappings, but a table of (path, build-id) for the files that samples were in. Such a note
 * is kept as an entry of the same hash table, and becomes a module when the path is mapped. */
#include "profile/modules.h"

#include "base/cleanup.h"
#include "profile/classify.h"

#include <inttypes.h>
#include <string.h>

int modules_init(struct modules *modules, struct profile *profile,
                 const struct elf_debug_search *search)
{
    *modules = (struct modules){.profile = profile, .search = search};
    uint32_t unknown;
    return modules_find(modules, &(struct modules_wanted){.path = "[unknown]"}, &unknown);
}

void modules_done(struct modules *modules)
{
    for (size_t i = 0; i < modules->files.count; i++) {
        native_close(modules->files.items[i].native);
        if (modules->files.items[i].map)
            jit_map_done(modules->files.items[i].map);
        free(modules->files.items[i].map);
    }
    vector_done(&modules->files);
    hashtable_done(&modules->by_path);
    perfdata_images_done(&modules->images);
}

/* How perf shows a path: the base name; the names of perf maps and kernel modules are special. */
static int short_name(struct modules *modules, const char *path, uint32_t *ret_name)
{
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    char text[64];
    int pid;
    if (sscanf(path, "/tmp/perf-%9d.map", &pid) == 1) {
        snprintf(text, sizeof text, "[JIT] tid %d", pid);
        base = text;
    }
    return strings_intern(&modules->profile->strings, base, strlen(base), ret_name);
}

static int add(struct modules *modules, const struct modules_wanted *wanted, uint32_t path,
               uint32_t *ret_module)
{
    struct profile *profile = modules->profile;
    struct profile_module module = {.path = path, .kind = (uint8_t)wanted->kind};
    if (module.kind == PROFILE_MODULE_OTHER)
        module.kind = (uint8_t)classify_module(wanted->path);
    if (wanted->build_id) {
        module.build_id_size = (uint8_t)wanted->build_id_size;
        memcpy(module.build_id, wanted->build_id, wanted->build_id_size);
    }
    int error = wanted->name ? strings_intern(&profile->strings, wanted->name, strlen(wanted->name),
                                              &module.name)
                             : short_name(modules, wanted->path, &module.name);
    if (error < 0 || profile->modules.count >= UINT32_MAX - 1 ||
        vector_reserve(&modules->files, modules->files.count + 1) < 0 ||
        vector_push(&profile->modules, module) < 0)
        return -ENOMEM;
    vector_push(&modules->files, (struct modules_file){0});
    *ret_module = (uint32_t)(profile->modules.count - 1);
    return hashtable_add(&modules->by_path, hash_u64(path), *ret_module);
}

int modules_find(struct modules *modules, const struct modules_wanted *wanted, uint32_t *ret_module)
{
    uint32_t path;
    int error =
        strings_intern(&modules->profile->strings, wanted->path, strlen(wanted->path), &path);
    if (error < 0)
        return error;
    struct modules_wanted cut = *wanted;
    if (cut.build_id_size > sizeof((struct profile_module *)0)->build_id)
        cut.build_id_size = sizeof((struct profile_module *)0)->build_id;
    struct hashtable_probe probe = hashtable_probe(&modules->by_path, hash_u64(path));
    uint64_t number;
    while (hashtable_next(&probe, &number)) {
        const struct profile_module *module = &modules->profile->modules.items[number];
        if (!cut.build_id || (module->build_id_size == cut.build_id_size &&
                              memcmp(module->build_id, cut.build_id, cut.build_id_size) == 0)) {
            *ret_module = (uint32_t)number;
            return 0;
        }
    }
    return add(modules, &cut, path, ret_module);
}

int modules_note_build_id(struct modules *modules, const struct perfdata_build_id *build_id)
{
    uint32_t module;
    bool is_kernel = (build_id->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    return modules_find(
        modules,
        &(struct modules_wanted){.path = build_id->path,
                                 .build_id = build_id->id,
                                 .build_id_size = build_id->id_length,
                                 .kind = is_kernel ? PROFILE_MODULE_KERNEL : PROFILE_MODULE_OTHER},
        &module);
}

int modules_take_images(struct modules *modules, const void *private_data, size_t length)
{
    perfdata_images_done(&modules->images);
    int error = perfdata_images_open(&modules->images, private_data, length);
    return error == -ENOMEM ? error : 0;
}

/* The module's image in the recording; NULL when there is none. */
static struct native *open_image(struct modules *modules, const struct profile_module *module)
{
    const char *path = profile_text(modules->profile, module->path);
    const struct perfdata_image *image =
        perfdata_images_find(&modules->images, path, module->build_id, module->build_id_size);
    struct native *native;
    uint8_t *data;
    if (!image || perfdata_image_unpack(image, &data) < 0 ||
        native_open_memory(modules->search, path, data, image->length, &native) < 0)
        return NULL;
    return native;
}

struct native *modules_native(struct modules *modules, uint32_t number, int32_t pid)
{
    struct modules_file *file = &modules->files.items[number];
    if (file->is_tried)
        return file->native;
    file->is_tried = true;
    struct profile_module *module = &modules->profile->modules.items[number];
    char root[32];
    snprintf(root, sizeof root, "/proc/%" PRId32 "/root", pid);
    struct native_wanted wanted = {.path = profile_text(modules->profile, module->path),
                                   .build_id = module->build_id,
                                   .build_id_size = module->build_id_size,
                                   .root = pid > 0 ? root : NULL};
    file->native = open_image(modules, module);
    if (!file->native && native_open(modules->search, &wanted, &file->native) < 0)
        file->native = NULL;
    module->has_symbols = file->native && native_has_symbols(file->native);
    return file->native;
}

int modules_find_map(struct modules *modules, int32_t pid, uint32_t *ret_module)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%" PRId32 ".map", pid);
    return modules_find(modules, &(struct modules_wanted){.path = path}, ret_module);
}

struct jit_map *modules_map(struct modules *modules, uint32_t number, const char *dir)
{
    struct modules_file *file = &modules->files.items[number];
    struct profile_module *module = &modules->profile->modules.items[number];
    int pid;
    if (file->is_tried ||
        sscanf(profile_text(modules->profile, module->path), "/tmp/perf-%9d.map", &pid) != 1)
        return file->map;
    file->is_tried = true;
    file->map = malloc(sizeof *file->map);
    if (file->map && jit_map_open(file->map, dir, pid) < 0) {
        free(file->map);
        file->map = NULL;
    }
    module->has_symbols = file->map != NULL;
    return file->map;
}
