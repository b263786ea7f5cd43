/* Writes a large recording like one of `pitviper record`, for tests and benchmarks of what reads
 * recordings:
 *
 *     make_recording FOLDER SAMPLES STACKS THREADS
 *
 *     FOLDER/perf.data, FOLDER/image.so       the same bytes for the same numbers
 *
 * Stacks form a tree in which each has up to eight others on top, below it ten functions that all
 * have in common. Each stack is in at least one sample when there are as many samples; the others
 * prefer few stacks, as those of real programs do. There is a process per 100 threads. Some
 * functions, files and threads have names of the worst kind. */
#include "formats/perfdata_images.h"
#include "formats/perfdata_writer.h"
#include "formats/python_image.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    FIRST_PID = 1000000000, /* no machine has it */
    THREADS_OF_PROCESS = 100,
    FUNCTIONS = 2000,
    LINES = 20,
    COMMON_FRAMES = 10,
    BRANCHES = 8,
    MOST_FRAMES = 64,
    NASTY_FIRST = 15,
    NASTY_DISTANCE = 16, /* a multiple of BRANCHES */
    LONG_NAMED = 100,
    LONG_NAME_BYTES = 10000,
    ROUND = 10000,
};

static const uint64_t START_NS = 1000000000, SAMPLE_NS = 100000, PERIOD_NS = 1000000;

/* Python's names are any text; that of threads is whatever bytes a program sets. */
static const char *const NASTY_NAMES[] = {
    "</script><script>alert(1)</script>",
    "<!--{title}-->",
    "]]><svg onload=alert(1)>",
    "quote\"quote'back\\slash",
    "semi;colon 12;34 5",
    "tab\tbell\a\033[31mred",
    "line\nline\rline",
    "Straße_\xe5\x87\xbd\xe6\x95\xb0_\xf0\x9f\x90\x8d_\xe2\x80\xae",
    "invalid_\xff\xfe\xc3",
    "(1) fn=(2) x",
    "%s%n${x}{{y}}&amp;&lt;",
    " space ",
};
enum { NASTY_COUNT = sizeof NASTY_NAMES / sizeof *NASTY_NAMES };

struct making {
    struct python_image image;
    char image_path[PATH_MAX];
    uint8_t build_id[PYTHON_IMAGE_BUILD_ID_BYTES];
    struct perfdata_writer *writer;
    uint32_t stacks, threads;
};

/* Exits when something can't be done. */
static void require(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "make_recording: %s\n", strerror(-result));
    exit(1);
}

/* A number that looks like chance, the same in every run. */
static uint64_t mix(uint64_t number)
{
    number = (number + 1) * 0x9e3779b97f4a7c15;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
    number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
    return number ^ (number >> 31);
}

static void add_functions(struct making *making)
{
    static char name[LONG_NAME_BYTES + 1];
    for (uint32_t i = 0; i < FUNCTIONS; i++) {
        char file[256];
        snprintf(name, sizeof name, "Class%u.function_%u", i / 10, i);
        snprintf(file, sizeof file, "/app/package_%u/module_%u.py", i / 100, i / 20);
        uint32_t nasty = i / NASTY_DISTANCE;
        if (i % NASTY_DISTANCE == NASTY_FIRST && nasty < NASTY_COUNT) {
            snprintf(name, sizeof name, "%s", NASTY_NAMES[nasty]);
            snprintf(file, sizeof file, "/app/%s.py", NASTY_NAMES[NASTY_COUNT - 1 - nasty]);
        }
        if (i == LONG_NAMED)
            memset(name, 'x', LONG_NAME_BYTES);
        int32_t lines[LINES];
        for (int32_t n = 0; n < LINES; n++)
            lines[n] = (int32_t)(i % 50) * LINES + n + 1;
        struct python_image_function function = {.name = name,
                                                 .name_length = strlen(name),
                                                 .file = file,
                                                 .file_length = strlen(file),
                                                 .first_line = (uint32_t)lines[0],
                                                 .lines = lines,
                                                 .line_count = LINES};
        uint32_t number;
        require(python_image_add(&making->image, &function, &number));
        memset(name, 0, sizeof name);
    }
}

static uint64_t avma_of(const struct making *making, uint64_t chance)
{
    uint32_t function = (uint32_t)chance % FUNCTIONS;
    int32_t line = (int32_t)(function % 50) * LINES + (int32_t)((chance >> 32) % LINES) + 1;
    return PYTHON_IMAGE_BASE_AVMA + python_image_address(&making->image, function, line);
}

static uint32_t pid_of(uint32_t thread)
{
    return FIRST_PID + thread / THREADS_OF_PROCESS * THREADS_OF_PROCESS;
}

static void write_thread(const struct making *making, uint32_t thread)
{
    int32_t pid = (int32_t)pid_of(thread), tid = (int32_t)(FIRST_PID + thread);
    int32_t parent = pid == tid ? 1 : pid;
    char name[64];
    snprintf(name, sizeof name, "worker-%u", thread % 10);
    if (thread % 8 == 7 && thread / 8 < NASTY_COUNT)
        snprintf(name, sizeof name, "%s", NASTY_NAMES[thread / 8]);
    struct perfdata_record fork = {
        .type = PERF_RECORD_FORK,
        .pid = pid,
        .tid = tid,
        .time_ns = START_NS,
        .task = {.pid = pid, .tid = tid, .parent_pid = parent, .parent_tid = parent}};
    struct perfdata_record comm = {
        .type = PERF_RECORD_COMM,
        .pid = pid,
        .tid = tid,
        .time_ns = START_NS,
        .comm = {.pid = pid, .tid = tid, .name = name, .name_length = strlen(name)}};
    struct perfdata_record map = {.type = PERF_RECORD_MMAP2,
                                  .misc = PERF_RECORD_MISC_USER,
                                  .pid = pid,
                                  .tid = tid,
                                  .time_ns = START_NS,
                                  .mmap = {.pid = pid,
                                           .tid = tid,
                                           .start_avma = PYTHON_IMAGE_BASE_AVMA,
                                           .length = PYTHON_IMAGE_SPAN_BYTES,
                                           .protection = PROT_READ | PROT_EXEC,
                                           .flags = MAP_PRIVATE,
                                           .build_id_size = sizeof making->build_id,
                                           .path = making->image_path,
                                           .path_length = strlen(making->image_path)}};
    memcpy(map.mmap.build_id, making->build_id, sizeof making->build_id);
    require(perfdata_writer_record(making->writer, &fork));
    require(perfdata_writer_record(making->writer, &comm));
    if (pid == tid)
        require(perfdata_writer_record(making->writer, &map));
}

/* The place in the code of a stack's innermost frame: its function and line come out of this
 * number. Siblings have functions of different numbers, so that no two stacks are the same. The
 * first stacks are those with the worst names: they are in every recording. */
static uint64_t place_of(const struct making *making, uint32_t stack)
{
    uint32_t sibling = (stack - 1) % BRANCHES, number = (stack - 1) / BRANCHES;
    uint64_t lines = mix(stack) >> 32 << 32, function = mix(stack) % (FUNCTIONS / BRANCHES);
    if (sibling == NASTY_FIRST % BRANCHES && number < NASTY_COUNT)
        return lines + NASTY_FIRST + number * NASTY_DISTANCE;
    if (sibling == LONG_NAMED % BRANCHES && stack + BRANCHES >= making->stacks)
        return lines + LONG_NAMED; /* nothing is on top of it: it would be in most of an export */
    return lines + function * BRANCHES + sibling;
}

/* Number i of a stack's children is (number * BRANCHES + 1 + i), as in a heap. */
static size_t make_chain(const struct making *making, uint32_t stack, uint64_t *chain)
{
    size_t length = 0;
    chain[length++] = (uint64_t)PERF_CONTEXT_USER;
    for (; stack && length < MOST_FRAMES; stack = (stack - 1) / BRANCHES)
        chain[length++] = avma_of(making, place_of(making, stack));
    for (uint32_t i = COMMON_FRAMES; i-- > 0;)
        chain[length++] = avma_of(making, i * 7);
    return length;
}

static uint32_t choose_stack(const struct making *making, uint64_t sample)
{
    if (sample % 2 == 0 && sample / 2 < making->stacks)
        return (uint32_t)(sample / 2);
    uint64_t chance = mix(sample) % making->stacks;
    return (uint32_t)(chance * chance / making->stacks * chance / making->stacks);
}

static void write_sample(const struct making *making, uint64_t number)
{
    uint64_t chain[MOST_FRAMES + COMMON_FRAMES];
    size_t length = make_chain(making, choose_stack(making, number), chain);
    uint32_t thread = (uint32_t)(mix(number / 5) % making->threads);
    struct perfdata_record sample = {.type = PERF_RECORD_SAMPLE,
                                     .misc = PERF_RECORD_MISC_USER,
                                     .pid = (int32_t)pid_of(thread),
                                     .tid = (int32_t)(FIRST_PID + thread),
                                     .time_ns = START_NS + (number + 1) * SAMPLE_NS,
                                     .sample = {.ip_avma = chain[1],
                                                .period = PERIOD_NS + number % 7,
                                                .callchain = chain,
                                                .callchain_length = length}};
    require(perfdata_writer_record(making->writer, &sample));
    if (number % ROUND == ROUND - 1)
        require(perfdata_writer_round(making->writer));
}

static void write_end(const struct making *making)
{
    static const char *const arguments[] = {"python3", "app.py"};
    struct python_image_bytes bytes;
    struct perfdata_images_maker images = {0};
    struct perfdata_build_id build_id = {.pid = -1,
                                         .misc = PERF_RECORD_MISC_USER,
                                         .id_length = sizeof making->build_id,
                                         .path = making->image_path};
    memcpy(build_id.id, making->build_id, sizeof making->build_id);
    require(python_image_finish(&making->image, making->build_id, &bytes));
    FILE *file = fopen(making->image_path, "w");
    require(file && fwrite(bytes.data, 1, bytes.length, file) == bytes.length && fclose(file) == 0
                ? 0
                : -EIO);
    require(perfdata_images_add(&images, making->image_path, making->build_id,
                                sizeof making->build_id, bytes.data, bytes.length));
    struct perfdata_info info = {.arch = "x86_64",
                                 .hostname = "somewhere",
                                 .os_release = "6.1.0",
                                 .cpus_available = 2,
                                 .cpus_online = 2,
                                 .arguments = arguments,
                                 .argument_count = 2,
                                 .build_ids = &build_id,
                                 .build_id_count = 1,
                                 .private_data = images.bytes.items,
                                 .private_length = images.bytes.count};
    require(perfdata_writer_finish(making->writer, &info));
    perfdata_images_maker_done(&images);
    free(bytes.data);
}

static void write_recording(struct making *making, const char *path, uint64_t samples)
{
    struct perfdata_event event = {
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_period = 1000000,
                 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD,
                 .mmap = 1,
                 .comm = 1,
                 .task = 1,
                 .sample_id_all = 1,
                 .mmap2 = 1,
                 .comm_exec = 1,
                 .exclude_kernel = 1},
        .name = "cpu-clock:u"};
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    require(fd);
    require(perfdata_writer_open(fd, &event, 1, &making->writer));
    for (uint32_t i = 0; i < making->threads; i++)
        write_thread(making, i);
    for (uint64_t i = 0; i < samples; i++)
        write_sample(making, i);
    write_end(making);
    perfdata_writer_close(making->writer);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc != 5 || strlen(argv[1]) > PATH_MAX - 16 || strtoul(argv[3], NULL, 10) < 1 ||
        strtoul(argv[4], NULL, 10) < 1) {
        fprintf(stderr, "usage: make_recording FOLDER SAMPLES STACKS THREADS\n");
        return 2;
    }
    struct making making = {.stacks = (uint32_t)strtoul(argv[3], NULL, 10),
                            .threads = (uint32_t)strtoul(argv[4], NULL, 10)};
    uint64_t samples = strtoull(argv[2], NULL, 10);
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/perf.data", argv[1]);
    snprintf(making.image_path, sizeof making.image_path, "%s/image.so", argv[1]);
    memset(making.build_id, 0xab, sizeof making.build_id);
    uint64_t which = mix(samples ^ mix(making.stacks ^ mix(making.threads)));
    memcpy(making.build_id, &which, sizeof which);
    require(python_image_init(&making.image));
    add_functions(&making);
    write_recording(&making, path, samples);
    python_image_done(&making.image);
    return 0;
}
