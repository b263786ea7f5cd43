/* The vdso: the small shared library that the kernel maps into every process, and that is no file.
 * Every process of the same kernel has the same one, so this process's own copy serves. */
#ifndef PITVIPER_SYMBOL_VDSO_H
#define PITVIPER_SYMBOL_VDSO_H

#include "elf/elf_object.h"

/* This process's vdso, of which the object borrows the memory. 0, -ENOENT when there is none, or
 * what elf_object_open_memory returns. */
int vdso_open(struct elf_object **ret_object);

#endif
