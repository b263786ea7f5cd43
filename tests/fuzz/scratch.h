/* A folder for harnesses of code that opens files. It is open as SCRATCH_FD, so that its files have
 * the same paths in every run, and a corpus can name them: SCRATCH "/jit-1.dump". */
#ifndef PITVIPER_FUZZ_SCRATCH_H
#define PITVIPER_FUZZ_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

enum { SCRATCH_FD = 100 };
#define SCRATCH "/proc/self/fd/100"

static char scratch_path[64];

/* Removes all files in it whose names start so. */
static inline void scratch_clear(const char *start)
{
    DIR *folder = opendir(SCRATCH);
    REQUIRE(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, start, strlen(start)) == 0)
            unlinkat(SCRATCH_FD, entry->d_name, 0);
    closedir(folder);
}

static inline void scratch_remove(void)
{
    scratch_clear("");
    rmdir(scratch_path);
}

static inline void scratch_make(void)
{
    snprintf(scratch_path, sizeof scratch_path, "%s/pitviper-fuzz-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(scratch_path));
    int fd = open(scratch_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0 && dup2(fd, SCRATCH_FD) == SCRATCH_FD);
    close(fd);
    REQUIRE(atexit(scratch_remove) == 0);
}

static inline void scratch_write(const char *name, const void *bytes, size_t length)
{
    int fd = openat(SCRATCH_FD, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && write(fd, bytes, length) == (ssize_t)length);
    close(fd);
}

#endif
