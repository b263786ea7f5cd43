/* Reading, in a signal handler, memory that may be gone. */
#ifndef PITVIPER_INTERP_SAMPLE_MEMORY_H
#define PITVIPER_INTERP_SAMPLE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SAMPLE_MEMORY_PAGE_BYTES = 4096, SAMPLE_MEMORY_PAGES = 4 };

/* Pages that can be read, for as long as the handler runs and nobody takes them away: those of the
 * thread's own frames and functions. All of it is 0 at first. */
struct sample_memory {
    uintptr_t pages[SAMPLE_MEMORY_PAGES];
    size_t count;
};

/* The same without what is known. */
bool sample_memory_ask(struct sample_memory *memory, uintptr_t word, uintptr_t page);

/* Whether 8 bytes can be read there. They are not touched. */
static inline bool sample_memory_is_readable(struct sample_memory *memory, const void *address)
{
    uintptr_t word = (uintptr_t)address & ~(uintptr_t)7;
    uintptr_t page = word & ~(uintptr_t)(SAMPLE_MEMORY_PAGE_BYTES - 1);
    for (size_t i = 0; i < SAMPLE_MEMORY_PAGES; i++)
        if (page && memory->pages[i] == page)
            return true;
    return sample_memory_ask(memory, word, page);
}

/* For what others may take away at any moment. False when there is no memory. */
bool sample_memory_read(const void *address, void *ret_bytes, size_t count);

#endif
