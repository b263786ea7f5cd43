#include "record/process_maps.h"

#include <errno.h>
#include <string.h>

void process_maps_done(struct process_maps *maps)
{
    vector_done(&maps->items);
}

/* The first mapping that ends behind an address; NULL: none does. */
static const struct process_mapping *first_behind(const struct process_maps *maps, uint64_t avma)
{
    size_t low = 0, high = maps->items.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (maps->items.items[middle].end_avma <= avma)
            low = middle + 1;
        else
            high = middle;
    }
    return low < maps->items.count ? &maps->items.items[low] : NULL;
}

const struct process_mapping *process_maps_find(const struct process_maps *maps, uint64_t avma)
{
    const struct process_mapping *mapping = first_behind(maps, avma);
    return mapping && mapping->start_avma <= avma ? mapping : NULL;
}

/* Whether a mapping is known, and whether anything is where it is. */
static bool is_known(const struct process_maps *maps, const struct process_mapping *wanted,
                     bool *ret_covers)
{
    const struct process_mapping *mapping = first_behind(maps, wanted->start_avma);
    *ret_covers = mapping && mapping->start_avma < wanted->end_avma;
    return *ret_covers && mapping->start_avma == wanted->start_avma &&
           mapping->end_avma == wanted->end_avma && mapping->fileoff == wanted->fileoff &&
           mapping->file == wanted->file;
}

static void find_bias(struct process_mapping *mapping)
{
    struct elf_mapping place = {.start_avma = mapping->start_avma,
                                .length = mapping->end_avma - mapping->start_avma,
                                .pgoff = mapping->fileoff};
    mapping->has_bias = mapping->file && mapping->file->native &&
                        native_bias(mapping->file->native, &place, &mapping->bias);
}

static void write_mapping(struct recording *recording, struct recording_task task,
                          const struct maps_mapping *seen, const struct process_mapping *mapping)
{
    size_t length = 0;
    const uint8_t *build_id = NULL;
    if (mapping->file && mapping->file->native)
        build_id = elf_file_build_id(&native_object(mapping->file->native)->elf, &length);
    recording_mmap(recording, task, seen, build_id, build_id ? length : 0);
}

int process_maps_update(struct process_maps *maps, struct code_files *files,
                        struct recording *recording, struct recording_task task,
                        struct maps_text text)
{
    struct process_maps updated = {.list_ns = task.time_ns};
    struct maps_mapping seen;
    bool has_changed = false;
    while (maps_text_next(&text, &seen)) {
        size_t count = updated.items.count;
        if (strcmp(seen.path, "[vsyscall]") == 0 ||
            (count && seen.start_avma < updated.items.items[count - 1].end_avma))
            continue;
        struct process_mapping mapping = {.start_avma = seen.start_avma,
                                          .end_avma = seen.end_avma,
                                          .fileoff = seen.fileoff,
                                          .file = code_files_get(files, &seen, task.pid)};
        bool covers;
        if (!is_known(maps, &mapping, &covers)) {
            struct recording_task when = task;
            if (!covers && maps->list_ns)
                when.time_ns = maps->list_ns;
            write_mapping(recording, when, &seen, &mapping);
            has_changed = true;
        }
        find_bias(&mapping);
        if (vector_push(&updated.items, mapping) < 0) {
            process_maps_done(&updated);
            return -ENOMEM;
        }
    }
    has_changed |= updated.items.count != maps->items.count;
    process_maps_done(maps);
    *maps = updated;
    return has_changed;
}
