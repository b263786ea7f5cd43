/* pitviper record [options] [--] CMD...
 *
 * Starts CMD with the shared object preloaded, whose sampler puts rings into a folder, and empties
 * them until everything has ended.
 *
 * Signals. Ctrl-C goes to CMD, by the terminal, and here it means only that the end is near; a
 * signal that somebody sends to the recorder alone is passed on. A terminal that goes tells only
 * the leader of its session: if that is the recorder, CMD is told here. What CMD started may go on
 * when it has ended: that is recorded, too, and then Ctrl-C, SIGTERM or SIGHUP ends the recording.
 */
#include "base/asan_options.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cmd/command.h"
#include "cmd/preload.h"
#include "cmd/record_summary.h"
#include "record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_NOT_RUNNABLE = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };
/* More would leave a program hardly any time between two interrupts, on slow virtual machines. */
enum { DEFAULT_HZ = 999, MOST_HZ = 20000 };
enum { OPTION_CALL_GRAPH = OPTION_LONG_ONLY };

static const uint64_t STATUS_INTERVAL_NS = 1000000000;
static const uint64_t GRACE_NS = 2000000000; /* for processes to end when they should */
static const uint64_t LATE_NS = 500000000;   /* ... to begin, when CMD has ended */

struct request {
    struct recording_settings recording;
    char **command;
    uint64_t duration_ns; /* 0: as long as CMD runs */
    bool is_quiet;
};

/* The program that is recorded. */
struct workload {
    pid_t pid;
    bool has_ended;
    bool was_stopped; /* by us: its time was over */
    int wait_status;
};

/* What signal handlers note. */
static struct {
    volatile sig_atomic_t workload; /* its pid; 0: it has ended */
    volatile sig_atomic_t ends;     /* how often we were asked to end since then, or by SIGTERM */
} noted;

/* --- signals ---------------------------------------------------------------------------------- */

/* Passes a signal on that CMD did not get itself. The kernel sends those of keys to all processes
 * in front of the terminal, and the hangup when the leader of a session ends, too; but that of a
 * terminal which is gone to the leader alone, and with it a SIGCONT for who is stopped. */
static void pass_on(pid_t workload, int number, const siginfo_t *info)
{
    bool is_from_process = info->si_code <= 0;
    bool is_for_leader = !is_from_process && number == SIGHUP && getsid(workload) == getpid();
    if (is_from_process || is_for_leader)
        kill(workload, number);
    if (is_for_leader)
        kill(workload, SIGCONT);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved_errno = errno;
    pid_t workload = noted.workload;
    if (workload)
        pass_on(workload, number, info);
    bool is_request = number != SIGUSR1 && number != SIGUSR2; /* to end */
    if (is_request && (!workload || number == SIGTERM))
        noted.ends++;
    errno = saved_errno;
}

/* What the recorder has otherwise than CMD, which inherits what was there: who ignores SIGCHLD is
 * not told how its children end. */
static struct {
    int number;
    void (*handler)(int);
    struct sigaction before;
} own_actions[] = {{.number = SIGPIPE, .handler = SIG_IGN},
                   {.number = SIGCHLD, .handler = SIG_DFL}};

enum { OWN_ACTIONS = sizeof own_actions / sizeof *own_actions };

static void take_own_actions(void)
{
    for (size_t i = 0; i < OWN_ACTIONS; i++) {
        struct sigaction action = {.sa_handler = own_actions[i].handler};
        sigaction(own_actions[i].number, &action, &own_actions[i].before);
    }
}

static void restore_actions(void)
{
    for (size_t i = 0; i < OWN_ACTIONS; i++)
        sigaction(own_actions[i].number, &own_actions[i].before, NULL);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
        struct sigaction before;
        sigaction(numbers[i], &action, &before);
        if (before.sa_handler == SIG_IGN) /* nohup, and CMD is to inherit it */
            sigaction(numbers[i], &before, NULL);
    }
    take_own_actions();
}

/* --- the program ------------------------------------------------------------------------------ */

/* In the child: becomes CMD, or tells why not. */
static void become(const struct command *self, const struct request *request, const char *folder,
                   const char *library, int failure_fd)
{
    char options[64];
    snprintf(options, sizeof options, "hz=%u,clock=%s", (unsigned)request->recording.frequency_hz,
             request->recording.is_wall ? "wall" : "cpu");
    restore_actions();
    unsetenv("PITVIPER");
    int error = ENOMEM;
    if (setenv(SAMPLE_RING_FOLDER, folder, 1) == 0 &&
        setenv(SAMPLE_RING_OPTIONS, options, 1) == 0 &&
        preload_add(ASAN_OPTIONS_NAME, ASAN_OPTIONS_ANY_ORDER) && preload_set(self, library)) {
        execvp(request->command[0], request->command);
        error = errno;
    }
    while (write(failure_fd, &error, sizeof error) < 0 && errno == EINTR)
        ;
    _exit(STATUS_NOT_FOUND);
}

/* 0, or the errno why CMD can't be run. */
static int start(const struct command *self, const struct request *request,
                 const struct recorder *recorder, const char *library, struct workload *workload)
{
    int fds[2], error = 0;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return errno;
    CLEANUP(cleanup_close) int failure_fd = fds[0];
    workload->pid = fork();
    if (workload->pid == 0)
        become(self, request, recorder_folder(recorder), library, fds[1]);
    int fork_error = errno;
    close(fds[1]);
    if (workload->pid < 0)
        return fork_error;
    noted.workload = workload->pid;
    ssize_t got;
    while ((got = read(failure_fd, &error, sizeof error)) < 0 && errno == EINTR)
        ;
    if (got != (ssize_t)sizeof error)
        return 0;
    noted.workload = 0;
    waitpid(workload->pid, &workload->wait_status, 0);
    return error;
}

static void look_after(struct workload *workload, bool waits)
{
    if (workload->has_ended)
        return;
    pid_t pid;
    while ((pid = waitpid(workload->pid, &workload->wait_status, waits ? 0 : WNOHANG)) < 0 &&
           errno == EINTR)
        ;
    if (pid == 0)
        return;
    workload->has_ended = true;
    noted.workload = 0;
}

static int status_of(const struct workload *workload)
{
    if (WIFEXITED(workload->wait_status))
        return WEXITSTATUS(workload->wait_status);
    int number = WTERMSIG(workload->wait_status);
    return workload->was_stopped && number == SIGTERM ? STATUS_OK : STATUS_SIGNAL + number;
}

/* --- recording -------------------------------------------------------------------------------- */

/* Whether the recording goes on. */
static bool goes_on(const struct request *request, struct workload *workload,
                    const struct recorder *recorder, uint64_t passed_ns, uint64_t ended_ns)
{
    if (request->duration_ns && passed_ns >= request->duration_ns) {
        if (!workload->was_stopped && !workload->has_ended)
            kill(workload->pid, SIGTERM);
        workload->was_stopped = true;
        return !workload->has_ended && noted.ends == 0 &&
               passed_ns < request->duration_ns + GRACE_NS;
    }
    if (!workload->has_ended)
        return noted.ends < 2; /* SIGTERM twice: CMD does not want to */
    return noted.ends == 0 && (recorder_summary(recorder).running > 0 ||
                               (ended_ns < LATE_NS && recorder_expects_more(recorder)));
}

/* Somebody may wait for an end that does not come. */
static void tell_of_others(const struct command *self, const struct recorder *recorder)
{
    size_t running = recorder_summary(recorder).running;
    command_error(self, "the command has ended, but %zu of its processes go on%s", running,
                  ": they are recorded until they end, or Ctrl-C");
}

static void tell_of_failure(const struct command *self, const struct request *request, int error)
{
    command_error(self, "%s could not be written: %s; what comes from now on is not recorded",
                  request->recording.path, strerror(-error));
}

static void record(const struct command *self, const struct request *request,
                   struct recorder *recorder, struct workload *workload, uint64_t start_ns)
{
    bool shows_status = isatty(STDERR_FILENO) && !request->is_quiet, was_told = request->is_quiet;
    bool has_failed = false;
    uint64_t shown_ns = start_ns, ran_ns = start_ns, now = start_ns;
    while (goes_on(request, workload, recorder, now - start_ns, now - ran_ns)) {
        int wait_ms = recorder_step(recorder);
        poll(NULL, 0, wait_ms);
        look_after(workload, false);
        now = clock_ns(CLOCK_MONOTONIC);
        ran_ns = workload->has_ended ? ran_ns : now;
        if (!has_failed && recorder_error(recorder) < 0) {
            has_failed = true;
            tell_of_failure(self, request, recorder_error(recorder));
        }
        if (!was_told && now - ran_ns >= GRACE_NS) {
            tell_of_others(self, recorder);
            was_told = true;
        }
        if (shows_status && now - shown_ns >= STATUS_INTERVAL_NS) {
            struct recorder_summary summary = recorder_summary(recorder);
            record_status_show(&summary, now - start_ns);
            shown_ns = now;
        }
    }
    if (shows_status)
        record_status_clear();
}

/* One for each process, and CMD has its own limit already. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int fail_to_run(const struct command *self, const struct request *request, int error)
{
    command_error(self, "cannot run '%s': %s", request->command[0], strerror(error));
    return error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE;
}

static int run_request(const struct command *self, const struct request *request)
{
    char library[PATH_MAX];
    struct recorder *recorder;
    struct workload workload = {0};
    const char *failed, *refusal = recording_file_refusal(request->recording.path);
    if (refusal) {
        command_error(self, "-o %s: %s", request->recording.path, refusal);
        return STATUS_FAILED;
    }
    if (!preload_find(self, library))
        return STATUS_FAILED;
    int error = recorder_open(&request->recording, &recorder, &failed);
    if (error < 0) {
        command_error(self, "cannot make %s: %s", failed, strerror(-error));
        return STATUS_FAILED;
    }
    catch_signals();
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    error = start(self, request, recorder, library, &workload);
    if (error) {
        recorder_discard(recorder);
        return fail_to_run(self, request, error);
    }
    const char *aside = recorder_keep_old(recorder);
    if (aside)
        command_error(self, "the recording of before could not be renamed, and is %s", aside);
    allow_many_files();
    record(self, request, recorder, &workload, start_ns);
    uint64_t duration_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
    error = recorder_finish(recorder);
    struct recorder_summary summary = recorder_summary(recorder);
    if (!request->is_quiet)
        record_summary_print(&summary, request->recording.path, duration_ns);
    if (!recorder_has_seen(recorder, workload.pid))
        command_error(self,
                      "'%s' itself could not be recorded: static programs, those of musl, and "
                      "setuid ones ignore preloading",
                      request->command[0]);
    if (error < 0)
        command_error(self, "%s could not be written to its end: %s", request->recording.path,
                      strerror(-error));
    recorder_close(recorder);
    look_after(&workload, true);
    int status = status_of(&workload);
    return status == STATUS_OK && error < 0 ? STATUS_FAILED : status;
}

/* --- options ---------------------------------------------------------------------------------- */

/* A number in a range; false after the line that says what is wrong. */
static bool take_number(const struct command *self, const char *what, const char *text, double most,
                        double *ret_number)
{
    char *end;
    *ret_number = strtod(text, &end);
    if (end != text && *end == '\0' && *ret_number > 0 && *ret_number <= most)
        return true;
    command_error(self, "%s is a number from 1 to %.0f, not '%s'", what, most, text);
    return false;
}

static bool take_event(const struct command *self, const char *text, bool *ret_wall)
{
    static const char *const cpu_names[] = {"cpu", "cpu-clock", "task-clock", "cpu-clock:u"};
    *ret_wall = strcmp(text, "wall") == 0;
    for (size_t i = 0; i < sizeof cpu_names / sizeof *cpu_names; i++)
        if (strcmp(text, cpu_names[i]) == 0)
            return true;
    if (!*ret_wall)
        command_error(self, "-e is 'cpu' (CPU time) or 'wall' (wall-clock time), not '%s'", text);
    return *ret_wall;
}

static bool take_option(const struct command *self, int option, const char *value,
                        struct request *request)
{
    double number;
    switch (option) {
    case 'F':
        if (!take_number(self, "the frequency", value, MOST_HZ, &number))
            return false;
        request->recording.frequency_hz = number < 1 ? 1 : (uint32_t)number;
        return true;
    case 'd':
        if (!take_number(self, "the duration in seconds", value, 1e7, &number))
            return false;
        request->duration_ns = (uint64_t)(number * 1e9);
        return true;
    case 'e':
        return take_event(self, value, &request->recording.is_wall);
    case 'o':
        request->recording.path = value;
        return true;
    case 'q':
        request->is_quiet = true;
        return true;
    default: /* -g and --call-graph: all stacks are whole */
        return true;
    }
}

static int run(const struct command *self, int argc, char **argv)
{
    struct request request = {.recording = {.path = "perf.data",
                                            .frequency_hz = DEFAULT_HZ,
                                            .arguments = argv - 1,
                                            .argument_count = (size_t)argc + 1}};
    struct options options;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return STATUS_OK;
        if (option == OPTIONS_WRONG || !take_option(self, option, options.value, &request))
            return STATUS_USAGE;
    }
    if (options_rest(&options, &request.command) < 1) {
        command_error(self, "which program? see 'pitviper help record'");
        return STATUS_USAGE;
    }
    return run_request(self, &request);
}

const struct command cmd_record = {
    .name = "record",
    .arguments = "[--] CMD...",
    .summary = "run a program and record where it spends its time",
    .details =
        "Records CMD and everything it starts, Python functions with their lines and C functions\n"
        "in one stack, as a perf.data for pitviper report and perf report. No privileges are\n"
        "needed, and nothing has to be installed in that Python (3.9 to 3.15):\n\n"
        "  pitviper record -F 9999 -g -o perf.data python my_script.py\n\n"
        "The exit status is that of CMD, or 128 + the number of the signal that ended it.\n",
    .options =
        (const struct option_spec[]){
            {"freq", 'F', "HZ", "samples a second and thread (default: 999)"},
            {"output", 'o', "FILE", "the recording (default: perf.data); an old one becomes .old"},
            {"event", 'e', "cpu|wall", "CPU time (default), or wall-clock time: waiting counts"},
            {"duration", 'd', "SECONDS", "end CMD (SIGTERM) and the recording after this time"},
            {"stacks", 'g', NULL, "no effect: stacks are always recorded"},
            {"call-graph", OPTION_CALL_GRAPH, "MODE", "no effect: stacks are always whole"},
            {"quiet", 'q', NULL, "no status, no summary"},
            {0}},
    .options_first = true,
    .run = run,
};
