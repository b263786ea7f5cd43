#include "base/file.h"

#include "base/checked.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_BYTES = 64 * 1024 };

void file_done(struct file *file)
{
    free(file->data);
    *file = (struct file){0};
}

/* Reads to the end of `fd`, doubling the buffer when it is full. */
static int read_to_end(int fd, size_t capacity, struct file *file)
{
    for (;;) {
        uint8_t *grown = realloc(file->data, capacity);
        if (!grown)
            return -ENOMEM;
        file->data = grown;
        while (file->length < capacity) {
            ssize_t got = read(fd, file->data + file->length, capacity - file->length);
            if (got < 0 && errno == EINTR)
                continue;
            if (got < 0)
                return -errno;
            if (got == 0)
                return 0;
            file->length += (size_t)got;
        }
        if (!checked_mul(capacity, 2, &capacity))
            return -ENOMEM;
    }
}

static int read_open(int fd, const struct stat *status, struct file *ret_file)
{
    size_t capacity = FIRST_BYTES;
    if (status->st_size > 0 && !checked_add((size_t)status->st_size, 1, &capacity))
        return -ENOMEM;
    int error = read_to_end(fd, capacity, ret_file);
    if (error < 0)
        file_done(ret_file);
    return error;
}

int file_read(const char *path, struct file *ret_file)
{
    *ret_file = (struct file){0};
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    if (S_ISDIR(status.st_mode))
        return -EISDIR;
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        return -ENODEV;
    return read_open(fd, &status, ret_file);
}

int file_read_regular(const char *path, struct file *ret_file)
{
    *ret_file = (struct file){0};
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return -errno;
    return S_ISREG(status.st_mode) ? read_open(fd, &status, ret_file) : -ENOENT;
}
