/* A preloaded object brings the C library into every program that the loader starts. Whether the
 * program itself has asked for any library is in its dynamic section (DT_NEEDED). Programs of musl
 * have a loader of their own, which loads us as well, and no function that tells glibc's version.
 */
#include "interp/program_needs.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stddef.h>

#pragma weak gnu_get_libc_version

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
    bool *needs_some = result;
    for (size_t i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            *needs_some = has_needed(object, &object->dlpi_phdr[i]);
    return 1;
}

bool program_needs_libraries(void)
{
    bool needs_some = false;
    dl_iterate_phdr(look_at_program, &needs_some);
    return needs_some;
}

bool program_has_glibc(void)
{
    return gnu_get_libc_version != NULL;
}

bool program_has_thread_sanitizer(void)
{
    return dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}
