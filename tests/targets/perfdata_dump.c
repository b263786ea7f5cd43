/* Prints every record of a perf.data as one line, in the order in which the reader returns them:
 * for comparison with what perf itself prints.
 *
 *     perfdata_dump [--bench] FILE
 *
 *     sample EVENT PID/TID TIME_NS PERIOD IP: CHAIN...        markers are left out
 *     mmap PID START LENGTH FILEOFF PATH
 *     ...
 *
 * With --bench nothing is printed but the number of records and a checksum, and the time it took.
 */
#include "formats/perfdata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static void print_sample(const struct perfdata_record *record, const struct perfdata_info *info)
{
    const struct perfdata_sample *sample = &record->sample;
    printf("sample %s %d/%d %" PRIu64 " %" PRIu64 " %" PRIx64 ":", info->events[record->event].name,
           record->pid, record->tid, record->time_ns, sample->period, sample->ip_avma);
    for (size_t i = 0; i < sample->callchain_length; i++)
        if (!perfdata_is_marker(sample->callchain[i]))
            printf(" %" PRIx64, sample->callchain[i]);
    if (sample->type & PERF_SAMPLE_STACK_USER)
        printf(" regs %" PRIu64 ":%d stack %zu/%zu", sample->user_regs_abi,
               __builtin_popcountll(sample->user_regs_mask), sample->user_stack_length,
               sample->user_stack_room);
    putchar('\n');
}

static void print_record(const struct perfdata_record *record, const struct perfdata_info *info)
{
    switch (record->type) {
    case PERF_RECORD_SAMPLE:
        print_sample(record, info);
        break;
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        printf("mmap %d/%d %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n", record->mmap.pid,
               record->mmap.tid, record->mmap.start_avma, record->mmap.length, record->mmap.fileoff,
               record->mmap.path);
        break;
    case PERF_RECORD_COMM:
        printf("comm %d/%d %s%s\n", record->comm.pid, record->comm.tid,
               record->comm.is_exec ? "exec " : "", record->comm.name);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        printf("%s %d/%d %d/%d\n", record->type == PERF_RECORD_FORK ? "fork" : "exit",
               record->task.pid, record->task.tid, record->task.parent_pid,
               record->task.parent_tid);
        break;
    default:
        printf("other %" PRIu32 "\n", record->type);
    }
}

static uint64_t sum_of(const struct perfdata_record *record)
{
    uint64_t sum = record->time_ns;
    if (record->type == PERF_RECORD_SAMPLE) {
        sum += record->sample.ip_avma;
        for (size_t i = 0; i < record->sample.callchain_length; i++)
            sum += record->sample.callchain[i];
    }
    return sum;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    bool is_bench = argc > 1 && strcmp(argv[1], "--bench") == 0;
    struct perfdata_reader *reader;
    const char *problem;
    double start_s = now_s();
    if (argc != 2 + is_bench || perfdata_open(argv[1 + is_bench], &problem, &reader) < 0) {
        fprintf(stderr, "perfdata_dump: the file cannot be opened\n");
        return 1;
    }
    struct perfdata_record record;
    uint64_t sum = 0, count = 0;
    int result;
    while ((result = perfdata_next(reader, &record)) == 1) {
        count++;
        if (is_bench)
            sum += sum_of(&record);
        else
            print_record(&record, perfdata_info(reader));
    }
    if (is_bench)
        printf("%" PRIu64 " records, sum %" PRIx64 ", %.3f s\n", count, sum, now_s() - start_s);
    perfdata_close(reader);
    return result < 0;
}
