/* It looks as if perf 6.1 keeps the mappings of a process over exec, as long as no new one lies
 * over them. `pitviper run` becomes its command by exec, and both map libc and the loader, at two
 * addresses. To unwind by DWARF, perf takes the lower of the two for the base of the file, which is
 * the wrong one half of the time. Then every stack that ends in libc or in the loader is lost; on a
 * CPython in a shared library, whose threads are found by __tls_get_addr, 4 to 8 % of all samples.
 *
 * So `pitviper run` leaves a list of where it has files mapped, and here, in the new program, each
 * place gets an anonymous executable mapping for a moment (perf does not always record others):
 * perf notes it and drops the old one. Nothing is ever run there. What the new program has mapped
 * already is not touched, and need not be: it lies over the old one. */
#include "interp/old_mappings.h"

#include "base/number.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

static void cover(uintptr_t start, uintptr_t end)
{
    if (!start || end <= start)
        return;
    void *memory = mmap((void *)start, end - start, PROT_READ | PROT_EXEC,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != MAP_FAILED)
        munmap(memory, end - start);
}

void old_mappings_cover(void)
{
    const char *list = getenv("PITVIPER_MAPPINGS");
    if (!list)
        return;
    while (*list) {
        uint64_t start, end;
        if (!number_take(&list, 16, &start) || *list++ != '-' || !number_take(&list, 16, &end))
            break;
        cover(start, end);
        if (*list == ',')
            list++;
    }
    unsetenv("PITVIPER_MAPPINGS");
}
