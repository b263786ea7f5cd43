/* Options as data: the lists that --sort, --comm and the like take. */
#include "report/settings.h"

#include <errno.h>
#include <string.h>

struct report_settings report_settings_default(void)
{
    return (struct report_settings){.chains = chain_settings_default(),
                                    .columns = {&column_comm, &column_dso, &column_symbol},
                                    .column_count = 3,
                                    .children = true};
}

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

int report_settings_sort(struct report_settings *settings, const char *list, const char **ret_wrong,
                         int *ret_wrong_length)
{
    settings->column_count = 0;
    for (size_t length; *list; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        *ret_wrong = list;
        *ret_wrong_length = (int)length;
        if (!length || is_word(list, length, "overhead"))
            continue;
        if (is_word(list, length, "sample")) {
            settings->samples = true;
            continue;
        }
        const struct column *column = column_find(list, length);
        if (!column)
            return -EINVAL;
        if (settings->column_count == SETTINGS_MOST_COLUMNS)
            return -E2BIG;
        settings->columns[settings->column_count++] = column;
    }
    return 0;
}

enum chain_order report_settings_order(const struct report_settings *settings)
{
    if (settings->chains.order != CHAIN_ORDER_UNSET)
        return settings->chains.order;
    return settings->children ? CHAIN_CALLER : CHAIN_CALLEE;
}

bool report_list_has(const char *list, const char *text)
{
    if (!list)
        return true;
    for (size_t length; *list; list += length + (list[length] == ',')) {
        length = strcspn(list, ",");
        if (is_word(list, length, text))
            return true;
    }
    return false;
}

bool report_list_is_single(const char *list)
{
    return list && *list && !strchr(list, ',');
}
