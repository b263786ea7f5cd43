/* A file starts with a header of 104 bytes:
 *
 *       0  "PERFILE2"
 *       8  size of the header, 104           in pipe mode: 16, and records follow at once
 *      16  size of an entry of `attrs`       the attribute and {offset, size} of its ids
 *      24  attrs         {offset, size}
 *      40  data          {offset, size}      size 0: perf was killed before it could fill it in
 *      56  event types   {offset, size}      unused for ten years; our private data
 *      72  bit map of features, 256 bits
 *
 * Right behind the data stands a table of {offset, size}, one entry for each bit set, in the order
 * of the bits. A perf that was killed has set the bits already but written no table. */
#include "formats/perfdata_header.h"

#include "base/checked.h"

#include <errno.h>
#include <string.h>

enum { MAGIC_BYTES = 8 };
static const char MAGIC[] = "PERFILE2";
static const char MAGIC_SWAPPED[] = "2ELIFREP";
static const char MAGIC_OLD[] = "PERFFILE";
static const char MAGIC_OLD_SWAPPED[] = "ELIFFREP";

enum { FILE_HEADER_BYTES = 104, PIPE_HEADER_BYTES = 16, SECTION_BYTES = 16 };

static bool starts_with(const void *data, size_t length, const char *magic)
{
    return length >= MAGIC_BYTES && memcmp(data, magic, MAGIC_BYTES) == 0;
}

bool perfdata_is(const void *data, size_t length)
{
    return starts_with(data, length, MAGIC) || starts_with(data, length, MAGIC_SWAPPED) ||
           starts_with(data, length, MAGIC_OLD) || starts_with(data, length, MAGIC_OLD_SWAPPED);
}

static struct perfdata_section read_section(struct cursor *cursor)
{
    struct perfdata_section section = {.offset = cursor_u64(cursor)};
    section.size = cursor_u64(cursor);
    return section;
}

static bool is_inside(struct perfdata_section section, size_t length)
{
    return section.offset <= length && section.size <= length - section.offset;
}

/* The bytes of a section; the cursor is failed when the file does not have them. */
static struct cursor open_section(struct cursor file, struct perfdata_section section)
{
    cursor_seek(&file, section.offset);
    return cursor_sub(&file, section.size);
}

static void note(struct damage *damage, struct perfdata_section section, const char *problem)
{
    damage_note(damage, (struct damage_place){
                            .offset = section.offset, .bytes = section.size, .problem = problem});
}

static int read_events(struct cursor file, struct perfdata_facts *facts, struct cursor attrs,
                       uint64_t entry_bytes, struct damage *damage)
{
    while (cursor_left(&attrs) >= entry_bytes) {
        struct perfdata_section whole = {attrs.base + attrs.offset, entry_bytes};
        struct cursor attr = cursor_sub(&attrs, entry_bytes - SECTION_BYTES);
        struct cursor ids = open_section(file, read_section(&attrs));
        if (!cursor_ok(&ids))
            note(damage, whole, "the ids of an event are not in the file");
        int error = perfdata_events_add(&facts->events, attr, ids);
        if (error < 0)
            return error;
    }
    return 0;
}

static int read_features(struct cursor file, struct perfdata_facts *facts, const uint64_t bits[4],
                         struct damage *damage)
{
    for (unsigned feature = 0; feature < PERFDATA_FEATURES; feature++) {
        if (!(bits[feature / 64] >> feature % 64 & 1))
            continue;
        size_t entry = file.offset;
        struct perfdata_section section = read_section(&file);
        if (!cursor_ok(&file)) {
            damage_note_truncated(damage, entry);
            return 0;
        }
        if (!is_inside(section, file.length)) {
            damage_note_truncated(damage,
                                  section.offset < file.length ? section.offset : file.length);
            continue;
        }
        int error = perfdata_facts_feature(facts, feature, open_section(file, section));
        if (error == -ENOMEM)
            return error;
        if (error < 0)
            note(damage, section, "a feature section is damaged");
    }
    return 0;
}

/* Sets where the records are; false when they can't be anywhere. */
static bool place_data(struct perfdata_section data, size_t length, struct perfdata_facts *facts,
                       struct perfdata_extent *extent)
{
    if (data.offset < FILE_HEADER_BYTES || data.offset > length)
        return false;
    size_t left = length - data.offset;
    facts->info.is_finished = data.size > 0;
    extent->may_be_cut = data.size == 0 || data.size >= left;
    extent->data.offset = data.offset;
    extent->data.size = extent->may_be_cut ? left : data.size;
    return true;
}

static int read_file_header(struct cursor file, struct perfdata_facts *facts, struct damage *damage,
                            struct perfdata_extent *extent, const char **ret_problem)
{
    uint64_t entry_bytes = cursor_u64(&file);
    struct perfdata_section attrs = read_section(&file);
    struct perfdata_section data = read_section(&file);
    struct perfdata_section private = read_section(&file);
    uint64_t bits[4];
    for (size_t i = 0; i < 4; i++)
        bits[i] = cursor_u64(&file);
    *ret_problem = "the file ends inside its header";
    if (!cursor_ok(&file) || data.offset > file.length)
        return -ENODATA;
    *ret_problem = "the header is damaged";
    struct cursor attr_section = open_section(file, attrs);
    if (!cursor_ok(&attr_section) || entry_bytes <= SECTION_BYTES ||
        !place_data(data, file.length, facts, extent))
        return -EBADMSG;
    int error = read_events(file, facts, attr_section, entry_bytes, damage);
    if (error < 0)
        return error;
    if (private.size && is_inside(private, file.length)) {
        facts->info.private_data = file.data + private.offset;
        facts->info.private_length = private.size;
    }
    if (facts->info.is_finished && extent->may_be_cut && data.size > extent->data.size)
        damage_note_truncated(damage, file.length);
    if (!facts->info.is_finished || damage->truncated)
        return 0;
    cursor_seek(&file, data.offset + data.size);
    return read_features(file, facts, bits, damage);
}

int perfdata_header_read(struct cursor file, struct perfdata_facts *facts, struct damage *damage,
                         struct perfdata_extent *ret_extent, const char **ret_problem)
{
    *ret_problem = "this is not a perf.data file (its magic number is missing)";
    if (!perfdata_is(file.data, file.length))
        return -EBADMSG;
    *ret_problem =
        "the recording is from a machine of the other byte order, which is not supported";
    if (starts_with(file.data, file.length, MAGIC_SWAPPED) ||
        starts_with(file.data, file.length, MAGIC_OLD_SWAPPED))
        return -ENOTSUP;
    *ret_problem = "the recording is from a perf before 2.6.38, which is not supported";
    if (starts_with(file.data, file.length, MAGIC_OLD))
        return -ENOTSUP;
    cursor_skip(&file, MAGIC_BYTES);
    uint64_t header_bytes = cursor_u64(&file);
    *ret_problem = "the file ends inside its header";
    if (!cursor_ok(&file))
        return -ENODATA;
    if (header_bytes == PIPE_HEADER_BYTES) {
        facts->info.is_pipe_mode = facts->info.is_finished = true;
        ret_extent->data =
            (struct perfdata_section){PIPE_HEADER_BYTES, file.length - PIPE_HEADER_BYTES};
        ret_extent->may_be_cut = true;
        return 0;
    }
    *ret_problem = "the header states a size that can't be";
    if (header_bytes < FILE_HEADER_BYTES)
        return -EBADMSG;
    int error = read_file_header(file, facts, damage, ret_extent, ret_problem);
    facts->info.events = facts->events.list.items;
    facts->info.event_count = facts->events.list.count;
    return error;
}
