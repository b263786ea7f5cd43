#include "report/sample_filter.h"

#include "report/settings.h"

#include <stdio.h>

bool sample_filter_passes(const struct sample_filter *filter, const struct profile *profile,
                          const struct profile_sample *sample)
{
    if (!filter->comms && !filter->pids && !filter->tids)
        return true;
    char text[16];
    const struct profile_thread *thread = &profile->threads.items[sample->thread];
    snprintf(text, sizeof text, "%d", profile->processes.items[thread->process].pid);
    if (!report_list_has(filter->pids, text))
        return false;
    snprintf(text, sizeof text, "%d", thread->tid);
    return report_list_has(filter->tids, text) &&
           report_list_has(filter->comms, profile_text(profile, sample->comm));
}
