/* Locals that release themselves when they go out of scope:
 *
 *     CLEANUP(cleanup_close) int fd = open(...);
 *     CLEANUP(cleanup_free) char *text = strdup(...);
 *
 * Any `void f(T *)` serves as the function, so `CLEANUP(arena_done) struct arena a;` works too. */
#ifndef PITVIPER_BASE_CLEANUP_H
#define PITVIPER_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

static inline void cleanup_free(void *pointer_to_pointer)
{
    free(*(void **)pointer_to_pointer);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline void cleanup_fclose(FILE **file)
{
    if (*file)
        fclose(*file);
}

#endif
