/* Switching the trampolines on and off, per interpreter. All of it needs the GIL. */
#ifndef PITVIPER_INTERP_ACTIVATION_H
#define PITVIPER_INTERP_ACTIVATION_H

#include "interp/symbol_file.h"

#include <stdbool.h>

/* Why trampolines cannot be had in this interpreter (static), or NULL when they can. */
const char *activation_obstacle(void);

/* On, with names in the file of that kind; from the other kind to this one when it is on already.
 * False with a Python exception set when it cannot be done; then nothing has changed. */
bool activation_activate(enum symbol_kind kind);

/* Off; whatever hook was there before ours is back. Never fails. */
void activation_deactivate(void);

bool activation_is_active(void);

#endif
