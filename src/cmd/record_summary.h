/* What `pitviper record` tells while it runs and at the end, on standard error. */
#ifndef PITVIPER_CMD_RECORD_SUMMARY_H
#define PITVIPER_CMD_RECORD_SUMMARY_H

#include "record/recorder.h"

/* The line that is shown while it runs; `now_ns` since the start. */
void record_status_show(const struct recorder_summary *summary, uint64_t now_ns);
void record_status_clear(void);

/* The end: how much, and how good it is. */
void record_summary_print(const struct recorder_summary *summary, const char *path,
                          uint64_t duration_ns);

#endif
