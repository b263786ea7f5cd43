/* What is known of the function at an address. */
#ifndef PITVIPER_SYMBOL_SYMBOL_H
#define PITVIPER_SYMBOL_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

struct symbol {
    const char *name; /* as in its file, not demangled; borrowed from the source that gave it */
    size_t name_length;
    uint64_t start;      /* counted as the address that was asked for */
    uint64_t size;       /* in bytes; 0: not known */
    const char *file;    /* NUL-terminated, borrowed; NULL when not known */
    uint32_t line;       /* of the address; 0 when not known */
    uint32_t first_line; /* of the function, or the first that is known; 0 when not known */
};

#endif
