/* When is an image mapped? Readers of a recording know one thing at each address: what was mapped
 * there last. So the memory in which a program keeps its code hides everything below it when it
 * appears (`//anon`), and the image has to come after it:
 *
 *     time ->     //anon          //anon again (mprotect)
 *                   |  image        |  image                  first use of the memory
 *                   |          A' |     |  A'                 memory used again: from its own time
 * on
 *
 * The first use of memory may be mapped as early as the memory itself. That needs no clock of the
 * dump at all, just the time of the record it follows. Memory that is used again needs the time of
 * the dump; where the clocks could not be matched, only the first use is shown, and the others are
 * counted.
 *
 * Records go to the end of the round in which they belong (perfdata_splice.h): readers sort by
 * time, and keep the order of the file where times are equal. */
#include "record/inject_mappings.h"

#include "formats/perfdata_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Behind this, memory that is mapped again and again is not followed any more. */
enum { MOST_MAPPINGS = 2000000 };

/* A part of an image, and when it is to be seen. */
struct appearance {
    uint64_t start_avma, end_avma;
    uint64_t time_ns;
    size_t round;
};

/* What all mappings of an image have in common. */
struct target {
    const struct inject_dump *dump;
    const struct elf_image *image;
    const char *path;
};

static int append_record(struct inject_mappings *mappings, const struct perfdata_record *record,
                         struct inject_mapping *mapping)
{
    uint8_t bytes[8192];
    struct writer writer;
    writer_init(&writer, bytes, sizeof bytes);
    int error = perfdata_encode(&writer, mappings->event, record);
    if (error < 0 || !writer_fits(&writer))
        return error ? error : -ENAMETOOLONG;
    error = vector_reserve(&mappings->bytes, mappings->bytes.count + writer.length);
    if (error < 0)
        return error;
    mapping->start = mappings->bytes.count;
    mapping->insertion.length = writer.length;
    memcpy(mappings->bytes.items + mapping->start, bytes, writer.length);
    mappings->bytes.count += writer.length;
    return 0;
}

static int add(struct inject_mappings *mappings, const struct target *target,
               struct appearance appearance)
{
    int32_t pid = target->dump->marker->pid;
    struct perfdata_record record = {
        .type = PERF_RECORD_MMAP2,
        .misc = PERF_RECORD_MISC_USER,
        .time_ns = appearance.time_ns,
        .pid = pid,
        .tid = pid,
        .mmap = {.pid = pid,
                 .tid = pid,
                 .start_avma = appearance.start_avma,
                 .length = appearance.end_avma - appearance.start_avma,
                 .fileoff = appearance.start_avma - target->image->base_avma,
                 .build_id_size = ELF_IMAGE_BUILD_ID_BYTES,
                 .protection = PROT_READ | PROT_EXEC,
                 .flags = MAP_PRIVATE,
                 .path = target->path,
                 .path_length = strlen(target->path)}};
    memcpy(record.mmap.build_id, target->image->build_id, ELF_IMAGE_BUILD_ID_BYTES);
    struct inject_mapping mapping = {
        .insertion.offset = perfdata_splice_round_end(mappings->splice, appearance.round),
        .time_ns = appearance.time_ns,
        .order = mappings->list.count};
    int error = append_record(mappings, &record, &mapping);
    return error ? error : vector_push(&mappings->list, mapping);
}

/* Behind every record of memory that hides it. `ret_seen` says whether there was one. */
static int add_behind_anons(struct inject_mappings *mappings, const struct target *target,
                            const struct jitdump_mapping *mapping, uint64_t not_before_ns,
                            bool *ret_seen)
{
    const struct inject_marker *marker = target->dump->marker;
    for (size_t i = 0; i < mappings->scan->anons.count; i++) {
        const struct inject_anon *anon = &mappings->scan->anons.items[i];
        uint64_t start = anon->start_avma, end = anon->end_avma;
        if (start < mapping->start_avma)
            start = mapping->start_avma;
        if (end > mapping->end_avma)
            end = mapping->end_avma;
        if (anon->pid != marker->pid || start >= end || anon->time_ns < not_before_ns ||
            (anon->time_ns && anon->time_ns < marker->exec_time_ns))
            continue;
        *ret_seen = true;
        if (mappings->list.count >= MOST_MAPPINGS)
            return 0;
        int error = add(mappings, target,
                        (struct appearance){.start_avma = start,
                                            .end_avma = end,
                                            .time_ns = anon->time_ns,
                                            .round = anon->round});
        if (error < 0)
            return error;
    }
    return 0;
}

static int add_at(struct inject_mappings *mappings, const struct target *target,
                  const struct jitdump_mapping *mapping, uint64_t time_ns)
{
    return add(mappings, target,
               (struct appearance){.start_avma = mapping->start_avma,
                                   .end_avma = mapping->end_avma,
                                   .time_ns = time_ns,
                                   .round = inject_scan_round(mappings->scan, time_ns)});
}

static int add_mapping(struct inject_mappings *mappings, const struct target *target,
                       const struct jitdump_mapping *mapping)
{
    const struct inject_dump *dump = target->dump;
    uint64_t time_ns = mapping->timestamp + dump->shift_ns;
    bool seen = false;
    if (mapping->generation == 0) {
        int error = add_behind_anons(mappings, target, mapping, 0, &seen);
        if (error || seen)
            return error;
        return add_at(mappings, target, mapping, dump->has_clock ? time_ns : dump->marker->time_ns);
    }
    if (!dump->has_clock) {
        mappings->untimed++;
        return 0;
    }
    int error = add_at(mappings, target, mapping, time_ns);
    return error ? error : add_behind_anons(mappings, target, mapping, time_ns, &seen);
}

/* The unwinding data, for those who read it through the mappings of the process: as early as the
 * marker, and nobody ever maps anything in its place. */
static int add_room(struct inject_mappings *mappings, const struct target *target)
{
    const struct elf_image *image = target->image;
    uint64_t time_ns = target->dump->marker->time_ns;
    if (!image->room_bytes)
        return 0;
    return add(mappings, target,
               (struct appearance){.start_avma = image->room_avma,
                                   .end_avma = image->room_avma + image->room_bytes,
                                   .time_ns = time_ns,
                                   .round = inject_scan_round(mappings->scan, time_ns)});
}

int inject_mappings_add(struct inject_mappings *mappings, const struct inject_dump *dump,
                        size_t number, const struct elf_image *image, const char *path)
{
    struct target target = {.dump = dump, .image = image, .path = path};
    const struct jitdump_image *part = &dump->images.images.items[number];
    for (size_t i = 0; i < part->mapping_count; i++) {
        struct jitdump_mapping mapping = dump->images.mappings.items[part->first_mapping + i];
        uint64_t frames_end_avma = image->base_avma + image->frames_end_fileoff;
        if (part->function_count == 1 && frames_end_avma <= mapping.limit_avma)
            mapping.end_avma = frames_end_avma; /* the room behind the code is enough */
        int error = add_mapping(mappings, &target, &mapping);
        if (error < 0)
            return error;
    }
    return add_room(mappings, &target);
}

static int compare(const void *left, const void *right)
{
    const struct inject_mapping *a = left, *b = right;
    if (a->insertion.offset != b->insertion.offset)
        return a->insertion.offset < b->insertion.offset ? -1 : 1;
    if (a->time_ns != b->time_ns)
        return a->time_ns < b->time_ns ? -1 : 1;
    return (a->order > b->order) - (a->order < b->order);
}

int inject_mappings_finish(struct inject_mappings *mappings)
{
    int error = vector_reserve(&mappings->insertions, mappings->list.count);
    if (error < 0)
        return error;
    if (mappings->list.count)
        qsort(mappings->list.items, mappings->list.count, sizeof *mappings->list.items, compare);
    for (size_t i = 0; i < mappings->list.count; i++) {
        struct inject_mapping *mapping = &mappings->list.items[i];
        mapping->insertion.bytes = mappings->bytes.items + mapping->start;
        mappings->insertions.items[i] = mapping->insertion;
    }
    mappings->insertions.count = mappings->list.count;
    return 0;
}

void inject_mappings_done(struct inject_mappings *mappings)
{
    vector_done(&mappings->list);
    vector_done(&mappings->bytes);
    vector_done(&mappings->insertions);
}
