/* How call chains are shown: perf's argument of -g, "graph,0.5,caller,function,percent". */
#ifndef PITVIPER_REPORT_CHAIN_SETTINGS_H
#define PITVIPER_REPORT_CHAIN_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

enum chain_mode {
    CHAIN_NONE,    /* no chains */
    CHAIN_GRAPH,   /* a tree, percentages of everything */
    CHAIN_FRACTAL, /* a tree, percentages of the parent */
    CHAIN_FLAT,    /* one chain below the other */
    CHAIN_FOLDED,  /* one line a chain */
};

static inline bool chain_mode_is_list(enum chain_mode mode)
{
    return mode == CHAIN_FLAT || mode == CHAIN_FOLDED;
}

enum chain_order {
    CHAIN_ORDER_UNSET, /* caller where callers have rows (--children), else callee */
    CHAIN_CALLER,      /* from the outermost function to the sampled one */
    CHAIN_CALLEE,
};

/* What makes two frames of a chain the same. */
enum chain_key { CHAIN_FUNCTION, CHAIN_ADDRESS, CHAIN_SRCLINE };

enum chain_value { CHAIN_PERCENT, CHAIN_PERIOD, CHAIN_COUNT };

struct chain_settings {
    enum chain_mode mode;
    enum chain_order order;
    enum chain_key key;
    enum chain_value value;
    double min_percent;   /* branches below are not shown */
    unsigned print_limit; /* chains per row, for flat and folded; 0: all */
};

/* What perf does without -g on a recording with chains. */
struct chain_settings chain_settings_default(void);

/* Changes the settings by what `text` names, in any order, separated by commas: a mode, an order, a
 * key, a value; the first number is min_percent, the second print_limit. Words may be shortened. 0,
 * or -EINVAL when there is something unknown in it (`*ret_wrong`, of *ret_wrong_length bytes). */
int chain_settings_parse(struct chain_settings *settings, const char *text, const char **ret_wrong,
                         int *ret_wrong_length);

#endif
