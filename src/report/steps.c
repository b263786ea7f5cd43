/* Everything that counting has to know about frames is computed once for each of them here, so that
 * the inner loops compare numbers. A profile has some 10,000 frames, whatever the number of
 * samples. */
#include "report/steps.h"

#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_TEXT_BYTES = 512 };

/* Numbers for tuples of u64: `count` words each, kept one behind the other. */
struct numbering {
    struct hashtable index;
    VECTOR(uint64_t) words;
    size_t width;
};

static void numbering_done(struct numbering *numbering)
{
    hashtable_done(&numbering->index);
    vector_done(&numbering->words);
}

/* The number of a tuple: 0 when it was known, 1 when it is new, or -ENOMEM. */
static int number_of(struct numbering *numbering, const uint64_t *words, uint32_t *ret_number)
{
    size_t width = numbering->width;
    uint64_t hash = 0, value;
    for (size_t i = 0; i < width; i++)
        hash = hash_u64(hash ^ words[i]) + i;
    struct hashtable_probe probe = hashtable_probe(&numbering->index, hash);
    while (hashtable_next(&probe, &value) && value * width < numbering->words.count) {
        const uint64_t *known = numbering->words.items + value * width;
        size_t same = 0;
        while (same < width && known[same] == words[same])
            same++;
        if (same == width) {
            *ret_number = (uint32_t)value;
            return 0;
        }
    }
    uint64_t number = width ? numbering->words.count / width : 0;
    for (size_t i = 0; i < width; i++)
        if (vector_push(&numbering->words, words[i]) < 0)
            return -ENOMEM;
    *ret_number = (uint32_t)number;
    return hashtable_add(&numbering->index, hash, number) < 0 ? -ENOMEM : 1;
}

/* What makes frames of chains the same. Functions without a name are shown by the address in the
 * process, so that is part of what they are. */
static void symbol_words(const struct profile *profile, uint32_t frame, enum chain_key key,
                         uint64_t words[2])
{
    const struct profile_frame *place = &profile->frames.items[frame];
    const struct profile_function *function = &profile->functions.items[place->function];
    words[0] = place->function;
    words[1] = 0;
    if (function->kind == PROFILE_FUNCTION_UNRESOLVED || key == CHAIN_ADDRESS)
        words[1] = place->ip_avma;
    else if (key == CHAIN_SRCLINE)
        words[1] = place->line ? (uint64_t)place->file << 32 | place->line : 0;
}

static size_t place_words(const struct profile *profile, uint32_t frame,
                          const struct report_settings *settings,
                          uint64_t words[SETTINGS_MOST_COLUMNS])
{
    size_t count = 0;
    for (size_t i = 0; i < settings->column_count; i++)
        if (settings->columns[i]->of_frame)
            words[count++] = settings->columns[i]->of_frame(profile, frame);
    return count;
}

struct numberings {
    struct numbering symbols, places, steps;
};

static int add_frame(struct steps *steps, struct numberings *known, uint32_t frame,
                     const struct report_settings *settings)
{
    uint64_t words[SETTINGS_MOST_COLUMNS] = {0};
    struct step step = {.frame = frame};
    symbol_words(steps->profile, frame, settings->chains.key, words);
    int result = number_of(&known->symbols, words, &step.symbol);
    if (result < 0 || (result && vector_push(&steps->symbols, frame) < 0))
        return -ENOMEM;
    known->places.width = place_words(steps->profile, frame, settings, words);
    result = number_of(&known->places, words, &step.place);
    if (result < 0 || (result && vector_push(&steps->places, frame) < 0))
        return -ENOMEM;
    uint64_t pair = (uint64_t)step.symbol << 32 | step.place;
    result = number_of(&known->steps, &pair, &steps->of_frame[frame]);
    if (result < 0 || (result && vector_push(&steps->items, step) < 0))
        return -ENOMEM;
    return 0;
}

int steps_init(struct steps *steps, const struct profile *profile,
               const struct report_settings *settings)
{
    size_t count = profile->frames.count;
    *steps = (struct steps){.profile = profile, .key = settings->chains.key};
    steps->of_frame = calloc(count + 1, sizeof *steps->of_frame);
    struct numberings known = {.symbols.width = 2, .steps.width = 1};
    int result = steps->of_frame ? 0 : -ENOMEM;
    for (uint32_t frame = 0; frame < count && result == 0; frame++)
        result = add_frame(steps, &known, frame, settings);
    numbering_done(&known.symbols);
    numbering_done(&known.places);
    numbering_done(&known.steps);
    if (result < 0)
        steps_done(steps);
    return result;
}

void steps_done(struct steps *steps)
{
    free(steps->of_frame);
    steps->of_frame = NULL;
    vector_done(&steps->items);
    vector_done(&steps->symbols);
    vector_done(&steps->places);
}

/* perf: texts descending, those that are not there first. */
static int compare_texts(const char *left, const char *right)
{
    return left && right ? strcmp(right, left) : !right - !left;
}

static const char *line_text(const struct profile *profile, const struct profile_frame *frame,
                             char text[LINE_TEXT_BYTES])
{
    if (!frame->line)
        return NULL;
    snprintf(text, LINE_TEXT_BYTES, "%s:%" PRIu32,
             text_base_name(profile_text(profile, frame->file)), frame->line);
    return text;
}

/* perf: inlined functions by name; others by module, then by start, both descending. Its modules
 * are in the order of memory, which is mostly that of first use. */
int steps_compare_symbols(const struct steps *steps, uint32_t a, uint32_t b)
{
    const struct profile *profile = steps->profile;
    const struct profile_frame *left = &profile->frames.items[steps->symbols.items[a]];
    const struct profile_frame *right = &profile->frames.items[steps->symbols.items[b]];
    const struct profile_function *f = &profile->functions.items[left->function];
    const struct profile_function *g = &profile->functions.items[right->function];
    if (steps->key == CHAIN_SRCLINE && (left->line || right->line)) {
        char x[LINE_TEXT_BYTES], y[LINE_TEXT_BYTES];
        int result = compare_texts(line_text(profile, left, x), line_text(profile, right, y));
        if (result)
            return result;
    }
    bool by_address = steps->key == CHAIN_ADDRESS;
    if (!by_address && (f->is_inlined || g->is_inlined))
        return compare_texts(profile_text(profile, f->name), profile_text(profile, g->name));
    if (f->module != g->module)
        return f->module > g->module ? -1 : 1;
    bool is_unnamed = f->kind == PROFILE_FUNCTION_UNRESOLVED;
    uint64_t x = by_address || is_unnamed ? left->ip_avma : f->start;
    is_unnamed = g->kind == PROFILE_FUNCTION_UNRESOLVED;
    uint64_t y = by_address || is_unnamed ? right->ip_avma : g->start;
    return x > y ? -1 : x < y;
}
