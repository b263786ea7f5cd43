/* The symbols of the kernel and its modules: /proc/kallsyms, or perf's copy of it. */
#ifndef PITVIPER_SYMBOL_KALLSYMS_H
#define PITVIPER_SYMBOL_KALLSYMS_H

#include "base/file.h"
#include "base/mapping.h"
#include "base/vector.h"
#include "symbol/symbol.h"

#include <stdbool.h>

struct kallsyms_entry {
    uint64_t avma;
    uint32_t name; /* offset in the text; the line goes on from there */
};

/* A zeroed one is valid and empty. */
struct kallsyms {
    struct mapping mapping; /* of a copy ... */
    struct file file;       /* ... or what was read of /proc, which can't be mapped */
    const char *text;       /* of either */
    size_t length;
    VECTOR(struct kallsyms_entry) entries; /* ascending; the last of those at one address counts */
    bool is_hidden; /* all addresses are 0: this user may not see them (kernel.kptr_restrict) */
};

/* 0, or the negative errno of reading the file, or -ENOMEM. Lines that are none are passed over. On
 * failure there is nothing to release. */
int kallsyms_read(struct kallsyms *kallsyms, const char *path);
void kallsyms_done(struct kallsyms *kallsyms);

/* The symbol at an address; false when there is none. */
bool kallsyms_find(const struct kallsyms *kallsyms, uint64_t avma, struct symbol *ret_symbol);

/* The address of a symbol of the kernel itself, such as "_text"; 0 when there is none. */
uint64_t kallsyms_address(const struct kallsyms *kallsyms, const char *name);

#endif
