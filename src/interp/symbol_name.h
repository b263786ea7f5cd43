/* What a Python function is called in the symbol files. */
#ifndef PITVIPER_INTERP_SYMBOL_NAME_H
#define PITVIPER_INTERP_SYMBOL_NAME_H

#include "interp/layout.h"
#include "interp/symbol_file.h"

/* Fills in name, file and line of a code object: py::QUALNAME:FILENAME. The texts are in static
 * memory and valid until the next call; the lock of interp/registration.c protects them. Needs the
 * GIL; leaves exceptions as they are and runs no Python code. */
void symbol_name_of(const struct layout *layout, struct py_object *code, struct symbol *ret_symbol);

#endif
