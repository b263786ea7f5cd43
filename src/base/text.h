/* Text for people: names from files made safe for a terminal, sizes, and near misses. */
#ifndef PITVIPER_BASE_TEXT_H
#define PITVIPER_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Prints bytes of unknown origin: valid UTF-8 as it is, control characters and everything else as
 * \xNN, so that no name can move the cursor or break a line. Longer texts than `limit` bytes are
 * cut in the middle (… stands for the rest); 0 is no limit. */
void text_print(FILE *out, const char *bytes, size_t length, size_t limit);

/* The length in bytes of the valid UTF-8 character at the start, or 0. */
size_t text_utf8_length(const char *bytes, size_t length);

/* A whole number with separators: 1,234,567. The text is somewhere in the buffer, the caller's. */
enum { TEXT_NUMBER_BYTES = 32 };
const char *text_number(uint64_t value, char buffer[TEXT_NUMBER_BYTES]);

/* What stands behind the last slash of a path. */
const char *text_base_name(const char *path);

/* The word among `count` that `wrong` was most likely meant to be, or NULL when none is near. */
const char *text_nearest(const char *wrong, const char *const *words, size_t count);

#endif
