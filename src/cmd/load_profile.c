#include "cmd/load_profile.h"

#include "cmd/terminal.h"

#include <errno.h>
#include <string.h>

enum { WHOLE_STACKS = 1 << 16 };

struct profile_options load_profile_options(void)
{
    struct profile_options options = profile_options_default();
    options.python_lines = true;
    options.max_stack = WHOLE_STACKS;
    return options;
}

int load_profile_choose(const struct options *options, const char **path)
{
    char **rest;
    int count = options_rest(options, &rest);
    if (count > 1 || (count == 1 && *path)) {
        command_error(options->command, "takes one FILE; see 'pitviper help %s'",
                      options->command->name);
        return STATUS_USAGE;
    }
    if (!*path)
        *path = count == 1 ? rest[0] : "perf.data";
    return STATUS_OK;
}

void load_profile_error(const struct command *self, const char *path, int error,
                        const char *problem)
{
    switch (error) {
    case -ENOENT:
        command_error(self,
                      "%s: there is no such file; pitviper record and perf record write perf.data, "
                      "-i names another",
                      path);
        break;
    case -EACCES:
        command_error(self, "%s: permission denied; it belongs to another user", path);
        break;
    case -ENOMEM:
        command_error(self, "%s: memory is short for a recording of this size", path);
        break;
    default:
        command_error(self, "%s: %s", path, problem ? problem : strerror(-error));
    }
}

int load_profile(const struct command *self, const char *path,
                 const struct profile_options *options, struct profile **ret_profile)
{
    struct profile_options with_progress = *options;
    with_progress.progress = terminal_progress;
    const char *problem = NULL;
    int error = profile_load(path, &with_progress, &problem, ret_profile);
    terminal_progress_end();
    if (error < 0)
        load_profile_error(self, path, error, problem);
    return error < 0 ? STATUS_FAILED : STATUS_OK;
}

int load_profile_judge(const struct command *self, const char *path, const struct profile *profile,
                       const char *done)
{
    char problem[256];
    profile_damage(profile, problem, sizeof problem);
    if (profile->damage.count)
        command_error(self, "%s: %s; everything else is %s", path, problem, done);
    else if (profile->damage.truncated)
        command_error(self,
                      "%s: %s: still being written, or the recorder was killed; everything before "
                      "it is %s",
                      path, problem, done);
    else if (!profile->samples.count)
        command_error(self, "%s: has no samples", path);
    else
        return STATUS_OK;
    return STATUS_FAILED;
}
