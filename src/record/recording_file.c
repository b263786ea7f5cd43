/* Renaming is for recordings only. Who names /dev/stdout, a terminal or a pipe as the output would
 * else find it renamed, and the machine broken; and none of them can hold a recording, whose header
 * is written last. So a path has to be that of a regular file, or of none.
 *
 * Until it is clear that there is something to record, the old recordings must not be lost:
 *
 *     before               open                        keep_old          or remove
 *     perf.data      one   perf.data            new    perf.data   new   perf.data      one
 *     perf.data.old  two   perf.data.old        two    ….old       one   perf.data.old  two
 *                          perf.data.PID.tmp    one
 */
#include "record/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_standard_stream(const struct stat *status)
{
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat stream;
        if (fstat(fd, &stream) == 0 && stream.st_dev == status->st_dev &&
            stream.st_ino == status->st_ino)
            return true;
    }
    return false;
}

/* What is at a path, by links: 1: a file; 0: nothing; or a negative errno. */
static int look_at(const char *path, struct stat *ret_status)
{
    if (stat(path, ret_status) == 0)
        return 1;
    return errno == ENOENT ? 0 : -errno;
}

static bool fits(int written)
{
    return written >= 0 && written < PATH_MAX;
}

/* The file behind all links. 0 or a negative errno. */
static int find_place(const char *path, char ret_place[PATH_MAX])
{
    struct stat status;
    if (lstat(path, &status) == 0 && S_ISLNK(status.st_mode))
        return realpath(path, ret_place) ? 0 : -errno;
    return fits(snprintf(ret_place, PATH_MAX, "%s", path)) ? 0 : -ENAMETOOLONG;
}

/* 0, or -ENAMETOOLONG. */
static int name_old(const char *place, char ret_old[PATH_MAX])
{
    return fits(snprintf(ret_old, PATH_MAX, "%s.old", place)) ? 0 : -ENAMETOOLONG;
}

/* Whether what the old recording would replace is no file. */
static bool is_old_taken(const char *path)
{
    char place[PATH_MAX], old[PATH_MAX];
    struct stat status;
    return find_place(path, place) == 0 && name_old(place, old) == 0 && lstat(old, &status) == 0 &&
           !S_ISREG(status.st_mode) && !S_ISLNK(status.st_mode);
}

const char *recording_file_refusal(const char *path)
{
    struct stat status;
    if (strcmp(path, "-") == 0)
        return "a recording cannot be written to standard output; name a file, and copy that";
    int found = look_at(path, &status);
    if (found == 0 && lstat(path, &status) == 0)
        return "this is a link to a file that is not there; make that, or remove the link";
    if (found <= 0)
        return NULL;
    if (S_ISDIR(status.st_mode))
        return "this is a folder; name a file";
    if (!S_ISREG(status.st_mode))
        return "a recording cannot be written to a device, pipe or socket; name a file";
    if (is_standard_stream(&status))
        return "this is where standard output or standard error goes; name another file";
    if (is_old_taken(path))
        return "there is a recording, and what has its name with .old is no file; name another";
    return NULL;
}

static int set_aside(struct recording_file *file)
{
    struct stat status;
    int found = look_at(file->path, &status);
    if (found <= 0)
        return found;
    if (!fits(snprintf(file->aside, PATH_MAX, "%s.%d.tmp", file->path, (int)getpid()))) {
        file->aside[0] = '\0';
        return -ENAMETOOLONG;
    }
    if (rename(file->path, file->aside) == 0)
        return 0;
    file->aside[0] = '\0';
    return -errno;
}

static void put_back(struct recording_file *file)
{
    if (file->aside[0])
        rename(file->aside, file->path);
    file->aside[0] = '\0';
}

int recording_file_open(struct recording_file *file, const char *path)
{
    *file = (struct recording_file){.fd = -1};
    if (recording_file_refusal(path))
        return -EINVAL;
    int error = find_place(path, file->path);
    if (error == 0)
        error = set_aside(file);
    if (error < 0)
        return error;
    file->fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file->fd >= 0)
        return 0;
    error = -errno;
    put_back(file);
    return error;
}

int recording_file_keep_old(struct recording_file *file)
{
    char old[PATH_MAX];
    if (!file->aside[0])
        return 0;
    int error = name_old(file->path, old);
    if (error == 0 && rename(file->aside, old) < 0)
        error = -errno;
    if (error == 0)
        file->aside[0] = '\0';
    return error;
}

int recording_file_close(struct recording_file *file)
{
    int fd = file->fd;
    file->fd = -1;
    return fd >= 0 && close(fd) < 0 ? -errno : 0;
}

void recording_file_remove(struct recording_file *file)
{
    recording_file_close(file);
    unlink(file->path);
    put_back(file);
}
