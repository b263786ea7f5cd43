/* The views of `pitviper inspect`, one per file format. */
#ifndef PITVIPER_CMD_INSPECT_H
#define PITVIPER_CMD_INSPECT_H

#include "base/file.h"
#include "formats/damage.h"

#include <stdbool.h>
#include <stdint.h>

struct inspect {
    const char *path;
    struct file file; /* `data` is NULL for a perf.data on disk, which is not read whole */
    bool json;
};

/* Names longer than this are cut in the text view. */
enum { INSPECT_NAME_LIMIT = 120 };

/* Each prints what the file holds and returns an exit status. */
int inspect_perfmap(const struct inspect *inspect);
int inspect_jitdump(const struct inspect *inspect);
int inspect_perfdata(const struct inspect *inspect);

/* The first line of the text view. */
void inspect_title(const struct inspect *inspect, const char *format);

/* One row of the text view: a label of fixed width; the caller prints the rest of the line. */
void inspect_label(const char *label);

/* `12,345 things`, with the word in singular for one. */
void inspect_count(uint64_t count, const char *singular, const char *plural);

/* What is wrong with the file, at the end of either view, and the line on stderr that says so in
 * short. Returns the exit status that follows from it. */
struct json;
int inspect_damage(const struct inspect *inspect, struct json *json, const struct damage *damage);

#endif
