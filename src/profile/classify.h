/* What files and functions are for a Python program, judged by their names. */
#ifndef PITVIPER_PROFILE_CLASSIFY_H
#define PITVIPER_PROFILE_CLASSIFY_H

#include "profile/profile.h"

/* The kind of a module by its path; never PROFILE_MODULE_KERNEL or _PYTHON, which the path does not
 * tell. */
enum profile_module_kind classify_module(const char *path);

/* What a function of the interpreter does, by its name. */
enum profile_function_role classify_function(const char *name, size_t length);

/* Whether a function is where stacks start: _start, clone3, … */
bool classify_is_outermost(const char *name);

/* "py::Class.method:/path/file.py": both parts borrow the name. False for other names. */
struct classify_python {
    const char *name;
    size_t name_length;
    const char *file;
    size_t file_length;
};
bool classify_python(const char *name, size_t length, struct classify_python *ret_python);

#endif
