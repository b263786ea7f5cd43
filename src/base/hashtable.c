/* Linear probing over a power-of-two table that is at most half full: one cache line per look-up
 * in the common case. A slot keeps its value plus one, so that zeroed memory is an empty table and
 * every hash, 0 included, can be stored as it is. */
#include "base/hashtable.h"

#include "base/checked.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { FIRST_SLOTS = 64 };

/* Differs from process to process, so that nobody can prepare names that all hash alike. */
static uint64_t process_seed(void)
{
    uint64_t seed = 0;
    const void *random = (const void *)getauxval(AT_RANDOM); /* 16 random bytes from the kernel */
    if (random)
        memcpy(&seed, random, sizeof seed);
    return seed;
}

uint64_t hash_bytes(const void *bytes, size_t length)
{
    const unsigned char *next = bytes;
    uint64_t hash = hash_u64(process_seed() + length + 1);
    for (; length >= 8; length -= 8, next += 8) {
        uint64_t word;
        memcpy(&word, next, sizeof word);
        hash = hash_u64(hash ^ word);
    }
    uint64_t tail = 0;
    if (length)
        memcpy(&tail, next, length);
    return hash_u64(hash ^ tail);
}

void hashtable_done(struct hashtable *table)
{
    free(table->slots);
    *table = (struct hashtable){0};
}

static void insert(struct hashtable_slot *slots, size_t mask, struct hashtable_slot entry)
{
    size_t position = entry.hash & mask;
    while (slots[position].value_plus_one)
        position = (position + 1) & mask;
    slots[position] = entry;
}

static int grow(struct hashtable *table)
{
    size_t slots = table->slots ? (table->mask + 1) * 2 : FIRST_SLOTS;
    struct hashtable_slot *grown = calloc(slots, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    for (size_t i = 0; table->slots && i <= table->mask; i++) {
        if (table->slots[i].value_plus_one)
            insert(grown, slots - 1, table->slots[i]);
    }
    free(table->slots);
    table->slots = grown;
    table->mask = slots - 1;
    return 0;
}

int hashtable_add(struct hashtable *table, uint64_t hash, uint64_t value)
{
    if (!table->slots || table->count >= (table->mask + 1) / 2) {
        int error = grow(table);
        if (error < 0)
            return error;
    }
    insert(table->slots, table->mask,
           (struct hashtable_slot){.hash = hash, .value_plus_one = value + 1});
    table->count++;
    return 0;
}

int hashtable_set(struct hashtable *table, uint64_t hash, uint64_t value)
{
    size_t position = hash & table->mask;
    for (; table->slots && table->slots[position].value_plus_one;
         position = (position + 1) & table->mask) {
        if (table->slots[position].hash == hash) {
            table->slots[position].value_plus_one = value + 1;
            return 0;
        }
    }
    return hashtable_add(table, hash, value);
}
