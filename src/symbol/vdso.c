/* The kernel tells where it is (AT_SYSINFO_EHDR), /proc/self/maps how long it is. Its section
 * headers, behind the loaded part, are within the mapping too. */
#include "symbol/vdso.h"

#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/auxv.h>

static size_t mapped_bytes(uint64_t start)
{
    CLEANUP(cleanup_fclose) FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    while (maps && fgets(line, sizeof line, maps)) {
        uint64_t first, behind;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &behind) == 2 && first == start &&
            behind > first)
            return (size_t)(behind - first);
    }
    return 0;
}

int vdso_open(struct elf_object **ret_object)
{
    unsigned long start = getauxval(AT_SYSINFO_EHDR);
    size_t length = start ? mapped_bytes(start) : 0;
    if (!length)
        return -ENOENT;
    return elf_object_open_memory("[vdso]", (const void *)start, length, ret_object); // NOLINT
}
