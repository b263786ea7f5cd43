#include "interp/loaded_objects.h"

#include <link.h>
#include <stddef.h>

static bool has_needed(const struct dl_phdr_info *object, const ElfW(Phdr) * segment)
{
    const ElfW(Dyn) *entry = (const void *)(object->dlpi_addr + segment->p_vaddr);
    for (; entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED)
            return true;
    return false;
}

/* The first object is the program. */
static int look_at_program(struct dl_phdr_info *object, size_t bytes, void *result)
{
    (void)bytes;
    bool *is_wanted = result;
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            *is_wanted = has_needed(object, &object->dlpi_phdr[i]);
    return 1;
}

bool loaded_objects_are_wanted(void)
{
    bool is_wanted = false;
    dl_iterate_phdr(look_at_program, &is_wanted);
    return is_wanted;
}

static int look_at_count(struct dl_phdr_info *object, size_t bytes, void *result)
{
    if (bytes >= offsetof(struct dl_phdr_info, dlpi_adds) + sizeof object->dlpi_adds)
        *(uint64_t *)result = object->dlpi_adds;
    return 1;
}

uint64_t loaded_objects_count(void)
{
    uint64_t count = 0;
    dl_iterate_phdr(look_at_count, &count);
    return count;
}
