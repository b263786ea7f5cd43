/* AddressSanitizer ends a program in which another object was loaded before its own, as preloaded
 * ones are, unless it is told that this is all right. It is: ours passes on what it takes. */
#ifndef PITVIPER_BASE_ASAN_OPTIONS_H
#define PITVIPER_BASE_ASAN_OPTIONS_H

#define ASAN_OPTIONS_NAME "ASAN_OPTIONS"
#define ASAN_OPTIONS_ANY_ORDER "verify_asan_link_order=0"

#endif
