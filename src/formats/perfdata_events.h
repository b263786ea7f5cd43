/* The events of a recording, and where their samples keep what is needed before they are decoded.
 * Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_EVENTS_H
#define PITVIPER_FORMATS_PERFDATA_EVENTS_H

#include "base/arena.h"
#include "base/cursor.h"
#include "base/hashtable.h"
#include "base/vector.h"
#include "formats/perfdata.h"

/* Of a field that is not there. */
enum { PERFDATA_NOWHERE = 0 };

/* Where records of an event have their time and id. */
struct perfdata_layout {
    uint16_t sample_time;   /* in a sample, from the start of the record */
    uint16_t sample_id;     /* the same */
    uint16_t trailer_time;  /* in other records, back from the end of the record */
    uint16_t trailer_id;    /* the same */
    uint16_t trailer_bytes; /* of what follows the body of other records */
};

/* A zeroed one is valid and empty. */
struct perfdata_events {
    VECTOR(struct perfdata_event) list;
    VECTOR(struct perfdata_layout) layouts; /* as many */
    struct hashtable ids;                   /* id -> index */
    struct arena arena;                     /* names and ids */
};

void perfdata_events_done(struct perfdata_events *events);

/* Adds an event: `attr` holds the bytes of its attribute, `ids` its ids to the end of the cursor.
 * 0; -EBADMSG when the attribute is no such thing; -ENOMEM. */
int perfdata_events_add(struct perfdata_events *events, struct cursor attr, struct cursor ids);

/* Gives the event a name of the file's. 0 or -ENOMEM. */
int perfdata_events_rename(struct perfdata_events *events, size_t index, const char *name,
                           size_t length);

/* The event that an id belongs to; 0, which synthesized records have, is the first one. */
bool perfdata_events_find(const struct perfdata_events *events, uint64_t id, size_t *ret_index);

/* The event of a whole record; false when the file does not describe it. */
bool perfdata_events_of(const struct perfdata_events *events, const uint8_t *record,
                        size_t *ret_index);

/* The time of a whole record, or 0. */
uint64_t perfdata_events_time(const struct perfdata_events *events, const uint8_t *record);

#endif
