/* Writes a perf.data of one process with two threads by means of the writer: for perf, to see
 * whether it is read as it was meant, and for benchmarks of the reader.
 *
 *     perfdata_make FILE SAMPLES [EVENTS]
 *
 * Every 1,000 samples a round ends. Chains are 10 frames deep. All samples are in /usr/bin/env. */
#include "formats/perfdata_writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PID = 1000, PARENT = 999, TID = 1001, FRAMES = 10, ROUND = 1000, MOST_EVENTS = 2 };

static const uint64_t START_AVMA = 0x555555554000, CODE_BYTES = 0x4000, START_NS = 1000000000;
static const char PRIVATE[] = "data of our own";

/* Exits when something can't be written. */
static void require(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "perfdata_make: %s\n", strerror(-result));
    exit(1);
}

static void write_process(struct perfdata_writer *writer)
{
    struct perfdata_record fork = {
        .type = PERF_RECORD_FORK,
        .pid = PID,
        .tid = PID,
        .task = {.pid = PID, .tid = PID, .parent_pid = PARENT, .parent_tid = PARENT}};
    struct perfdata_record comm = {
        .type = PERF_RECORD_COMM,
        .pid = PID,
        .tid = PID,
        .comm = {.pid = PID, .tid = PID, .is_exec = true, .name = "maker", .name_length = 5}};
    static const char path[] = "/usr/bin/env";
    struct perfdata_record map = {.type = PERF_RECORD_MMAP2,
                                  .misc = PERF_RECORD_MISC_USER,
                                  .pid = PID,
                                  .tid = PID,
                                  .mmap = {.pid = PID,
                                           .tid = PID,
                                           .start_avma = START_AVMA,
                                           .length = CODE_BYTES,
                                           .fileoff = 0x2000,
                                           .protection = PROT_READ | PROT_EXEC,
                                           .flags = MAP_PRIVATE,
                                           .path = path,
                                           .path_length = sizeof path - 1}};
    struct perfdata_record thread = {
        .type = PERF_RECORD_FORK,
        .pid = PID,
        .tid = PID,
        .task = {.pid = PID, .tid = TID, .parent_pid = PID, .parent_tid = PID}};
    struct perfdata_record *all[] = {&fork, &comm, &map, &thread};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        all[i]->time_ns = START_NS + i;
        require(perfdata_writer_record(writer, all[i]));
    }
}

static void write_sample(struct perfdata_writer *writer, uint64_t number, uint32_t event_count)
{
    uint64_t chain[FRAMES + 1] = {PERF_CONTEXT_USER};
    for (uint64_t i = 0; i < FRAMES; i++)
        chain[i + 1] = START_AVMA + 16 * ((number >> i) % 64) + i * 0x400;
    struct perfdata_record sample = {.type = PERF_RECORD_SAMPLE,
                                     .misc = PERF_RECORD_MISC_USER,
                                     .event = (uint32_t)(number % event_count),
                                     .pid = PID,
                                     .tid = number % 3 ? PID : TID,
                                     .time_ns = START_NS + 100 +
                                                (number ^ 1) * 1000, /* each two are exchanged */
                                     .sample = {.ip_avma = chain[1],
                                                .period = 1000 + number % 7,
                                                .callchain = chain,
                                                .callchain_length = FRAMES + 1}};
    require(perfdata_writer_record(writer, &sample));
}

static void write_end(struct perfdata_writer *writer, uint64_t count)
{
    struct perfdata_record lost = {.type = PERF_RECORD_LOST_SAMPLES,
                                   .pid = PID,
                                   .tid = PID,
                                   .time_ns = START_NS + 200 + count * 1000,
                                   .lost = {.count = 5}};
    struct perfdata_record exit_ = {
        .type = PERF_RECORD_EXIT,
        .pid = PID,
        .tid = PID,
        .time_ns = lost.time_ns + 1,
        .task = {.pid = PID, .tid = PID, .parent_pid = PARENT, .parent_tid = PARENT}};
    require(perfdata_writer_record(writer, &lost));
    require(perfdata_writer_record(writer, &exit_));
    static const char *const arguments[] = {"perfdata_make", "a b"};
    struct perfdata_build_id build_id = {.pid = -1,
                                         .misc = PERF_RECORD_MISC_USER,
                                         .id_length = 20,
                                         .id = {0xab, 0xcd},
                                         .path = "/gone"};
    struct perfdata_info info = {.hostname = "somewhere",
                                 .os_release = "6.1.0",
                                 .perf_version = "pitviper",
                                 .arch = "x86_64",
                                 .cpus_available = 2,
                                 .cpus_online = 2,
                                 .arguments = arguments,
                                 .argument_count = 2,
                                 .build_ids = &build_id,
                                 .build_id_count = 1,
                                 .private_data = (const uint8_t *)PRIVATE,
                                 .private_length = sizeof PRIVATE};
    require(perfdata_writer_finish(writer, &info));
}

int main(int argc, char **argv)
{
    static const uint64_t ids[MOST_EVENTS] = {71, 72};
    static const char *const names[MOST_EVENTS] = {"python", "native"};
    uint32_t event_count = argc == 4 ? (uint32_t)atoi(argv[3]) : 1;
    if (argc < 3 || event_count < 1 || event_count > MOST_EVENTS) {
        fprintf(stderr, "usage: perfdata_make FILE SAMPLES [EVENTS]\n");
        return 2;
    }
    struct perfdata_event events[MOST_EVENTS];
    for (size_t i = 0; i < MOST_EVENTS; i++)
        events[i] = (struct perfdata_event){
            .attr = {.type = PERF_TYPE_SOFTWARE,
                     .config = PERF_COUNT_SW_CPU_CLOCK,
                     .sample_period = 1000,
                     .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD,
                     .mmap = 1,
                     .comm = 1,
                     .task = 1,
                     .sample_id_all = 1,
                     .mmap2 = 1,
                     .comm_exec = 1,
                     .exclude_kernel = 1},
            .name = names[i],
            .ids = &ids[i],
            .id_count = 1};
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    struct perfdata_writer *writer;
    require(fd);
    require(perfdata_writer_open(fd, events, event_count, &writer));
    write_process(writer);
    uint64_t count = strtoull(argv[2], NULL, 10);
    for (uint64_t i = 0; i < count; i++) {
        write_sample(writer, i, event_count);
        if (i % ROUND == ROUND - 1)
            require(perfdata_writer_round(writer));
    }
    write_end(writer, count);
    perfdata_writer_close(writer);
    close(fd);
    return 0;
}
