/* Interned strings: each different string is kept once and has a small number.
 *
 * Numbers are dense from 0 on, in the order of first appearance; 0 is always the empty string.
 * Texts may hold any bytes, are NUL-terminated as well, and never move. */
#ifndef PITVIPER_BASE_STRINGS_H
#define PITVIPER_BASE_STRINGS_H

#include "base/arena.h"
#include "base/hashtable.h"
#include "base/vector.h"

#include <stdint.h>

struct strings_text {
    const char *bytes; /* owned by the arena of the table */
    size_t length;     /* without the NUL */
};

struct strings {
    struct arena arena;
    struct hashtable index;
    VECTOR(struct strings_text) texts;
};

/* 0 or -ENOMEM; on failure there is nothing to release. */
int strings_init(struct strings *strings);
void strings_done(struct strings *strings);

/* 0 and the string's number, or -ENOMEM (the table is as it was). */
int strings_intern(struct strings *strings, const char *bytes, size_t length, uint32_t *ret_id);

/* `id` must be one that strings_intern gave. */
static inline struct strings_text strings_get(const struct strings *strings, uint32_t id)
{
    return strings->texts.items[id];
}

#endif
