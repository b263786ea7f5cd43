/* Functions as people tell them apart: those of equal name and place are one, in whatever process
 * and at whatever address. Functions without a name are one per module, "[libfoo.so]". */
#ifndef PITVIPER_EXPORT_NAMES_H
#define PITVIPER_EXPORT_NAMES_H

#include "profile/profile.h"

/* Where the code of a function belongs: what gives it its colour. */
enum export_place {
    EXPORT_PLACE_PYTHON,
    EXPORT_PLACE_EXTENSION,
    EXPORT_PLACE_INTERPRETER,
    EXPORT_PLACE_LIBC,
    EXPORT_PLACE_KERNEL,
    EXPORT_PLACE_GC,
    EXPORT_PLACE_LIBRARY, /* other programs and libraries */
    EXPORT_PLACE_UNKNOWN,
    EXPORT_PLACES
};

struct export_name {
    struct strings_text symbol; /* as perf shows it: "py::Class.method:/path/file.py" */
    struct strings_text name;   /* "Class.method"; for others the same as `symbol` */
    struct strings_text file;   /* of a Python function, or where it is known; else empty */
    uint32_t line;              /* where it begins; 0: not known */
    uint32_t function;          /* one of the profile's; its first */
    uint32_t module;
    uint8_t place; /* enum export_place */
    bool is_python;
};

struct names {
    VECTOR(struct export_name) items;
    uint32_t *of_function; /* per function of the profile */
    struct arena arena;    /* owns texts that the profile does not have */
};

/* 0 or -ENOMEM; on failure there is nothing to release. The profile must outlive the names. */
int names_init(struct names *names, const struct profile *profile);
void names_done(struct names *names);

enum export_place export_place_of(const struct profile *profile,
                                  const struct profile_function *function);

/* What people call a place: "Python", "C extension", … */
const char *export_place_label(enum export_place place);

#endif
