/* Files are mapped where they are. A pipe can't be, and what comes out of it may be larger than
 * memory, so it goes to a temporary file without a name: it needs no removal, however the program
 * ends. /var/tmp comes before /tmp because the latter is often memory. */
#include "base/mapping.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 18 };

static int open_temporary(void)
{
    const char *folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (!folders[i] || !*folders[i])
            continue;
        int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
        if (fd >= 0)
            return fd;
    }
    return memfd_create("pitviper", MFD_CLOEXEC);
}

static int write_all(int fd, const uint8_t *bytes, size_t length)
{
    while (length) {
        ssize_t written = write(fd, bytes, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        bytes += written;
        length -= (size_t)written;
    }
    return 0;
}

static int copy_to_end(int from, int to)
{
    CLEANUP(cleanup_free) uint8_t *buffer = malloc(COPY_BYTES);
    if (!buffer)
        return -ENOMEM;
    for (;;) {
        ssize_t got = read(from, buffer, COPY_BYTES);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        int error = write_all(to, buffer, (size_t)got);
        if (error < 0)
            return error;
    }
}

static int map(int fd, struct mapping *mapping)
{
    struct stat status;
    if (fstat(fd, &status) < 0)
        return -errno;
    mapping->length = (size_t)status.st_size;
    if (!mapping->length) {
        mapping->data = (const uint8_t *)"";
        return 0;
    }
    void *data = mmap(NULL, mapping->length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return -errno;
    mapping->data = data;
    return 0;
}

static int map_pipe(int fd, struct mapping *mapping)
{
    CLEANUP(cleanup_close) int copy = open_temporary();
    if (copy < 0)
        return -errno;
    int error = copy_to_end(fd, copy);
    return error < 0 ? error : map(copy, mapping);
}

int mapping_open(const char *path, struct mapping *ret_mapping)
{
    *ret_mapping = (struct mapping){0};
    int source = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                                        : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    CLEANUP(cleanup_close) int fd = source;
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    int error = -ENODEV;
    if (S_ISREG(status.st_mode))
        error = map(fd, ret_mapping);
    else if (S_ISFIFO(status.st_mode))
        error = map_pipe(fd, ret_mapping);
    if (error < 0)
        *ret_mapping = (struct mapping){0};
    return error;
}

void mapping_forget(const struct mapping *mapping)
{
    if (mapping->length)
        madvise((void *)mapping->data, mapping->length, MADV_DONTNEED);
}

void mapping_done(struct mapping *mapping)
{
    if (mapping->length)
        munmap((void *)mapping->data, mapping->length);
    *mapping = (struct mapping){0};
}
