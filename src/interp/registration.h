/* Which function has which trampoline, and which symbol file has its name. */
#ifndef PITVIPER_INTERP_REGISTRATION_H
#define PITVIPER_INTERP_REGISTRATION_H

#include "interp/interpreter.h"
#include "interp/symbol_file.h"
#include "interp/trampoline.h"

#include <stdbool.h>

/* One lock for arenas, files and the list of interpreters. No Python code runs while it is held,
 * and nobody waits for the GIL with it. */
void registration_lock(void);
void registration_unlock(void);

/* Makes sure that trampolines can be made. 0, or -ENOMEM where no executable memory is given. */
int registration_ready(struct interpreter *interpreter);

/* Makes sure that the file of that kind exists for this process. `keep`: see symbol_file_open.
 * 0 or negative errno. Needs the GIL. */
int registration_open(enum symbol_kind kind, bool keep);

/* Functions whose name is not in the file of the interpreter's kind take the cold path next time,
 * all others the hot one. Needs the GIL of that interpreter. */
void registration_renew(struct interpreter *interpreter);

/* The trampoline of a code object, its name written to the file of the interpreter's kind. NULL
 * when there is no memory for one. Needs the GIL; leaves exceptions as they are. */
trampoline_function *registration_of(struct interpreter *interpreter, struct py_object *code);

/* The same for a function that interp/class_calls.c is concerned with and whose name is written;
 * NULL for all others. */
trampoline_function *registration_of_init(struct interpreter *interpreter, struct py_object *code);

/* Whether this is a child that has not been looked after yet. */
bool registration_is_after_fork(void);

/* In a child: new files, and nothing is registered but what is on the calling thread's stack. */
void registration_after_fork(struct py_thread *thread);

/* The interpreter is ending: its code objects are not to be touched any more. */
void registration_forget(struct interpreter *interpreter);

/* Called by the interpreter when a code object dies, with its value. */
void registration_on_code_end(void *value);

/* For the status: the file of that kind. Valid while the lock is held. */
const struct symbol_file *registration_file(enum symbol_kind kind);

#endif
