/* One program or shared library of a recording: its symbols and how to unwind its frames, found and
 * read when they are asked for the first time. Addresses are places in its file (fileoff), since
 * that is what a mapping tells. */
#ifndef PITVIPER_SYMBOL_NATIVE_H
#define PITVIPER_SYMBOL_NATIVE_H

#include "elf/elf_debug.h"
#include "symbol/debug_info.h"
#include "symbol/symbol.h"
#include "unwind/code_rules.h"

/* Which file is meant. Strings are borrowed. */
struct native_wanted {
    const char *path;        /* as mapped; "[vdso]" too */
    const uint8_t *build_id; /* a file with another one does not count */
    size_t build_id_size;    /* 0: any will do */
    const char *root;        /* tried in front of the path first: "/proc/123/root"; may be NULL */
};

struct native;

/* Finds and opens the file: at its path, else in perf's cache of files by build-id. The search is
 * borrowed and must outlive the object. 0; -ENOENT when there is no such file or only one with
 * another build-id; -ENOMEM; otherwise what elf_object_open returns. */
int native_open(const struct elf_debug_search *search, const struct native_wanted *wanted,
                struct native **ret_native);

/* The same for a file in memory. Takes the data over, to be freed with the object, and also when
 * this fails: with -ENOMEM, -EBADMSG or -ENOTSUP. */
int native_open_memory(const struct elf_debug_search *search, const char *path, uint8_t *data,
                       size_t length, struct native **ret_native);
void native_close(struct native *native); /* NULL is fine */

/* The symbol at a place in the file; false when there is none or memory is short. */
bool native_find(struct native *native, uint64_t fileoff, struct symbol *ret_symbol);

/* Whether there is a symbol table at all. */
bool native_has_symbols(struct native *native);

/* The functions that a place in the file belongs to, with their lines: see debug_info_find. 0 when
 * there is no debug information for the file. Reads it at the first call, which takes a while. */
size_t native_places(struct native *native, uint64_t fileoff, struct debug_place *places,
                     size_t capacity);

/* How to unwind the code of the file, read from it as it is asked for; NULL when it can't be known.
 * Valid until native_close. */
struct unwind_table *native_unwind_table(struct native *native);

/* The same from the code itself, for what the table leaves out. Valid until native_close. */
struct code_rules *native_code_rules(struct native *native);

/* avma - svma for a mapping of the file; false when it shows no loadable part. */
bool native_bias(const struct native *native, const struct elf_mapping *mapping,
                 uint64_t *ret_bias);

/* The file itself, and the one with its debug information (NULL when there is none). Both are
 * valid until native_close. */
const struct elf_object *native_object(const struct native *native);
const struct elf_object *native_debug(struct native *native);

#endif
