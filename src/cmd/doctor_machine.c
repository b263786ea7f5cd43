/* perf, samply, and what the kernel allows. */
#include "base/cleanup.h"
#include "cmd/doctor.h"
#include "cmd/subprocess.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Copies the first line of what a program says to --version; false when it does not run. */
static bool ask_version(const char *program, char *ret_text, size_t size)
{
    char *argv[] = {(char *)program, "--version", NULL};
    struct subprocess_output output;
    if (subprocess_ask(argv, &output) < 0)
        return false;
    bool runs = output.status == 0;
    if (runs)
        snprintf(ret_text, size, "%.*s", (int)strcspn(output.text, "\n"), output.text);
    free(output.text);
    return runs;
}

/* Ubuntu's perf is a script that may find none for the running kernel; then any other one does. */
static bool find_perf(struct doctor_machine *machine)
{
    snprintf(machine->perf_path, sizeof machine->perf_path, "perf");
    if (ask_version("perf", machine->perf_text, sizeof machine->perf_text))
        return true;
    glob_t found;
    bool works = false;
    if (glob("/usr/lib/linux-tools/*/perf", 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && !works; i++) {
            works = ask_version(found.gl_pathv[i], machine->perf_text, sizeof machine->perf_text);
            if (works)
                snprintf(machine->perf_path, sizeof machine->perf_path, "%s", found.gl_pathv[i]);
        }
        globfree(&found);
    }
    return works;
}

void doctor_ask_machine(struct doctor_machine *ret_machine)
{
    *ret_machine = (struct doctor_machine){.paranoid = -2, .is_root = geteuid() == 0};
    ret_machine->has_perf = find_perf(ret_machine);
    ret_machine->perf_version_known =
        ret_machine->has_perf && perf_version_read(ret_machine->perf_text, &ret_machine->perf);
    ret_machine->has_samply =
        ask_version("samply", ret_machine->samply_text, sizeof ret_machine->samply_text);
    CLEANUP(cleanup_fclose) FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
    if (file && fscanf(file, "%d", &ret_machine->paranoid) != 1)
        ret_machine->paranoid = -2;
}
