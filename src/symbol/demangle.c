/* C++ has a demangler in every libstdc++ (and libc++abi): __cxa_demangle. It is loaded when the
 * first C++ name comes by, so that the program needs no C++ library to run; without one, names stay
 * as they are.
 *
 * Rust's older names look like C++ and carry a hash in their last part:
 *
 *     _ZN4core3fmt9Formatter9write_str17h0123456789abcdefE   core::fmt::Formatter::write_str
 *
 * Inside of the parts, signs that C++ would not allow are written as $LT$, $u7e$, and :: as two
 * dots. They are undone by hand: that is in demangle_rust_legacy.c, and newer names (_R…) in
 * demangle_rust_v0.c. */
#include "symbol/demangle.h"

#include "symbol/demangle_rust.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef char *cxa_demangle_function(const char *name, char *buffer, size_t *length, int *status);

/* NULL when there is no C++ library on the machine. Looked for once. */
static cxa_demangle_function *cxa_demangle(void)
{
    static const char *const LIBRARIES[] = {"libstdc++.so.6", "libc++abi.so.1"};
    static cxa_demangle_function *function;
    static bool was_looked_for;
    for (size_t i = 0; i < 2 && !was_looked_for && !function; i++) {
        void *library = dlopen(LIBRARIES[i], RTLD_LAZY | RTLD_LOCAL);
        void *symbol = library ? dlsym(library, "__cxa_demangle") : NULL;
        memcpy(&function, &symbol, sizeof function);
    }
    was_looked_for = true;
    return function;
}

char *demangle(const char *name)
{
    if (strlen(name) > DEMANGLE_MOST_BYTES)
        return NULL;
    if (name[0] == '_' && name[1] == 'R')
        return demangle_rust_v0(name);
    if (name[0] != '_' || name[1] != 'Z')
        return NULL;
    char *rust = demangle_rust_legacy(name);
    if (rust)
        return rust;
    int status;
    cxa_demangle_function *function = cxa_demangle();
    return function ? function(name, NULL, NULL, &status) : NULL;
}
