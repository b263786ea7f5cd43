/* Helps perf to forget the program that ran in this process before exec. */
#ifndef PITVIPER_INTERP_OLD_MAPPINGS_H
#define PITVIPER_INTERP_OLD_MAPPINGS_H

/* Covers what PITVIPER_MAPPINGS lists and removes the variable. Does nothing without it. */
void old_mappings_cover(void);

#endif
