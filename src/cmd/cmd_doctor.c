/* pitviper doctor [--json] [PYTHON]: can this interpreter be profiled here, and with which
 * commands?
 *
 * Every line is one check with a verdict: ok; note, when something is to be known; problem, when
 * something stands in the way. What to do about it follows. At the end the command lines that work
 * for this interpreter on this machine. */
#include "base/cleanup.h"
#include "base/json.h"
#include "cmd/command.h"
#include "cmd/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum level { LEVEL_OK, LEVEL_NOTE, LEVEL_PROBLEM };

static const char *const LEVEL_NAMES[] = {"ok", "note", "problem"};

struct check {
    const char *topic;
    enum level level;
    char text[320];
};

enum { MOST_CHECKS = 16, MOST_COMMANDS = 6 };

struct doctor {
    const char *command; /* the interpreter, as the user calls it */
    struct doctor_python python;
    struct doctor_machine machine;
    struct check checks[MOST_CHECKS];
    size_t check_count;
    char commands[MOST_COMMANDS][256];
    size_t command_count;
};

static void say(struct doctor *doctor, const char *topic, enum level level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void say(struct doctor *doctor, const char *topic, enum level level, const char *format, ...)
{
    struct check *check = &doctor->checks[doctor->check_count++];
    *check = (struct check){.topic = topic, .level = level};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->text, sizeof check->text, format, arguments);
    va_end(arguments);
}

static void recommend(struct doctor *doctor, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void recommend(struct doctor *doctor, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(doctor->commands[doctor->command_count++], sizeof doctor->commands[0], format,
              arguments);
    va_end(arguments);
}

static bool is_cpython(const struct doctor_python *python)
{
    return strcmp(python->implementation, "cpython") == 0;
}

/* Whether there is a JIT mode for it, ours or its own. */
static bool has_jit_mode(const struct doctor_python *python)
{
    return !doctor_unsupported(python) || (python->has_trampoline && python->minor >= 13);
}

static void check_interpreter(struct doctor *doctor)
{
    const struct doctor_python *python = &doctor->python;
    say(doctor, "interpreter", LEVEL_OK, "%s %s%s%s, %s, %s",
        is_cpython(python) ? "CPython" : python->implementation, python->version,
        python->free_threaded ? ", free-threaded" : "", python->debug_build ? ", debug build" : "",
        python->machine, python->executable);
    if (!python->has_trampoline)
        say(doctor, "built-in", LEVEL_NOTE,
            "no trampoline support of its own (HAVE_PERF_TRAMPOLINE is not set%s)",
            is_cpython(python) && python->minor < 12 ? "; it came with 3.12" : "");
    else if (python->minor == 12)
        say(doctor, "built-in", LEVEL_OK,
            "-X perf (HAVE_PERF_TRAMPOLINE); no JIT mode before 3.13");
    else
        say(doctor, "built-in", LEVEL_OK, "-X perf and -X perf_jit (HAVE_PERF_TRAMPOLINE)");
    if (python->jit_available)
        say(doctor, "jit", LEVEL_NOTE,
            "built with CPython's JIT compiler, which excludes trampolines; keep it off with "
            "PYTHON_JIT=0");
}

static void check_frame_pointers(struct doctor *doctor)
{
    const struct doctor_python *python = &doctor->python;
    if (!python->frames_known)
        say(doctor, "frames", LEVEL_NOTE,
            "whether %s keeps frame pointers could not be told; the flags of the build %s "
            "no-omit-frame-pointer",
            python->binary, python->flag_in_build ? "have" : "lack");
    else if (python->frame_pointers)
        say(doctor, "frames", LEVEL_OK,
            "keeps frame pointers, so perf record -g sees the whole stack%s",
            python->flag_in_build ? "" : " (though the flags of the build do not say so)");
    else
        say(doctor, "frames", LEVEL_NOTE,
            "keeps no frame pointers%s: perf record -g can't follow the stack%s%s",
            python->flag_in_build ? " (though the flags of the build say so)" : "",
            has_jit_mode(python) ? "; use --call-graph dwarf with the JIT mode" : "",
            doctor_unsupported(python) ? "" : ", or samply");
}

static void check_perf(struct doctor *doctor)
{
    const struct doctor_machine *machine = &doctor->machine;
    if (!machine->has_perf) {
        say(doctor, "perf", LEVEL_PROBLEM,
            "not found; install it: apt-get install linux-perf (Ubuntu: linux-tools-generic)");
        return;
    }
    say(doctor, "perf", LEVEL_OK, "%s", machine->perf_text);
    if (machine->perf_version_known && !perf_version_has_jit_fix(machine->perf))
        say(doctor, "perf inject", LEVEL_NOTE,
            "this perf is older than 6.8 (6.7.2): unless the distribution brought the fix to it, "
            "stacks may end at the first Python function in the JIT mode");
}

static void check_permissions(struct doctor *doctor)
{
    const struct doctor_machine *machine = &doctor->machine;
    static const char remedy[] = "as root: sysctl kernel.perf_event_paranoid=1";
    if (machine->paranoid == -2)
        say(doctor, "permissions", LEVEL_PROBLEM,
            "this kernel or container has no perf events (no perf_event_paranoid)");
    else if (machine->is_root || machine->paranoid <= 1)
        say(doctor, "permissions", LEVEL_OK, "perf_event_paranoid is %d%s", machine->paranoid,
            machine->is_root ? ", and root may do everything" : "");
    else if (machine->paranoid == 2)
        say(doctor, "permissions", LEVEL_NOTE,
            "perf_event_paranoid is 2: no kernel functions, and samply refuses; %s", remedy);
    else
        say(doctor, "permissions", LEVEL_PROBLEM,
            "perf_event_paranoid is %d: perf and samply may not record; %s", machine->paranoid,
            remedy);
    if (machine->is_root && machine->has_samply && machine->paranoid > 1)
        say(doctor, "samply", LEVEL_NOTE,
            "%s; it wants perf_event_paranoid at 1, even as root: "
            "sysctl kernel.perf_event_paranoid=1",
            machine->samply_text);
    else if (machine->has_samply)
        say(doctor, "samply", LEVEL_OK, "%s", machine->samply_text);
    else
        say(doctor, "samply", LEVEL_NOTE, "not found; it is one more way to look at profiles");
}

static void check_pitviper(struct doctor *doctor)
{
    const char *unsupported = doctor_unsupported(&doctor->python);
    if (unsupported) {
        say(doctor, "pitviper", LEVEL_PROBLEM, "has no trampolines for this interpreter: %s",
            unsupported);
        say(doctor, "record", LEVEL_NOTE,
            "pitviper record sees the C functions of this interpreter, but no Python functions");
        return;
    }
    say(doctor, "pitviper", LEVEL_OK,
        "names Python functions for perf and samply: pitviper run, pitviper run --jit");
    say(doctor, "record", LEVEL_OK,
        "records without perf and privileges, with lines: pitviper record %s my_script.py, "
        "pitviper report",
        doctor->command);
}

/* How much stack perf should copy per sample, as its --call-graph wants it. */
static const char *stack_copy(const struct doctor_python *python)
{
    if (strcmp(python->optimisation, "-O0") == 0)
        return ",65528";                        /* unoptimised frames are several times as large */
    return python->minor >= 14 ? ",16384" : ""; /* about 900 bytes a call instead of 450 */
}

static void recommend_commands(struct doctor *doctor)
{
    const struct doctor_python *python = &doctor->python;
    bool ours = !doctor_unsupported(python);
    bool fp = python->frame_pointers;
    if (!has_jit_mode(python) && !(fp && python->has_trampoline))
        return;
    char run[128];
    if (ours)
        snprintf(run, sizeof run, "pitviper run%s -- %s", fp ? "" : " --jit", doctor->command);
    else
        snprintf(run, sizeof run, "%s -X %s", doctor->command, fp ? "perf" : "perf_jit");
    const char *perf = doctor->machine.perf_path;
    if (fp) {
        recommend(doctor, "%s record -F 9999 -g -o perf.data %s my_script.py", perf, run);
        recommend(doctor, "%s report -g -i perf.data", perf);
    } else {
        recommend(doctor,
                  "%s record -F 9999 -g -k 1 --call-graph dwarf%s -o perf.data %s my_script.py",
                  perf, stack_copy(python), run);
        recommend(doctor, "%s inject -i perf.data --jit --output perf.jit.data", perf);
        recommend(doctor, "%s report -g -i perf.jit.data", perf);
    }
    if (doctor->machine.has_samply && ours)
        recommend(doctor, "samply record pitviper run -- %s my_script.py", doctor->command);
    if (!fp)
        say(doctor, "stack size", LEVEL_NOTE,
            "perf copies %s bytes of stack per sample in the command below; where stacks end too "
            "early, copy more: dwarf,16384 up to dwarf,65528",
            *stack_copy(python) ? stack_copy(python) + 1 : "8192");
}

static bool has_problem(const struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->check_count; i++) {
        if (doctor->checks[i].level == LEVEL_PROBLEM)
            return true;
    }
    return false;
}

static void print_text(const struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->check_count; i++)
        printf("%-8s %-12s %s\n", LEVEL_NAMES[doctor->checks[i].level], doctor->checks[i].topic,
               doctor->checks[i].text);
    if (doctor->command_count)
        puts("\nuse:");
    for (size_t i = 0; i < doctor->command_count; i++)
        printf("  %s\n", doctor->commands[i]);
}

static void print_json(const struct doctor *doctor)
{
    const struct doctor_python *python = &doctor->python;
    struct json json;
    json_init(&json, stdout);
    json_begin_object(&json, NULL);
    json_begin_object(&json, "python");
    json_text(&json, "command", doctor->command);
    json_text(&json, "executable", python->executable);
    json_text(&json, "binary", python->binary);
    json_text(&json, "implementation", python->implementation);
    json_text(&json, "version", python->version);
    json_text(&json, "machine", python->machine);
    json_bool(&json, "have_perf_trampoline", python->has_trampoline);
    json_bool(&json, "no_omit_frame_pointer", python->flag_in_build);
    json_bool(&json, "frame_pointers", python->frame_pointers);
    json_bool(&json, "supported", !doctor_unsupported(python));
    json_end_object(&json);
    json_begin_array(&json, "checks");
    for (size_t i = 0; i < doctor->check_count; i++) {
        json_begin_object(&json, NULL);
        json_text(&json, "topic", doctor->checks[i].topic);
        json_text(&json, "level", LEVEL_NAMES[doctor->checks[i].level]);
        json_text(&json, "text", doctor->checks[i].text);
        json_end_object(&json);
    }
    json_end_array(&json);
    json_begin_array(&json, "commands");
    for (size_t i = 0; i < doctor->command_count; i++)
        json_text(&json, NULL, doctor->commands[i]);
    json_end_array(&json);
    json_end_object(&json);
}

static int run(const struct command *self, int argc, char **argv)
{
    struct options options;
    bool json = false;
    options_init(&options, self, argc, argv);
    int option;
    while ((option = options_next(&options)) != OPTIONS_END) {
        if (option == OPTIONS_HELP)
            return STATUS_OK;
        if (option == OPTIONS_WRONG)
            return STATUS_USAGE;
        if (option == 'j')
            json = true;
    }
    char **arguments;
    int count = options_rest(&options, &arguments);
    if (count > 1) {
        command_error(self, "takes one PYTHON at most; see 'pitviper help doctor'");
        return STATUS_USAGE;
    }
    struct doctor doctor = {.command = count ? arguments[0] : "python3"};
    CLEANUP(arena_done) struct arena arena = {0};
    const char *problem;
    if (doctor_ask_python(&arena, doctor.command, &doctor.python, &problem) < 0) {
        command_error(self, "%s: %s; name an interpreter, such as python3", doctor.command,
                      problem);
        return STATUS_FAILED;
    }
    doctor_ask_machine(&doctor.machine);
    check_interpreter(&doctor);
    check_frame_pointers(&doctor);
    check_perf(&doctor);
    check_permissions(&doctor);
    check_pitviper(&doctor);
    recommend_commands(&doctor);
    if (json)
        print_json(&doctor);
    else
        print_text(&doctor);
    return has_problem(&doctor) ? STATUS_FAILED : STATUS_OK;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .arguments = "[PYTHON]",
    .summary = "say how a Python interpreter can be profiled on this machine",
    .details = "Looks at PYTHON (python3 when not given), perf, samply and the kernel's settings,\n"
               "says of each whether it is ok, worth a note or a problem, and prints the commands\n"
               "that profile a program with this interpreter here.\n"
               "\n"
               "The exit status is 0 when nothing stands in the way, 1 when something does.\n",
    .options = (const struct option_spec[]){{"json", 'j', NULL, "print JSON, for scripts"}, {0}},
    .run = run,
};
