/* What code a process has mapped, as it changes, and the records that tell readers of it. */
#ifndef PITVIPER_RECORD_PROCESS_MAPS_H
#define PITVIPER_RECORD_PROCESS_MAPS_H

#include "record/code_files.h"
#include "record/recording.h"

struct process_mapping {
    uint64_t start_avma, end_avma;
    uint64_t fileoff;
    uint64_t bias;          /* avma - svma; valid with `has_bias` */
    struct code_file *file; /* NULL: generated code */
    bool has_bias;
};

struct process_maps {
    VECTOR(struct process_mapping) items; /* ascending, disjoint */
    uint64_t list_ns;                     /* when the list was read; 0: there is none */
};

void process_maps_done(struct process_maps *maps);

/* The mapping at an address, or NULL. Valid until the next update. */
const struct process_mapping *process_maps_find(const struct process_maps *maps, uint64_t avma);

/* What is mapped now, read at task.time_ns. Writes a record for each mapping that is new. A mapping
 * may have been there for a while: unless it stands where another one was, it counts from the time
 * of the list before. Whether anything has changed, or -ENOMEM. */
int process_maps_update(struct process_maps *maps, struct code_files *files,
                        struct recording *recording, struct recording_task task,
                        struct maps_text text);

#endif
