#include "cmd/subprocess.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int read_all(int fd, struct subprocess_output *output)
{
    CLEANUP(cleanup_fclose) FILE *from = fdopen(fd, "r");
    CLEANUP(cleanup_fclose) FILE *into = open_memstream(&output->text, &output->length);
    if (!from || !into)
        return -ENOMEM;
    int c;
    while ((c = getc(from)) != EOF)
        putc(c, into);
    return 0;
}

static int wait_for(pid_t pid)
{
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR)
            return 255;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int subprocess_ask(char *const argv[], struct subprocess_output *ret_output)
{
    *ret_output = (struct subprocess_output){0};
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    int error = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return -error;
    }
    int result = read_all(ends[0], ret_output);
    ret_output->status = wait_for(pid);
    return result;
}
