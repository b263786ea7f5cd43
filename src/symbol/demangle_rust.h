/* Rust's two ways to mangle names. Use demangle.h. */
#ifndef PITVIPER_SYMBOL_DEMANGLE_RUST_H
#define PITVIPER_SYMBOL_DEMANGLE_RUST_H

/* Names may be hostile: longer ones, and those whose readable form is longer, are left alone. */
enum { DEMANGLE_MOST_BYTES = 16384 };

/* malloc'ed, or NULL when the name is not of that kind. */
char *demangle_rust_legacy(const char *name);
char *demangle_rust_v0(const char *name);

#endif
