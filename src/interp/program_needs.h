/* What kind of program we are loaded into. */
#ifndef PITVIPER_INTERP_PROGRAM_NEEDS_H
#define PITVIPER_INTERP_PROGRAM_NEEDS_H

#include <stdbool.h>

/* Whether the program itself asks for libraries. One that does not may be started by the loader all
 * the same (Go's, as position-independent programs): it speaks to the kernel directly, so nobody
 * learns which signals and threads it has. */
bool program_needs_libraries(void);

/* Whether the C library is glibc. With another one (musl) nothing is as we know it. */
bool program_has_glibc(void);

/* Whether it was built to look for data races. */
bool program_has_thread_sanitizer(void);

#endif
