/* Call chains on paper: perf's drawing, in each of its modes. */
#ifndef PITVIPER_REPORT_CHAIN_DRAW_H
#define PITVIPER_REPORT_CHAIN_DRAW_H

#include "report/chain_tree.h"

#include <stdio.h>

/* Draws the tree of a row (chain_tree_make) below the row. 0 or -ENOMEM; write errors stay in the
 * FILE. */
int chain_draw(FILE *out, const struct counts *counts, const struct chain_node *root);

#endif
