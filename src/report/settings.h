/* What a report shows and how: the options of `pitviper report --stdio`. */
#ifndef PITVIPER_REPORT_SETTINGS_H
#define PITVIPER_REPORT_SETTINGS_H

#include "report/chain_settings.h"
#include "report/columns.h"
#include "report/sample_filter.h"

enum { SETTINGS_MOST_COLUMNS = 8 };

struct report_settings {
    struct chain_settings chains;
    const struct column *columns[SETTINGS_MOST_COLUMNS]; /* the keys, by which rows are made */
    size_t column_count;
    bool children;        /* rows for callers, too: what a function took with all that it called */
    bool samples;         /* a column with their number */
    double percent_limit; /* rows below are not shown */

    struct sample_filter samples_wanted;

    /* Names, separated by commas; NULL: all. Borrowed. */
    const char *dsos, *symbols;
};

/* comm, dso, symbol; chains as perf shows them; children. */
struct report_settings report_settings_default(void);

/* Sets the columns from a list such as "comm,dso,sym". `sample` sets `samples`; `overhead` is
 * always there. 0; -EINVAL with the part that is unknown; -E2BIG for too many columns. */
int report_settings_sort(struct report_settings *settings, const char *list, const char **ret_wrong,
                         int *ret_wrong_length);

/* The order of chains that follows from the settings: never CHAIN_ORDER_UNSET. */
enum chain_order report_settings_order(const struct report_settings *settings);

/* Whether a text is in a list as above; true for the list NULL. */
bool report_list_has(const char *list, const char *text);

/* Whether the list names exactly one thing: a column of it would say the same in every row. */
bool report_list_is_single(const char *list);

#endif
