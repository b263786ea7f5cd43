/* Manners of a command that prints much or takes long: a line of progress while it works, a clean
 * terminal when it is interrupted, and no fuss when nobody reads its output any more. */
#ifndef PITVIPER_CMD_TERMINAL_H
#define PITVIPER_CMD_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

/* From here on SIGINT clears the line of progress and resets colours before it ends the program,
 * and writing to a closed pipe ends it quietly, with the status below (0 at first). `what` is the
 * first word of the progress line; borrowed. */
void terminal_begin(const char *what);
void terminal_set_status(int status);

/* Until the next call, a program that is interrupted removes this file, which must not be left half
 * written; NULL: none. Borrowed. Interrupts are held back while such a file appears and goes. */
void terminal_set_temporary(const char *path);
void terminal_hold_interrupts(bool hold);

/* Whether standard output is a terminal that may be coloured: not with NO_COLOR, not if dumb. */
bool terminal_has_colour(void);

/* Shows how much is done, on standard error: not before a second has passed, only on a terminal,
 * ten times a second at most. The signature is that of profile_options.progress; returns true. */
bool terminal_progress(void *context, uint64_t done, uint64_t total);
void terminal_progress_end(void);

#endif
