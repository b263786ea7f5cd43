/* Source lines and inlined functions of an object file, from its debug information (DWARF).
 *
 * The information is walked once, into two sorted tables; a look-up then takes two binary searches.
 * That takes a fifth of a second for an interpreter with all of its debug information, so it is
 * done only for files that samples are in, and only when lines or inlines are asked for. */
#ifndef PITVIPER_SYMBOL_DEBUG_INFO_H
#define PITVIPER_SYMBOL_DEBUG_INFO_H

#include <stddef.h>
#include <stdint.h>

struct debug_info;

/* One of the functions that an address belongs to. */
struct debug_place {
    const char *function; /* inlined, as in the file: not demangled. NULL for the last place: the
                             function that really is there, which the symbol table knows */
    const char *file;     /* NULL when not known */
    uint32_t line;        /* 0 when not known */
};

/* Reads the debug information of a file. 0; -ENOENT when it has none; -ENOTSUP when this program
 * was built without libdw; -ENOMEM; negative errno of open. On failure there is nothing to close.
 */
int debug_info_open(const char *path, struct debug_info **ret_info);

/* The same of a file in memory, which is needed for the call only. */
int debug_info_open_memory(const void *data, size_t length, struct debug_info **ret_info);

void debug_info_close(struct debug_info *info); /* NULL is fine */

/* The places of an address, innermost first: inlined functions, then the function itself. Returns
 * their number, 1 at least and `capacity` at most (the outer inlined ones are left out then). Texts
 * are valid until debug_info_close. */
size_t debug_info_find(const struct debug_info *info, uint64_t svma, struct debug_place *places,
                       size_t capacity);

#endif
