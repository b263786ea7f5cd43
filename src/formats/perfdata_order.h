/* Records in the order of time, round by round. Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_ORDER_H
#define PITVIPER_FORMATS_PERFDATA_ORDER_H

#include "base/vector.h"

#include <stdbool.h>
#include <stdint.h>

struct perfdata_block;

struct perfdata_queued {
    uint64_t time_ns;
    const uint8_t *record;
    struct perfdata_block *block; /* that holds the record; NULL: it is in the file */
};

/* A zeroed one is valid and empty. */
struct perfdata_order {
    VECTOR(struct perfdata_queued) queue; /* up to `ready`: sorted, to be handed out from `head` */
    VECTOR(struct perfdata_queued) spare; /* the other half of merging */
    VECTOR(size_t) runs;                  /* where the sorted parts of the queue start */
    size_t head;
    size_t ready;
    uint64_t limit_ns;  /* what the end of this round completes */
    uint64_t newest_ns; /* the latest time seen */
};

void perfdata_order_done(struct perfdata_order *order);
void perfdata_order_clear(struct perfdata_order *order);

/* Only when perfdata_order_pop has nothing more. 0 or -ENOMEM. */
int perfdata_order_push(struct perfdata_order *order, struct perfdata_queued item);

/* A round is over, or everything (`all`): what is complete now can be taken. 0 or -ENOMEM. */
int perfdata_order_finish(struct perfdata_order *order, bool all);

/* Takes the next record that is complete; false when there is none. */
bool perfdata_order_pop(struct perfdata_order *order, struct perfdata_queued *ret_item);

#endif
