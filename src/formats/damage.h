/* What a decoder could not understand in a file, and where. The first places are kept, the rest is
 * only counted, so that a file that is damaged from end to end costs no memory. */
#ifndef PITVIPER_FORMATS_DAMAGE_H
#define PITVIPER_FORMATS_DAMAGE_H

#include <stdbool.h>
#include <stddef.h>

enum { DAMAGE_MOST_PLACES = 64 };

struct damage_place {
    size_t offset;       /* in the file */
    size_t bytes;        /* how much was skipped */
    size_t line;         /* from 1; 0 in binary files */
    const char *problem; /* static */
};

/* A zeroed one says: nothing is wrong. */
struct damage {
    struct damage_place places[DAMAGE_MOST_PLACES];
    size_t count;            /* of places, kept or not */
    size_t bytes;            /* skipped in all */
    bool truncated;          /* the file ends inside its last entry */
    size_t truncated_offset; /* where that entry starts; valid with `truncated` */
};

static inline void damage_note(struct damage *damage, struct damage_place place)
{
    if (damage->count < DAMAGE_MOST_PLACES)
        damage->places[damage->count] = place;
    damage->count++;
    damage->bytes += place.bytes;
}

static inline void damage_note_truncated(struct damage *damage, size_t offset)
{
    damage->truncated = true;
    damage->truncated_offset = offset;
}

#endif
