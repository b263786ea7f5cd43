/* Finds processes by what /proc tells of them. */
#ifndef PITVIPER_RECORD_PROC_SEARCH_H
#define PITVIPER_RECORD_PROC_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

/* The number of the process that calls itself `pid` in a PID namespace, by the namespace's own
 * number (0: not known), as seen from here; 0 when there is none. */
int32_t proc_search_by_namespace(uint32_t pid_namespace, int32_t pid);

/* Whether there is a process that has NAME=VALUE (`entry`) in the environment that it was started
 * with, and for which `wanted` is true. */
bool proc_search_environment(const char *entry, bool (*wanted)(void *context, int32_t pid),
                             void *context);

#endif
