/* What a recording says about itself: the header, the events, the feature sections, and the records
 * that stand for them in pipe mode. Internal to the perf.data reader. */
#ifndef PITVIPER_FORMATS_PERFDATA_FEATURES_H
#define PITVIPER_FORMATS_PERFDATA_FEATURES_H

#include "formats/perfdata_events.h"

/* Numbers of the feature sections that are read. */
enum perfdata_feature {
    PERFDATA_FEATURE_BUILD_ID = 2,
    PERFDATA_FEATURE_HOSTNAME = 3,
    PERFDATA_FEATURE_OSRELEASE = 4,
    PERFDATA_FEATURE_VERSION = 5,
    PERFDATA_FEATURE_ARCH = 6,
    PERFDATA_FEATURE_NRCPUS = 7,
    PERFDATA_FEATURE_CPUDESC = 8,
    PERFDATA_FEATURE_CPUID = 9,
    PERFDATA_FEATURE_TOTAL_MEM = 10,
    PERFDATA_FEATURE_CMDLINE = 11,
    PERFDATA_FEATURE_EVENT_DESC = 12,
    PERFDATA_FEATURE_SAMPLE_TIME = 21,
    PERFDATA_FEATURE_COMPRESSED = 27,
    PERFDATA_FEATURE_CLOCK_DATA = 29,
    PERFDATA_FEATURES = 256
};

/* A zeroed one is valid and empty. `info` points into the rest. */
struct perfdata_facts {
    struct perfdata_info info;
    struct perfdata_events events;
    VECTOR(struct perfdata_build_id) build_ids;
    struct arena arena; /* texts */
};

void perfdata_facts_done(struct perfdata_facts *facts);

/* Reads one feature section. 0, also for features that are not known; -EBADMSG when its content
 * can't be; -ENOMEM. What could be read before that stays. */
int perfdata_facts_feature(struct perfdata_facts *facts, unsigned feature, struct cursor section);

/* Reads a whole record of perf's own that tells such facts; others are ignored. The same results.
 */
int perfdata_facts_record(struct perfdata_facts *facts, const uint8_t *record, size_t length);

#endif
