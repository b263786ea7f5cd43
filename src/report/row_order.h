/* The rows of a table in perf's order. */
#ifndef PITVIPER_REPORT_ROW_ORDER_H
#define PITVIPER_REPORT_ROW_ORDER_H

#include "report/counts.h"

/* The rows that are shown, in order: malloc'ed, the caller's to free. Leaves out rows without
 * samples of their own when callers are not shown, and those that the filters --dso and --symbol
 * leave out. 0 or -ENOMEM. */
int row_order_make(const struct counts *counts, uint32_t **ret_rows, size_t *ret_count);

/* What columns make a cell of the row from. */
struct column_source row_source(const struct counts *counts, uint32_t row);

#endif
