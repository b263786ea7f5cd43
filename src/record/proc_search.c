/* A process in a container calls itself 1, and here it is 4711. The kernel shows both, to who may
 * look: /proc/4711/ns/pid says in which namespace it is, and the last number behind "NSpid:" in
 * /proc/4711/status what it is called there. */
#include "record/proc_search.h"

#include "base/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static uint32_t namespace_of(const char *process)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%s/ns/pid", process);
    return stat(path, &status) == 0 ? (uint32_t)status.st_ino : 0;
}

/* The next process of an open /proc; 0 at the end. */
static int32_t next_process(DIR *proc)
{
    struct dirent *entry;
    while ((entry = readdir(proc)) != NULL) {
        long pid = strtol(entry->d_name, NULL, 10);
        if (pid > 0 && pid <= INT32_MAX)
            return (int32_t)pid;
    }
    return 0;
}

/* What a process calls itself. */
static int32_t inner_number(int32_t pid)
{
    char path[64], line[256];
    int32_t number = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof line, status)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        char *last = strrchr(line, '\t');
        number = last ? (int32_t)strtol(last, NULL, 10) : 0;
    }
    if (status)
        fclose(status);
    return number;
}

int32_t proc_search_by_namespace(uint32_t pid_namespace, int32_t pid)
{
    if (!pid_namespace || pid_namespace == namespace_of("self"))
        return pid;
    DIR *proc = opendir("/proc");
    int32_t each = 0, found = 0;
    while (proc && !found && (each = next_process(proc)) != 0) {
        char number[16];
        snprintf(number, sizeof number, "%d", (int)each);
        if (namespace_of(number) == pid_namespace && inner_number(each) == pid)
            found = each;
    }
    if (proc)
        closedir(proc);
    return found;
}

static bool has_entry(int32_t pid, const char *entry)
{
    char path[64];
    struct file environment;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if (file_read(path, &environment) < 0)
        return false;
    bool is_found = memmem(environment.data, environment.length, entry, strlen(entry) + 1) != NULL;
    file_done(&environment);
    return is_found;
}

bool proc_search_environment(const char *entry, bool (*wanted)(void *context, int32_t pid),
                             void *context)
{
    DIR *proc = opendir("/proc");
    int32_t pid = 0;
    bool is_found = false;
    while (proc && !is_found && (pid = next_process(proc)) != 0)
        is_found = wanted(context, pid) && has_entry(pid, entry);
    if (proc)
        closedir(proc);
    return is_found;
}
