#include "cmd/perf_version.h"

#include <ctype.h>
#include <stdlib.h>

/* Reads a number and moves on behind it. */
static bool read_number(const char **text, unsigned *ret_number)
{
    if (!isdigit((unsigned char)**text))
        return false;
    char *end;
    *ret_number = (unsigned)strtoul(*text, &end, 10);
    *text = end;
    return true;
}

bool perf_version_read(const char *text, struct perf_version *ret_version)
{
    *ret_version = (struct perf_version){0};
    while (*text && !isdigit((unsigned char)*text))
        text++;
    if (!read_number(&text, &ret_version->major) || *text++ != '.' ||
        !read_number(&text, &ret_version->minor))
        return false;
    if (*text == '.') {
        text++;
        read_number(&text, &ret_version->patch);
    }
    return true;
}

bool perf_version_has_jit_fix(struct perf_version version)
{
    if (version.major != 6)
        return version.major > 6;
    if (version.minor != 7)
        return version.minor > 7;
    return version.patch >= 2;
}
