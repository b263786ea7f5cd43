/* The grammar of -g. perf takes its parts in any order and lets words be shortened ("call" would be
 * ambiguous, "caller" comes first there: so here). A table of words, each of which sets one field.
 */
#include "report/chain_settings.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum field { FIELD_MODE, FIELD_ORDER, FIELD_KEY, FIELD_VALUE };

static const struct word {
    const char *text;
    enum field field;
    int value;
} words[] = {
    {"graph", FIELD_MODE, CHAIN_GRAPH},      {"fractal", FIELD_MODE, CHAIN_FRACTAL},
    {"flat", FIELD_MODE, CHAIN_FLAT},        {"folded", FIELD_MODE, CHAIN_FOLDED},
    {"none", FIELD_MODE, CHAIN_NONE},        {"caller", FIELD_ORDER, CHAIN_CALLER},
    {"callee", FIELD_ORDER, CHAIN_CALLEE},   {"function", FIELD_KEY, CHAIN_FUNCTION},
    {"address", FIELD_KEY, CHAIN_ADDRESS},   {"srcline", FIELD_KEY, CHAIN_SRCLINE},
    {"percent", FIELD_VALUE, CHAIN_PERCENT}, {"period", FIELD_VALUE, CHAIN_PERIOD},
    {"count", FIELD_VALUE, CHAIN_COUNT},
};

struct chain_settings chain_settings_default(void)
{
    return (struct chain_settings){.mode = CHAIN_GRAPH, .min_percent = 0.5};
}

static bool set_word(struct chain_settings *settings, const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const struct word *word = &words[i];
        if (length > strlen(word->text) || memcmp(word->text, text, length) != 0)
            continue;
        switch (word->field) {
        case FIELD_MODE:
            settings->mode = (enum chain_mode)word->value;
            break;
        case FIELD_ORDER:
            settings->order = (enum chain_order)word->value;
            break;
        case FIELD_KEY:
            settings->key = (enum chain_key)word->value;
            break;
        case FIELD_VALUE:
            settings->value = (enum chain_value)word->value;
            break;
        }
        return true;
    }
    return false;
}

static bool set_number(struct chain_settings *settings, const char *text, size_t length,
                       bool is_first)
{
    char *end;
    double number = strtod(text, &end);
    if (end != text + length || !isfinite(number) || number < 0 || number > UINT32_MAX)
        return false;
    if (is_first)
        settings->min_percent = number;
    else
        settings->print_limit = (unsigned)number;
    return true;
}

int chain_settings_parse(struct chain_settings *settings, const char *text, const char **ret_wrong,
                         int *ret_wrong_length)
{
    bool first_number = true;
    while (*text) {
        size_t length = strcspn(text, ",");
        if (length && !set_word(settings, text, length)) {
            if (!set_number(settings, text, length, first_number)) {
                *ret_wrong = text;
                *ret_wrong_length = (int)length;
                return -EINVAL;
            }
            first_number = false;
        }
        text += length;
        text += *text == ',';
    }
    return 0;
}
