/* Which samples are wanted: --comms, --pid and --tid of reports and exports. */
#ifndef PITVIPER_REPORT_SAMPLE_FILTER_H
#define PITVIPER_REPORT_SAMPLE_FILTER_H

#include "profile/profile.h"

/* Names or numbers, separated by commas; NULL: all. Borrowed. */
struct sample_filter {
    const char *comms, *pids, *tids;
};

bool sample_filter_passes(const struct sample_filter *filter, const struct profile *profile,
                          const struct profile_sample *sample);

#endif
