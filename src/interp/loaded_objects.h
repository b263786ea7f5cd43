/* What the loader knows of the program and its libraries. */
#ifndef PITVIPER_INTERP_LOADED_OBJECTS_H
#define PITVIPER_INTERP_LOADED_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the program itself asks for libraries. One that does not may be started by the loader all
 * the same (Go's, as position-independent programs): it speaks to the kernel directly, so nobody
 * learns which signals and threads it has. */
bool loaded_objects_are_wanted(void);

/* How many have been loaded so far, those that are gone included. */
uint64_t loaded_objects_count(void);

#endif
