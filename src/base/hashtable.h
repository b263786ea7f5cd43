/* A hash table of 64-bit hashes with a 64-bit value each: the index over things that are stored
 * elsewhere. Several values may share a hash; the caller walks them and compares the real keys:
 *
 *     struct hashtable_probe probe = hashtable_probe(&table, hash_bytes(name, length));
 *     uint64_t value;
 *     while (hashtable_next(&probe, &value))
 *         if (is_it(value)) return value;
 *
 * For 64-bit keys use hash_u64: it is one to one, so equal hashes are equal keys, and hashtable_set
 * and hashtable_get make the table a plain map. Entries are never removed. */
#ifndef PITVIPER_BASE_HASHTABLE_H
#define PITVIPER_BASE_HASHTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hashtable_slot {
    uint64_t hash;
    uint64_t value_plus_one; /* 0: the slot is free */
};

/* A zeroed one is valid and empty. */
struct hashtable {
    struct hashtable_slot *slots; /* `mask + 1` of them, a power of two; owned */
    size_t mask;
    size_t count;
};

struct hashtable_probe {
    const struct hashtable *table;
    uint64_t hash;
    size_t position;
};

/* Not the same in another process: never let results depend on it. */
uint64_t hash_bytes(const void *bytes, size_t length);

/* One to one, and the same everywhere: multiplication by an odd number and xor with a shifted self
 * can both be undone. */
static inline uint64_t hash_u64(uint64_t key)
{
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    key ^= key >> 32;
    key *= 0xd6e8feb86659fd93u;
    return key ^ key >> 32;
}

void hashtable_done(struct hashtable *table);

/* Adds an entry, whether or not the hash is there already; any value but UINT64_MAX. 0 or -ENOMEM
 * (the table is as it was). Ends the validity of probes. */
int hashtable_add(struct hashtable *table, uint64_t hash, uint64_t value);

/* The same, but an entry of that hash gets the new value instead of company. */
int hashtable_set(struct hashtable *table, uint64_t hash, uint64_t value);

static inline struct hashtable_probe hashtable_probe(const struct hashtable *table, uint64_t hash)
{
    return (struct hashtable_probe){.table = table, .hash = hash, .position = hash & table->mask};
}

static inline bool hashtable_next(struct hashtable_probe *probe, uint64_t *ret_value)
{
    const struct hashtable *table = probe->table;
    if (!table->slots)
        return false;
    for (;;) {
        const struct hashtable_slot *slot = &table->slots[probe->position];
        if (!slot->value_plus_one)
            return false;
        probe->position = (probe->position + 1) & table->mask;
        if (slot->hash == probe->hash) {
            *ret_value = slot->value_plus_one - 1;
            return true;
        }
    }
}

/* The value of an entry of that hash; false when there is none. */
static inline bool hashtable_get(const struct hashtable *table, uint64_t hash, uint64_t *ret_value)
{
    struct hashtable_probe probe = hashtable_probe(table, hash);
    return hashtable_next(&probe, ret_value);
}

#endif
