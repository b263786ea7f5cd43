/* C++ by libstdc++'s own __cxa_demangle, loaded when the first such name comes, so that the program
 * needs no C++ library. Rust's older scheme is C++'s with a hash at the end, which is cut off. */
#include "symbol/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef char *(*cxa_demangle)(const char *, char *, size_t *, int *);

static cxa_demangle find_demangler(void)
{
    static bool is_tried;
    static cxa_demangle found;
    if (!is_tried) {
        void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        if (library)
            *(void **)&found = dlsym(library, "__cxa_demangle");
    }
    is_tried = true;
    return found;
}

/* "core::fmt::write::h0123456789abcdef": Rust. */
static void cut_rust_hash(char *name)
{
    size_t length = strlen(name);
    if (length < 20 || strncmp(name + length - 19, "::h", 3) != 0)
        return;
    for (size_t i = length - 16; i < length; i++)
        if (!isxdigit((unsigned char)name[i]))
            return;
    name[length - 19] = '\0';
}

char *demangle(const char *name)
{
    if (strncmp(name, "_Z", 2) != 0)
        return NULL;
    cxa_demangle demangler = find_demangler();
    int status = -1;
    char *readable = demangler ? demangler(name, NULL, NULL, &status) : NULL;
    if (readable)
        cut_rust_hash(readable);
    return readable;
}
