/* The last step of loading a profile: sums, and what is kept of the recording's own description. */
#ifndef PITVIPER_PROFILE_FINISH_H
#define PITVIPER_PROFILE_FINISH_H

#include "profile/profile.h"

/* 0 or -ENOMEM. */
int finish(struct profile *profile, const struct perfdata_reader *reader);

#endif
