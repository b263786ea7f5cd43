/* How fast is a perf map of a million lines loaded, and an address in it named? Compared with the
 * plain way to do it: getline, sscanf, qsort and bsearch.
 *
 *     bench_perfmap ours|plain [LINES]       prints: load_ns lookup_ns checksum
 *
 * One process per measurement, so that the caller can interleave them. Both sides answer the same
 * look-ups, spread over the whole map so that nothing stays in the caches, and must find the same
 * entries: the checksum adds up their line numbers. */
#include "formats/perfmap_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LOOKUPS = 2000000, ARENA_FUNCTIONS = 4096, STRIDE = 32, CODE_BYTES = 16 };

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Functions lie in arenas, as CPython makes them: upward within one, each arena below the last. */
static uint64_t start_of(size_t function)
{
    uint64_t arena = function / ARENA_FUNCTIONS, slot = function % ARENA_FUNCTIONS;
    return 0x7f0000000000u - (arena + 1) * ARENA_FUNCTIONS * STRIDE + slot * STRIDE;
}

static char *make_map(size_t lines, size_t *ret_length)
{
    char *text = malloc(lines * 128);
    if (!text)
        abort();
    size_t length = 0;
    for (size_t i = 0; i < lines; i++)
        length += (size_t)sprintf(text + length,
                                  "%" PRIx64 " %x py::Service%zu.handle_%zu:/srv/app/part%zu.py\n",
                                  start_of(i), CODE_BYTES, i % 977, i, i % 313);
    *ret_length = length;
    return text;
}

/* The same sequence of functions for both sides; cheap next to a look-up. */
static size_t pick(uint64_t *state, size_t lines)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((*state >> 33) % lines);
}

struct result {
    uint64_t load_ns, lookup_ns, checksum;
};

static struct result measure_ours(const char *text, size_t length, size_t lines)
{
    struct perfmap_index index;
    uint64_t begin = now_ns();
    if (perfmap_index_init(&index, "bench", text, length) < 0)
        abort();
    uint64_t loaded = now_ns(), state = 1, checksum = 0;
    for (size_t i = 0; i < LOOKUPS; i++) {
        const struct perfmap_entry *entry =
            perfmap_index_find(&index, start_of(pick(&state, lines)) + 5);
        checksum += entry ? (uint64_t)(entry - index.entries.items) : 0;
    }
    uint64_t end = now_ns();
    perfmap_index_done(&index);
    return (struct result){loaded - begin, (end - loaded) / LOOKUPS, checksum};
}

struct plain {
    uint64_t start, size;
    char *name;
    size_t line;
};

static int compare_plain(const void *left, const void *right)
{
    const struct plain *a = left, *b = right;
    return a->start < b->start ? -1 : a->start > b->start;
}

static int compare_address(const void *key, const void *item)
{
    uint64_t avma = *(const uint64_t *)key;
    const struct plain *entry = item;
    return avma < entry->start ? -1 : avma >= entry->start + entry->size;
}

static struct result measure_plain(char *text, size_t length, size_t lines)
{
    uint64_t begin = now_ns();
    struct plain *entries = malloc(lines * sizeof *entries);
    FILE *file = fmemopen(text, length, "r");
    if (!entries || !file)
        abort();
    size_t count = 0, room = 0;
    char *line = NULL;
    while (getline(&line, &room, file) > 0 && count < lines) {
        int name;
        if (sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &entries[count].start, &entries[count].size,
                   &name) == 2) {
            entries[count].name = strdup(line + name);
            entries[count].line = count;
            count++;
        }
    }
    qsort(entries, count, sizeof *entries, compare_plain);
    uint64_t loaded = now_ns(), state = 1, checksum = 0;
    for (size_t i = 0; i < LOOKUPS; i++) {
        uint64_t avma = start_of(pick(&state, lines)) + 5;
        const struct plain *entry =
            bsearch(&avma, entries, count, sizeof *entries, compare_address);
        checksum += entry ? entry->line : 0;
    }
    uint64_t end = now_ns();
    fclose(file);
    return (struct result){loaded - begin, (end - loaded) / LOOKUPS, checksum};
}

int main(int argc, char **argv)
{
    size_t lines = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000000, length;
    if (argc < 2 || !lines)
        return 2;
    char *text = make_map(lines, &length);
    struct result result = strcmp(argv[1], "ours") == 0 ? measure_ours(text, length, lines)
                                                        : measure_plain(text, length, lines);
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", result.load_ns, result.lookup_ns,
           result.checksum);
    return 0;
}
