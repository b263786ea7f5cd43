/* Any bytes as a perf map: nothing is read out of bounds, every address of every entry finds an
 * entry, and what was decoded can be encoded and decoded again. */
#include "formats/perfmap_index.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_round_trip(const struct perfmap_entry *entry)
{
    struct writer writer;
    writer_init(&writer, NULL, 0);
    perfmap_encode(&writer, entry);
    size_t length = writer.length;
    char *line = malloc(length);
    REQUIRE(line);
    writer_init(&writer, line, length);
    perfmap_encode(&writer, entry);
    REQUIRE(writer_fits(&writer) && writer.length == length);

    struct perfmap_reader reader;
    struct perfmap_entry again;
    perfmap_reader_init(&reader, "round trip", line, length);
    REQUIRE(perfmap_next(&reader, &again) == 1);
    REQUIRE(again.start == entry->start && again.size == entry->size && !again.unfinished);
    if (!memchr(entry->name, '\r', entry->name_length) &&
        !memchr(entry->name, '\0', entry->name_length))
        REQUIRE(again.name_length == entry->name_length &&
                memcmp(again.name, entry->name, entry->name_length) == 0);
    REQUIRE(perfmap_next(&reader, &again) == 0);
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct perfmap_index index;
    if (perfmap_index_init(&index, "fuzz", data, size) < 0)
        return 0;
    for (size_t i = 0; i < index.entries.count; i++) {
        const struct perfmap_entry *entry = &index.entries.items[i];
        check_round_trip(entry);
        const struct perfmap_entry *found = perfmap_index_find(&index, entry->start);
        if (entry->size)
            REQUIRE(found && found >= entry);
        perfmap_index_find(&index, entry->start + entry->size);
    }
    perfmap_index_done(&index);
    return 0;
}
