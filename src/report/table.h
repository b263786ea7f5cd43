/* The report of `perf report --stdio`: a table of functions for each event, with their call chains
 * below the rows. docs/report-differences.md lists where it differs from perf's on purpose. */
#ifndef PITVIPER_REPORT_TABLE_H
#define PITVIPER_REPORT_TABLE_H

#include "report/settings.h"

#include <stdio.h>

/* Settings are taken as they fit the recording: without call chains in it there are none to show,
 * and callers have no rows. 0 or -ENOMEM; write errors stay in the FILE. */
int table_print(FILE *out, const struct profile *profile, const struct report_settings *settings);

#endif
