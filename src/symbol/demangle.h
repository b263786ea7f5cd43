/* Names as their authors wrote them: C++ (_Z…) and Rust (_R…, and _ZN…17h<hash>E). */
#ifndef PITVIPER_SYMBOL_DEMANGLE_H
#define PITVIPER_SYMBOL_DEMANGLE_H

/* The readable form, malloc'ed, or NULL when the name is not mangled, can't be demangled, or memory
 * is short: show the name as it is then. C++ needs libstdc++ on the machine, which is loaded at
 * first use; the names are those that perf and c++filt print. Not for use by several threads at
 * once. */
char *demangle(const char *name);

#endif
