/* Where a perf map is. perf looks at /tmp/perf-PID.map of the machine that it runs on. A program in
 * a container has its own /tmp and another PID there: as long as it runs, /proc/PID/root leads to
 * that /tmp, and NSpid in /proc/PID/status tells the PID. A process that took the PID since would
 * mislead; its map would not fit the addresses. */
#include "symbol/jit_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* The PID in the innermost namespace of a running process; `pid` itself when it is gone. */
static pid_t namespace_pid(pid_t pid)
{
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    CLEANUP(cleanup_fclose) FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        const char *last = strrchr(line, '\t');
        if (strncmp(line, "NSpid:", 6) == 0 && last) {
            long found = strtol(last + 1, NULL, 10);
            return found > 0 && found <= INT_MAX ? (pid_t)found : pid;
        }
    }
    return pid;
}

int jit_file_read(const char *path, pid_t pid, struct file *ret_file)
{
    char inside[PATH_MAX];
    if (snprintf(inside, sizeof inside, "/proc/%d/root%s", (int)pid, path) < (int)sizeof inside) {
        int error = file_read_regular(inside, ret_file);
        if (error == 0 || error == -ENOMEM)
            return error;
    }
    return file_read_regular(path, ret_file);
}

/* Reads the map under the PID that the program knows, else under the one that the recording has. */
static int find_file(const char *dir, pid_t pid, struct file *ret_file)
{
    char path[PATH_MAX];
    pid_t inner = namespace_pid(pid);
    snprintf(path, sizeof path, "%s/perf-%d.map", dir, (int)inner);
    int error = jit_file_read(path, pid, ret_file);
    if (error == 0 || error == -ENOMEM || inner == pid)
        return error;
    snprintf(path, sizeof path, "%s/perf-%d.map", dir, (int)pid);
    return jit_file_read(path, pid, ret_file);
}

int jit_map_open(struct jit_map *map, const char *dir, pid_t pid)
{
    *map = (struct jit_map){0};
    int error = find_file(dir ? dir : "/tmp", pid, &map->file);
    if (error < 0)
        return error;
    error = perfmap_index_init(&map->index, "perf map", map->file.data, map->file.length);
    if (error < 0)
        file_done(&map->file);
    return error;
}

void jit_map_done(struct jit_map *map)
{
    perfmap_index_done(&map->index);
    file_done(&map->file);
}

bool jit_map_find(const struct jit_map *map, uint64_t avma, struct symbol *ret_symbol)
{
    const struct perfmap_entry *entry = perfmap_index_find(&map->index, avma);
    if (!entry)
        return false;
    *ret_symbol = (struct symbol){.name = entry->name,
                                  .name_length = entry->name_length,
                                  .start = entry->start,
                                  .size = entry->size};
    return true;
}
