/* A recorder holds a lock on its folder as long as it lives, however it ends. So processes that are
 * still to come find out that nobody would read their ring (interp/sampler.c), and the next
 * recorder which folders are nobody's any more.
 *
 * Rings are removed from the folder as soon as they are mapped: there is little to be left behind.
 */
#include "record/ring_folder.h"

#include "base/cleanup.h"
#include "formats/sample_ring.h"

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

#define PREFIX "pitviper-rings-"

enum {
    MOST_PLACES = 3,
    YOUNG_SECONDS = 10, /* it may be about to be locked */
};

static const uint64_t LEAST_ROOM = UINT64_C(256) << 20; /* in bytes */

/* How many. */
static size_t find_places(const char *ret_places[MOST_PLACES])
{
    const char *temporary = getenv("TMPDIR");
    size_t count = 0;
    ret_places[count++] = "/dev/shm";
    if (temporary && *temporary && strcmp(temporary, "/tmp") != 0)
        ret_places[count++] = temporary;
    ret_places[count++] = "/tmp";
    return count;
}

/* What root starts may go on as another user, and has to see the lock. */
static mode_t mode(void)
{
    return geteuid() == 0 ? 01777 : 0700;
}

static bool has_room(const char *path)
{
    struct statvfs status;
    return statvfs(path, &status) == 0 && (uint64_t)status.f_bavail * status.f_frsize >= LEAST_ROOM;
}

/* --- what is left behind ---------------------------------------------------------------------- */

/* "4711.0.ring" or "4711.none" */
static bool is_ring(const char *name)
{
    const char *end = name + strspn(name, "0123456789.");
    return end > name + 1 && name[0] != '.' &&
           (strcmp(end - 1, SAMPLE_RING_SUFFIX) == 0 ||
            strcmp(end - 1, SAMPLE_RING_ABSENT_SUFFIX) == 0);
}

/* Removes the rings. Whether nothing else was there. */
static bool remove_rings(int folder_fd)
{
    int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *entry;
    bool is_empty = folder != NULL;
    while (folder && (entry = readdir(folder)) != NULL) {
        if (is_ring(entry->d_name))
            unlinkat(folder_fd, entry->d_name, 0);
        else if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            is_empty = false;
    }
    if (folder)
        closedir(folder);
    else if (fd >= 0)
        close(fd);
    return is_empty;
}

/* Whether it looks like ours, and nobody holds it. */
static bool is_left_behind(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && status.st_uid == geteuid() &&
           (status.st_mode & 07777) == mode() && time(NULL) - status.st_mtime > YOUNG_SECONDS &&
           flock(fd, LOCK_EX | LOCK_NB) == 0;
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
        if (remove_rings(fd))
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
    if (folder->fd >= 0 && flock(folder->fd, LOCK_EX | LOCK_NB) == 0 &&
        fchmod(folder->fd, mode()) == 0)
        return 0;
    int error = -errno;
    ring_folder_remove(folder);
    return error;
}

int ring_folder_make(struct ring_folder *folder)
{
    const char *places[MOST_PLACES];
    size_t count = find_places(places);
    int error = -ENOSPC;
    for (size_t i = 0; i < count; i++)
        remove_left_behind(places[i]);
    for (size_t i = 0; i < count && error < 0; i++)
        if (has_room(places[i]))
            error = make_in(places[i], folder);
    return error;
}

void ring_folder_remove(struct ring_folder *folder)
{
    if (folder->fd >= 0)
        (void)remove_rings(folder->fd);
    rmdir(folder->path);
    cleanup_close(&folder->fd);
    folder->fd = -1;
}
