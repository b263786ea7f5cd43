/* xdg-open ends when it has handed the file to a browser that runs, or becomes the browser itself.
 * So its failure is told by an end within a moment, and a success is no news. */
#include "cmd/web_browser.h"

#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 1500, STEP_MS = 20 };

bool web_browser_has_display(void)
{
    const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    return (x && *x) || (wayland && *wayland);
}

/* In a session of its own, without our streams. 0 or an errno. */
static int spawn(char *const argv[], pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    int error = posix_spawn(ret_pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* What runs still is well. */
static bool ended_badly(pid_t pid)
{
    int status;
    for (int waited_ms = 0; waited_ms < WAIT_MS; waited_ms += STEP_MS) {
        if (waitpid(pid, &status, WNOHANG) == pid)
            return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000L}, NULL);
    }
    return false;
}

bool web_browser_open(const char *path)
{
    char whole[PATH_MAX];
    pid_t pid;
    if (!realpath(path, whole))
        return false;
    /* $BROWSER may have arguments; the shell splits it, and evaluates nothing of it. */
    char *argv[] = {"/bin/sh", "-c", "exec ${BROWSER:-xdg-open} \"$1\"", "sh", whole, NULL};
    return spawn(argv, &pid) == 0 && !ended_badly(pid);
}
