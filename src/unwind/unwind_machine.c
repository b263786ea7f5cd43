/* The machines that can be unwound. A new one is a file with its table, and a line here. */
#include "unwind/unwind_machine.h"

#include <stddef.h>

static const struct unwind_machine *const MACHINES[] = {&unwind_x86_64, &unwind_aarch64};

const struct unwind_machine *unwind_machine_of(uint16_t elf_machine)
{
    for (size_t i = 0; i < sizeof MACHINES / sizeof *MACHINES; i++) {
        if (MACHINES[i]->elf_machine == elf_machine)
            return MACHINES[i];
    }
    return NULL;
}
