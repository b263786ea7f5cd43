/* A recorder holds a lock on its folder as long as it lives, however it ends. So processes that are
 * still to come find out that nobody would read their ring (interp/sampler.c), and the next
 * recorder which folders are nobody's any more.
 *
 * Rings are removed from the folder as soon as they are mapped: there is little to be left behind.
 */
#include "record/ring_folder.h"

#include "base/cleanup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#define PREFIX "pitviper-"

enum {
    PLACES = 3,
    YOUNG_SECONDS = 10, /* it may be about to be locked */
};

static const uint64_t LEAST_ROOM = UINT64_C(256) << 20; /* in bytes */

static void find_places(const char *ret_places[PLACES])
{
    const char *temporary = getenv("TMPDIR");
    ret_places[0] = "/dev/shm";
    ret_places[1] = temporary && *temporary ? temporary : "/tmp";
    ret_places[2] = "/tmp";
}

static bool has_room(const char *path)
{
    struct statvfs status;
    return statvfs(path, &status) == 0 && (uint64_t)status.f_bavail * status.f_frsize >= LEAST_ROOM;
}

/* --- what is left behind ---------------------------------------------------------------------- */

static void remove_content(int folder_fd)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL)
        if (entry->d_name[0] != '.')
            unlinkat(folder_fd, entry->d_name, 0);
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
}

/* Whether it is one of ours that nobody holds. */
static bool is_left_behind(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
           time(NULL) - status.st_mtime > YOUNG_SECONDS && flock(fd, LOCK_EX | LOCK_NB) == 0;
}

static void remove_left_behind(const char *place)
{
    DIR *folders = opendir(place);
    struct dirent *entry;
    while (folders && (entry = readdir(folders)) != NULL) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0 ||
            strlen(entry->d_name) != strlen(PREFIX "XXXXXX"))
            continue;
        CLEANUP(cleanup_close)
        int fd =
            openat(dirfd(folders), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || !is_left_behind(fd))
            continue;
        remove_content(fd);
        unlinkat(dirfd(folders), entry->d_name, AT_REMOVEDIR);
    }
    if (folders)
        closedir(folders);
}

/* --- one's own -------------------------------------------------------------------------------- */

static int make_in(const char *place, struct ring_folder *folder)
{
    int length = snprintf(folder->path, sizeof folder->path, "%s/" PREFIX "XXXXXX", place);
    if (length >= (int)sizeof folder->path)
        return -ENAMETOOLONG;
    if (!mkdtemp(folder->path))
        return -errno;
    folder->fd = open(folder->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* 0700; but what root starts may go on as another user. */
    if (folder->fd >= 0 && flock(folder->fd, LOCK_EX | LOCK_NB) == 0 &&
        (geteuid() != 0 || fchmod(folder->fd, 01733) == 0))
        return 0;
    int error = -errno;
    ring_folder_remove(folder);
    return error;
}

int ring_folder_make(struct ring_folder *folder)
{
    const char *places[PLACES];
    int error = -ENOSPC;
    find_places(places);
    for (size_t i = 0; i < PLACES; i++)
        remove_left_behind(places[i]);
    for (size_t i = 0; i < PLACES && error < 0; i++)
        if (has_room(places[i]))
            error = make_in(places[i], folder);
    return error;
}

void ring_folder_remove(struct ring_folder *folder)
{
    if (folder->fd >= 0)
        remove_content(folder->fd);
    rmdir(folder->path);
    cleanup_close(&folder->fd);
    folder->fd = -1;
}
