#include "cmd/record_summary.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

#define WITHOUT "perf events, without the kernel's functions ("
#define NO_MEMORY "too little memory may be locked: kernel.perf_event_mlock_kb, ulimit -l"

enum { MOST_NAMES = 5 };

static const char *const TRIGGERS[RECORDER_TRIGGERS] = {
    [SAMPLE_TRIGGER_NONE] = "nothing",
    [SAMPLE_TRIGGER_PERF_KERNEL] = "perf events, with the kernel's functions",
    [SAMPLE_TRIGGER_PERF] = WITHOUT NO_MEMORY ")",
    [SAMPLE_TRIGGER_PERF_USER] = WITHOUT "for these: sysctl kernel.perf_event_paranoid=1)",
    [SAMPLE_TRIGGER_CPU_TIMER] = "CPU-time timers, as often as the kernel's clock ticks",
    [SAMPLE_TRIGGER_WALL_TIMER] = "timers",
};

static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

static uint64_t rate(uint64_t count, uint64_t ns)
{
    return ns ? (uint64_t)((double)count * 1e9 / (double)ns) : 0;
}

void record_status_show(const struct recorder_summary *summary, uint64_t now_ns)
{
    static uint64_t last_samples, last_ns;
    char samples[TEXT_NUMBER_BYTES], hertz[TEXT_NUMBER_BYTES], lost[TEXT_NUMBER_BYTES];
    const struct process_counts *counts = &summary->counts;
    uint64_t per_second = rate(counts->samples - last_samples, now_ns - last_ns);
    last_samples = counts->samples;
    last_ns = now_ns;
    fprintf(stderr, "\r\033[K%.0f s, %s samples, %s a second, %s lost", (double)now_ns / 1e9,
            text_number(counts->samples, samples), text_number(per_second, hertz),
            text_number(counts->lost, lost));
    fflush(stderr);
}

void record_status_clear(void)
{
    fputs("\r\033[K", stderr);
    fflush(stderr);
}

static void print_number(const char *what, uint64_t value)
{
    char number[TEXT_NUMBER_BYTES];
    fprintf(stderr, ", %s %s", text_number(value, number), what);
}

static void print_triggers(const struct recorder_summary *summary)
{
    const char *separator = "";
    fputs("pitviper record: interrupted by ", stderr);
    for (size_t i = 0; i < RECORDER_TRIGGERS; i++) {
        if (!summary->by_trigger[i])
            continue;
        fprintf(stderr, "%s%s", separator, TRIGGERS[i]);
        if (summary->by_trigger[i] != summary->processes)
            fprintf(stderr, " (%zu of %zu processes)", summary->by_trigger[i], summary->processes);
        separator = "; ";
    }
    fputc('\n', stderr);
}

static void print_quality(const struct process_counts *counts)
{
    fprintf(stderr, "pitviper record: complete stacks %.2f %%",
            share(counts->complete, counts->samples));
    print_number("truncated", counts->truncated);
    print_number("broken", counts->broken);
    if (counts->python)
        fprintf(stderr, "; Python frames unmatched %.2f %%",
                share(counts->unmatched, counts->python));
    if (counts->cut)
        print_number("cut", counts->cut);
    if (counts->damaged)
        print_number("damaged records", counts->damaged);
    fputc('\n', stderr);
}

/* "a, b (3 times) and 2 more" */
static void print_missing(const struct recorder_summary *summary)
{
    if (!summary->missing_count)
        return;
    fputs("pitviper record: not recorded: ", stderr);
    for (size_t i = 0; i < summary->missing_count && i < MOST_NAMES; i++) {
        const struct programs_missing *missing = &summary->missing[i];
        fputs(i ? ", " : "", stderr);
        text_print(stderr, missing->name, strlen(missing->name), 0);
        if (missing->count > 1)
            fprintf(stderr, " (%zu times)", missing->count);
    }
    if (summary->missing_count > MOST_NAMES)
        fprintf(stderr, " and %zu more", summary->missing_count - MOST_NAMES);
    fputs(": static programs, those of musl, and setuid ones ignore preloading; behind a chroot "
          "there is nothing to preload\n",
          stderr);
}

static void print_problems(const struct recorder_summary *summary)
{
    if (summary->absent)
        fprintf(stderr,
                "pitviper record: %zu more processes could not be recorded: their files may not be "
                "large enough (ulimit -f)\n",
                summary->absent);
    for (size_t i = 0; i < summary->problem_count; i++) {
        const struct recorder_problem *problem = &summary->problems[i];
        fputs("pitviper record: ", stderr);
        text_print(stderr, problem->command, strlen(problem->command), 0);
        if (problem->count > 1)
            fprintf(stderr, " and %zu more processes", problem->count - 1);
        fputs(": ", stderr);
        text_print(stderr, problem->problem, strlen(problem->problem), 0);
        fputc('\n', stderr);
    }
}

void record_summary_print(const struct recorder_summary *summary, const char *path,
                          uint64_t duration_ns)
{
    const struct process_counts *counts = &summary->counts;
    char number[TEXT_NUMBER_BYTES];
    fputs("pitviper record: wrote ", stderr);
    text_print(stderr, path, strlen(path), 0);
    fprintf(stderr, ", %.2f MB: %s%s samples", (double)summary->bytes / 1e6,
            summary->is_short ? "the first of " : "", text_number(counts->samples, number));
    print_number("lost", counts->lost);
    fprintf(stderr, ", of %zu process%s in %.1f s\n", summary->processes,
            summary->processes == 1 ? "" : "es", (double)duration_ns / 1e9);
    if (counts->samples)
        print_quality(counts);
    if (summary->processes)
        print_triggers(summary);
    print_missing(summary);
    print_problems(summary);
    if (summary->image_error) {
        fputs("pitviper record: perf will have no names of Python functions, since ", stderr);
        text_print(stderr, summary->image_path, strlen(summary->image_path), 0);
        fprintf(stderr, " can't be written: %s\n", strerror(-summary->image_error));
    }
}
