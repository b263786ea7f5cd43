/* Versions of perf, as `perf --version` prints them. */
#ifndef PITVIPER_CMD_PERF_VERSION_H
#define PITVIPER_CMD_PERF_VERSION_H

#include <stdbool.h>

struct perf_version {
    unsigned major;
    unsigned minor;
    unsigned patch; /* 0 when there is none */
};

/* Reads `perf version 6.1.187` and its like. What a distribution adds behind a '-' is no part of
 * the version: 6.7-3 is 6.7, not 6.7.3. False when there is no version in the text. */
bool perf_version_read(const char *text, struct perf_version *ret_version);

/* Whether this perf has the fix without which unwinding through jitdump code was broken: 6.8 and
 * later, and 6.7.2 and later of 6.7. */
bool perf_version_has_jit_fix(struct perf_version version);

#endif
