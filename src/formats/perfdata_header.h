/* The start of a perf.data file and what it leads to: events, features, and where the records are.
 * Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_HEADER_H
#define PITVIPER_FORMATS_PERFDATA_HEADER_H

#include "formats/perfdata_features.h"

/* A part of the file. */
struct perfdata_section {
    uint64_t offset;
    uint64_t size;
};

/* Where the records are. Inside the file, whatever its header says. */
struct perfdata_extent {
    struct perfdata_section data;
    bool may_be_cut; /* the data ends where the file ends: a record may be incomplete there */
};

/* Reads the header of the file whose bytes are given, with its events and features. What is wrong
 * behind the header is noted in `damage`, and is no error. Otherwise as perfdata_open. */
int perfdata_header_read(struct cursor file, struct perfdata_facts *facts, struct damage *damage,
                         struct perfdata_extent *ret_extent, const char **ret_problem);

#endif
