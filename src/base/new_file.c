#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_ATTEMPTS = 100 };

static bool is_direct(const char *path)
{
    struct stat status;
    return strcmp(path, "-") == 0 || (stat(path, &status) == 0 && !S_ISREG(status.st_mode));
}

static int open_direct(const char *path)
{
    int fd = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                                    : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? -errno : fd;
}

/* The name tells whose it is, should the program be killed before it can remove it. */
static int open_temporary(struct new_file *file, mode_t mode)
{
    for (int i = 0; i < MOST_ATTEMPTS; i++) {
        if (asprintf(&file->temporary, "%s.%d-%d.tmp", file->path, (int)getpid(), i) < 0) {
            file->temporary = NULL;
            return -ENOMEM;
        }
        int fd = open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (fd >= 0)
            return fd;
        int error = errno;
        free(file->temporary);
        file->temporary = NULL;
        if (error != EEXIST)
            return -error;
    }
    return -EEXIST;
}

int new_file_open(struct new_file *file, const char *path, mode_t mode)
{
    *file = (struct new_file){.fd = -1, .path = strdup(path)};
    if (!file->path)
        return -ENOMEM;
    int fd = is_direct(path) ? open_direct(path) : open_temporary(file, mode);
    if (fd < 0) {
        free(file->path);
        file->path = NULL;
        return fd;
    }
    file->fd = fd;
    return 0;
}

int new_file_write(struct new_file *file, const void *bytes, size_t length)
{
    const char *next = bytes;
    while (length) {
        ssize_t written = write(file->fd, next, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        next += written;
        length -= (size_t)written;
    }
    return 0;
}

int new_file_skip(struct new_file *file, off_t length)
{
    return lseek(file->fd, length, SEEK_CUR) < 0 ? -errno : 0;
}

int new_file_commit(struct new_file *file)
{
    int error =
        close(file->fd) < 0 ? -errno : 0; /* network file systems tell of a full disk here */
    file->fd = -1;
    if (!error && file->temporary) {
        if (rename(file->temporary, file->path) < 0)
            return -errno;
        free(file->temporary);
        file->temporary = NULL;
    }
    return error;
}

void new_file_done(struct new_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    if (file->temporary)
        unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct new_file){.fd = -1};
}
