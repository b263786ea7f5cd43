/* Divides generated code in space and time.
 *
 *     time ^     gen 1   +--A'--+   +---D'----+
 *          |             |      |   |         |
 *          |     gen 0   +--A---+-B-+--C--+-D-+            +--E--+
 *          +--------------------------------------------------------> address
 *                        |    image 0, mapping 0   |        image 1 ...
 *
 * 1. What stands at one address is sorted by address and time. What was said twice is dropped: a
 *    forked child of CPython writes its copy of the parent's buffer into the parent's dump.
 * 2. The generation of a piece of code is one more than the highest generation it overlaps of all
 *    that came before it. Where nothing overlaps, which is the rule, that needs only a look at the
 *    neighbours; otherwise a tree over the addresses answers it in O(log n) each.
 * 3. In the order of generation and address, an image ends at a gap of a whole page, in which the
 *    process may have something else: readers must not take one for the other (elf_image.c). It
 * ends too when the gaps would outweigh the code. Within an image a mapping ends at a gap, for
 * something else may be mapped there: after a fork, the parent's functions. In later generations
 * each piece has a mapping of its own, since each hides what was there from its own time on. */
#include "formats/jitdump_images.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <string.h>

enum {
    MOST_CODE_BYTES = 256 << 20,   /* of one function */
    MOST_MAPPING_GAP_BYTES = 1024, /* padding between functions; CPython 3.13.0 has 261 */
    FREE_PADDING_BYTES = 16 << 20, /* in an image; above it, at most PADDING_FACTOR x the code */
    PADDING_FACTOR = 4,
    MOST_IMAGE_BYTES = 256 << 20,
};

struct piece {
    uint64_t start, end;
    uint64_t timestamp;
    uint64_t limit; /* start of the next piece that does not overlap this one */
    const struct jitdump_code *code;
    size_t order; /* in the dump */
    uint32_t generation;
};

struct pieces {
    struct piece *items; /* owned */
    size_t count;
};

static int compare_u64(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_address(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    int result = compare_u64(a->start, b->start);
    if (!result)
        result = compare_u64(a->timestamp, b->timestamp);
    return result ? result : compare_u64(a->order, b->order);
}

static int by_time(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    int result = compare_u64(a->timestamp, b->timestamp);
    return result ? result : compare_u64(a->order, b->order);
}

static int by_generation(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    int result = compare_u64(a->generation, b->generation);
    return result ? result : by_address(left, right);
}

static int collect(struct jitdump_images *images, const struct jitdump_index *dump,
                   struct pieces *pieces)
{
    pieces->items = malloc((dump->placements.count + 1) * sizeof *pieces->items);
    if (!pieces->items)
        return -ENOMEM;
    for (size_t i = 0; i < dump->placements.count; i++) {
        const struct jitdump_placement *placement = &dump->placements.items[i];
        const struct jitdump_code *code = &dump->codes.items[placement->code];
        uint64_t size = code->load.code_size, end;
        if (!size || size > MOST_CODE_BYTES || !checked_add_u64(placement->avma, size, &end)) {
            images->impossible++;
            continue;
        }
        pieces->items[pieces->count++] = (struct piece){.start = placement->avma,
                                                        .end = end,
                                                        .timestamp = placement->timestamp,
                                                        .code = code,
                                                        .order = i};
    }
    return 0;
}

static bool says_the_same(const struct piece *a, const struct piece *b)
{
    const struct jitdump_load *x = &a->code->load, *y = &b->code->load;
    if (a->start != b->start || a->end != b->end || x->name_length != y->name_length ||
        memcmp(x->name, y->name, x->name_length) != 0)
        return false;
    if (a->timestamp == b->timestamp)
        return true;
    bool same_code =
        x->code == y->code || (x->code && y->code && memcmp(x->code, y->code, x->code_size) == 0);
    return same_code && !a->code->debug.count && !b->code->debug.count;
}

/* In the order of addresses. */
static void drop_repeated(struct pieces *pieces)
{
    size_t kept = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        if (!kept || !says_the_same(&pieces->items[kept - 1], &pieces->items[i]))
            pieces->items[kept++] = pieces->items[i];
    }
    pieces->count = kept;
}

static bool overlap(const struct pieces *pieces)
{
    uint64_t end = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        if (pieces->items[i].start < end)
            return true;
        end = pieces->items[i].end;
    }
    return false;
}

/* In the order of addresses. */
static void find_limits(struct pieces *pieces)
{
    uint64_t limit = UINT64_MAX;
    for (size_t i = pieces->count; i-- > 0;) {
        struct piece *piece = &pieces->items[i];
        if (i + 1 < pieces->count && piece[1].start >= piece->end)
            limit = piece[1].start;
        else if (i + 1 < pieces->count)
            limit = piece->end; /* overlapped: keep to the code */
        piece->limit = limit;
    }
}

/* Heights over the distinct starts and ends: leaf i stands for the addresses from points[i] to
 * points[i + 1]. Nodes are numbered from 1 on, those of a node n are 2n and 2n + 1. */
struct skyline {
    uint64_t *points;
    size_t count;
    size_t leaves;     /* a power of two */
    uint32_t *whole;   /* at least this high everywhere below the node */
    uint32_t *highest; /* somewhere below the node */
};

static void skyline_done(struct skyline *skyline)
{
    free(skyline->points);
    free(skyline->whole);
    free(skyline->highest);
}

static int compare_points(const void *left, const void *right)
{
    return compare_u64(*(const uint64_t *)left, *(const uint64_t *)right);
}

static int skyline_init(struct skyline *skyline, const struct pieces *pieces)
{
    *skyline = (struct skyline){.points = malloc(2 * pieces->count * sizeof(uint64_t))};
    if (!skyline->points)
        return -ENOMEM;
    for (size_t i = 0; i < pieces->count; i++) {
        skyline->points[2 * i] = pieces->items[i].start;
        skyline->points[2 * i + 1] = pieces->items[i].end;
    }
    qsort(skyline->points, 2 * pieces->count, sizeof(uint64_t), compare_points);
    for (size_t i = 0; i < 2 * pieces->count; i++) {
        if (!i || skyline->points[i] != skyline->points[i - 1])
            skyline->points[skyline->count++] = skyline->points[i];
    }
    skyline->leaves = 1;
    while (skyline->leaves < skyline->count)
        skyline->leaves *= 2;
    skyline->whole = calloc(2 * skyline->leaves, sizeof(uint32_t));
    skyline->highest = calloc(2 * skyline->leaves, sizeof(uint32_t));
    return skyline->whole && skyline->highest ? 0 : -ENOMEM;
}

static size_t leaf_at(const struct skyline *skyline, uint64_t address)
{
    const uint64_t *found =
        bsearch(&address, skyline->points, skyline->count, sizeof address, compare_points);
    return skyline->leaves + (size_t)(found - skyline->points);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The highest between two leaves, the second not included. */
static uint32_t skyline_highest(const struct skyline *skyline, size_t left, size_t right)
{
    uint32_t highest = 0;
    size_t first = left, last = right - 1;
    for (size_t l = left, r = right; l < r; l /= 2, r /= 2) {
        if (l & 1)
            highest = larger(highest, skyline->highest[l++]);
        if (r & 1)
            highest = larger(highest, skyline->highest[--r]);
    }
    for (; first; first /= 2, last /= 2) /* what was said of a whole above */
        highest = larger(highest, larger(skyline->whole[first], skyline->whole[last]));
    return highest;
}

static void skyline_raise(struct skyline *skyline, size_t left, size_t right, uint32_t height)
{
    for (size_t l = left, r = right; l < r; l /= 2, r /= 2) {
        size_t nodes[2] = {l & 1 ? l++ : 0, r & 1 ? --r : 0};
        for (int i = 0; i < 2; i++) {
            size_t node = nodes[i];
            if (!node)
                continue;
            skyline->whole[node] = larger(skyline->whole[node], height);
            for (; node; node /= 2)
                skyline->highest[node] = larger(skyline->highest[node], height);
        }
    }
}

/* Heights are generations + 1, so that 0 is bare ground. */
static int find_generations(struct pieces *pieces)
{
    CLEANUP(skyline_done) struct skyline skyline;
    int error = skyline_init(&skyline, pieces);
    if (error < 0)
        return error;
    qsort(pieces->items, pieces->count, sizeof *pieces->items, by_time);
    for (size_t i = 0; i < pieces->count; i++) {
        struct piece *piece = &pieces->items[i];
        size_t left = leaf_at(&skyline, piece->start), right = leaf_at(&skyline, piece->end);
        piece->generation = skyline_highest(&skyline, left, right);
        skyline_raise(&skyline, left, right, piece->generation + 1);
    }
    qsort(pieces->items, pieces->count, sizeof *pieces->items, by_generation);
    return 0;
}

/* What the image that is being filled has so far. */
struct extent {
    uint64_t start, end;
    uint64_t code_bytes;
    uint32_t generation;
};

/* Whether a whole page lies between: then it may be mapped to something else. */
static bool has_page_between(uint64_t end, uint64_t start)
{
    uint64_t page = start & ~(uint64_t)(ELF_IMAGE_PAGE - 1);
    return page >= end && page - end >= ELF_IMAGE_PAGE;
}

static bool belongs_to_image(const struct extent *extent, const struct piece *piece)
{
    uint64_t span = piece->end - extent->start;
    uint64_t code_bytes = extent->code_bytes + (piece->end - piece->start);
    uint64_t padding = span - code_bytes;
    return piece->generation == extent->generation &&
           !has_page_between(extent->end, piece->start) && span <= MOST_IMAGE_BYTES &&
           (padding <= FREE_PADDING_BYTES || padding <= PADDING_FACTOR * code_bytes);
}

static bool belongs_to_mapping(const struct jitdump_mapping *mapping, const struct piece *piece)
{
    return mapping->generation == 0 && piece->start - mapping->end_avma <= MOST_MAPPING_GAP_BYTES;
}

static int add_to_image(struct jitdump_images *images, const struct piece *piece)
{
    struct jitdump_image *image = &images->images.items[images->images.count - 1];
    image->function_count++;
    int error =
        vector_push(&images->functions,
                    ((struct elf_image_function){.avma = piece->start, .code = piece->code}));
    if (error)
        return error;
    if (image->mapping_count) {
        struct jitdump_mapping *last = &images->mappings.items[images->mappings.count - 1];
        if (belongs_to_mapping(last, piece)) {
            last->end_avma = piece->end;
            last->limit_avma = piece->limit;
            if (piece->timestamp < last->timestamp)
                last->timestamp = piece->timestamp;
            return 0;
        }
    }
    image->mapping_count++;
    return vector_push(&images->mappings,
                       ((struct jitdump_mapping){.start_avma = piece->start,
                                                 .end_avma = piece->end,
                                                 .limit_avma = piece->limit,
                                                 .timestamp = piece->timestamp,
                                                 .generation = piece->generation,
                                                 .image = (uint32_t)images->images.count - 1}));
}

static int divide(struct jitdump_images *images, const struct pieces *pieces, bool per_function)
{
    struct extent extent = {0};
    for (size_t i = 0; i < pieces->count; i++) {
        const struct piece *piece = &pieces->items[i];
        if (i == 0 || per_function || !belongs_to_image(&extent, piece)) {
            struct jitdump_image image = {.first_function = images->functions.count,
                                          .first_mapping = images->mappings.count};
            int error = vector_push(&images->images, image);
            if (error)
                return error;
            extent = (struct extent){.start = piece->start, .generation = piece->generation};
        }
        extent.end = piece->end;
        extent.code_bytes += piece->end - piece->start;
        if (piece->generation >= images->generations)
            images->generations = piece->generation + 1;
        int error = add_to_image(images, piece);
        if (error)
            return error;
    }
    return 0;
}

int jitdump_images_init(struct jitdump_images *images, const struct jitdump_index *dump,
                        bool per_function)
{
    *images = (struct jitdump_images){0};
    struct pieces pieces = {0};
    int error = collect(images, dump, &pieces);
    if (!error) {
        qsort(pieces.items, pieces.count, sizeof *pieces.items, by_address);
        drop_repeated(&pieces);
        find_limits(&pieces);
        if (overlap(&pieces))
            error = find_generations(&pieces);
    }
    if (!error)
        error = divide(images, &pieces, per_function);
    free(pieces.items);
    if (error)
        jitdump_images_done(images);
    return error;
}

void jitdump_images_done(struct jitdump_images *images)
{
    vector_done(&images->functions);
    vector_done(&images->images);
    vector_done(&images->mappings);
}
