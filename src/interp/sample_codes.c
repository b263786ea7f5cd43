/* A table by the address of the code object. Code objects end, and others come to stand at their
 * address, at times with their names at the addresses of the old ones: so what is said of a
 * function is part of the key (sample_code_print).
 *
 * The table is written under a lock. Who does not get it tries for some microseconds, which is
 * longer than it is held, but not for ever: its holder may not be running. Then there is no sample
 * this time. */
#include "interp/sample_codes.h"

#include "interp/sample_code.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum { LOCK_TRIES = 500 };
enum { SLOTS = 1 << 18, MOST_USED = SLOTS / 4 * 3, PROBES = 64 };

struct slot {
    _Atomic uintptr_t code; /* 0: free */
    uint64_t print;         /* of what belongs to the code object */
    uint32_t number;
};

static const struct sample_layout *layout;
static struct slot *slots;
static atomic_flag is_writing = ATOMIC_FLAG_INIT;
static uint32_t last_number;
static uint32_t used;

bool sample_codes_init(const struct sample_layout *of_python)
{
    layout = of_python;
    void *memory = mmap(NULL, SLOTS * sizeof *slots, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    slots = memory;
    return true;
}

void sample_codes_forget(void)
{
    atomic_flag_clear(&is_writing);
    last_number = used = 0;
    if (slots)
        madvise(slots, SLOTS * sizeof *slots, MADV_DONTNEED);
}

static bool lock_table(void)
{
    for (int tries = 0; tries < LOCK_TRIES; tries++) {
        if (!atomic_flag_test_and_set_explicit(&is_writing, memory_order_acquire))
            return true;
        __builtin_ia32_pause();
    }
    return false;
}

/* The slot that a code object has or gets. */
static struct slot *choose_slot(const char *code, size_t first)
{
    for (size_t i = 0; i < PROBES; i++) {
        struct slot *slot = &slots[(first + i) & (SLOTS - 1)];
        if (!slot->code || slot->code == (uintptr_t)code)
            return slot;
    }
    return &slots[first & (SLOTS - 1)];
}

static void fill_slot(const char *code, uint64_t print, size_t first, uint32_t number)
{
    if (++used > MOST_USED) { /* start again: those that are met again get new numbers */
        madvise(slots, SLOTS * sizeof *slots, MADV_DONTNEED);
        used = 1;
    }
    struct slot *slot = choose_slot(code, first);
    atomic_store_explicit(&slot->code, 0, memory_order_release);
    slot->print = print;
    slot->number = number;
    atomic_store_explicit(&slot->code, (uintptr_t)code, memory_order_release);
}

static uint32_t announce(struct sample_ring *ring, const char *code, uint64_t print, size_t first)
{
    if (!lock_table())
        return SAMPLE_CODES_BUSY;
    uint32_t number = last_number + 1;
    if (sample_code_write(ring, layout, code, number)) {
        last_number = number;
        fill_slot(code, print, first, number);
    } else {
        number = SAMPLE_CODES_NO_ROOM;
    }
    atomic_flag_clear_explicit(&is_writing, memory_order_release);
    return number;
}

uint32_t sample_codes_number(struct sample_ring *ring, const char *code)
{
    uint64_t print = sample_code_print(layout, code);
    size_t first = (size_t)((uintptr_t)code * UINT64_C(0x9e3779b97f4a7c15) >> 20);
    for (size_t i = 0; i < PROBES; i++) {
        struct slot *slot = &slots[(first + i) & (SLOTS - 1)];
        uintptr_t seen = atomic_load_explicit(&slot->code, memory_order_acquire);
        if (!seen)
            break;
        if (seen == (uintptr_t)code && slot->print == print)
            return slot->number;
    }
    return announce(ring, code, print, first);
}
