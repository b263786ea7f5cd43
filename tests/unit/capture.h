/* What a function prints, as a string:
 *
 *     FILE *out = capture_begin();
 *     print_something(out);
 *     assert_string_equal(capture_end(out), "something"); */
#ifndef PITVIPER_UNIT_CAPTURE_H
#define PITVIPER_UNIT_CAPTURE_H

#include "unit.h"

#include <stdio.h>

static char captured[64 * 1024];

static inline FILE *capture_begin(void)
{
    memset(captured, 0, sizeof captured);
    FILE *out = fmemopen(captured, sizeof captured, "w");
    assert_non_null(out);
    return out;
}

/* Valid until the next capture_begin. */
static inline const char *capture_end(FILE *out)
{
    assert_int_equal(fclose(out), 0);
    return captured;
}

#endif
