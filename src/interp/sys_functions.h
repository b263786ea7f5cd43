/* sys.activate_stack_trampoline, sys.deactivate_stack_trampoline, sys.is_stack_trampoline_active.
 */
#ifndef PITVIPER_INTERP_SYS_FUNCTIONS_H
#define PITVIPER_INTERP_SYS_FUNCTIONS_H

#include "interp/pyapi.h"

/* Puts them into sys on 3.9 to 3.11, which lack them, and around the existing ones on 3.12, which
 * lack "perf_jit". Leaves later versions alone. Needs the GIL; leaves no exception. */
void sys_functions_install(void);

/* The argument's text when it is a str that CPython's own function would take; NULL with the
 * exception that it would raise. */
const char *sys_functions_backend(struct py_object *argument);

/* Switches on what the text names. False with an exception. */
bool sys_functions_activate(const char *backend);

#endif
