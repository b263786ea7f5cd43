#include "base/strings.h"

#include <string.h>

int strings_init(struct strings *strings)
{
    *strings = (struct strings){0};
    uint32_t empty;
    int error = strings_intern(strings, "", 0, &empty);
    if (error < 0)
        strings_done(strings);
    return error;
}

void strings_done(struct strings *strings)
{
    vector_done(&strings->texts);
    hashtable_done(&strings->index);
    arena_done(&strings->arena);
}

int strings_intern(struct strings *strings, const char *bytes, size_t length, uint32_t *ret_id)
{
    uint64_t hash = hash_bytes(bytes, length);
    struct hashtable_probe probe = hashtable_probe(&strings->index, hash);
    uint64_t candidate;
    while (hashtable_next(&probe, &candidate)) {
        struct strings_text text = strings->texts.items[candidate];
        if (text.length == length && (!length || memcmp(text.bytes, bytes, length) == 0)) {
            *ret_id = (uint32_t)candidate;
            return 0;
        }
    }
    if (strings->texts.count > UINT32_MAX)
        return -ENOMEM;
    struct strings_text text = {.bytes = arena_copy(&strings->arena, bytes, length),
                                .length = length};
    if (!text.bytes || vector_push(&strings->texts, text) < 0)
        return -ENOMEM;
    if (hashtable_add(&strings->index, hash, strings->texts.count - 1) < 0) {
        strings->texts.count--;
        return -ENOMEM;
    }
    *ret_id = (uint32_t)(strings->texts.count - 1);
    return 0;
}
