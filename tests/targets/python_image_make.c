/* Writes a recording like one of `pitviper record`: Python functions as code of an image.
 *
 *     python_image_make FOLDER [bare]
 *
 *     stdin     NAME_IN_HEX FILE_IN_HEX FIRST_LINE LINE...       a line per function; - is empty
 *     FOLDER    perf.data, image.so
 *
 * Unless it is bare the recording has the image with it, too. There is one sample per function and
 * line, called by the functions before it, four at most, each in its last line. */
#include "formats/perfdata_images.h"
#include "formats/perfdata_writer.h"
#include "formats/python_image.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { PID = 1000, MOST_CALLERS = 4, ROUND = 10000 };

static const uint64_t START_NS = 1000000000;

struct function {
    VECTOR(int32_t) lines;
    uint32_t number;
};

struct making {
    struct python_image image;
    VECTOR(struct function) functions;
    char image_path[PATH_MAX];
    uint8_t build_id[PYTHON_IMAGE_BUILD_ID_BYTES];
    struct perfdata_writer *writer;
    uint64_t samples;
    bool is_bare;
};

/* Exits when something can't be done. */
static void require(int result)
{
    if (result >= 0)
        return;
    fprintf(stderr, "python_image_make: %s\n", strerror(-result));
    exit(1);
}

static int digit(char c)
{
    return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* In place. */
static size_t from_hex(char *text)
{
    if (strcmp(text, "-") == 0)
        return 0;
    size_t length = strlen(text) / 2;
    for (size_t i = 0; i < length; i++)
        text[i] = (char)(digit(text[2 * i]) << 4 | digit(text[2 * i + 1]));
    return length;
}

static void read_function(struct making *making, char *text)
{
    struct python_image_function from = {0};
    struct function function = {0};
    char *save, *name = strtok_r(text, " \n", &save), *file = strtok_r(NULL, " \n", &save);
    char *first = strtok_r(NULL, " \n", &save), *line;
    if (!first)
        exit(2);
    while ((line = strtok_r(NULL, " \n", &save)))
        require(vector_push(&function.lines, (int32_t)strtol(line, NULL, 10)));
    from.name_length = from_hex(name);
    from.file_length = from_hex(file);
    from.name = name;
    from.file = file;
    from.first_line = (uint32_t)strtoul(first, NULL, 10);
    from.lines = function.lines.items;
    from.line_count = function.lines.count;
    require(python_image_add(&making->image, &from, &function.number));
    require(vector_push(&making->functions, function));
}

static uint64_t avma_of(const struct making *making, const struct function *function, int32_t line)
{
    return PYTHON_IMAGE_BASE_AVMA + python_image_address(&making->image, function->number, line);
}

static void write_process(const struct making *making)
{
    struct perfdata_record comm = {
        .type = PERF_RECORD_COMM,
        .pid = PID,
        .tid = PID,
        .time_ns = START_NS,
        .comm = {.pid = PID, .tid = PID, .name = "python", .name_length = 6}};
    struct perfdata_record map = {.type = PERF_RECORD_MMAP2,
                                  .misc = PERF_RECORD_MISC_USER,
                                  .pid = PID,
                                  .tid = PID,
                                  .time_ns = START_NS,
                                  .mmap = {.pid = PID,
                                           .tid = PID,
                                           .start_avma = PYTHON_IMAGE_BASE_AVMA,
                                           .length = PYTHON_IMAGE_SPAN_BYTES,
                                           .protection = PROT_READ | PROT_EXEC,
                                           .flags = MAP_PRIVATE,
                                           .build_id_size = sizeof making->build_id,
                                           .path = making->image_path,
                                           .path_length = strlen(making->image_path)}};
    memcpy(map.mmap.build_id, making->build_id, sizeof making->build_id);
    require(perfdata_writer_record(making->writer, &comm));
    require(perfdata_writer_record(making->writer, &map));
}

static void write_sample(struct making *making, size_t function, int32_t line)
{
    const struct function *functions = making->functions.items;
    uint64_t chain[MOST_CALLERS + 2] = {PERF_CONTEXT_USER,
                                        avma_of(making, &functions[function], line)};
    size_t length = 2;
    for (size_t i = function; i-- > 0 && length < MOST_CALLERS + 2;)
        chain[length++] =
            avma_of(making, &functions[i], functions[i].lines.items[functions[i].lines.count - 1]);
    struct perfdata_record sample = {
        .type = PERF_RECORD_SAMPLE,
        .misc = PERF_RECORD_MISC_USER,
        .pid = PID,
        .tid = PID,
        .time_ns = START_NS + 1000 * ++making->samples,
        .sample = {
            .ip_avma = chain[1], .period = 1000, .callchain = chain, .callchain_length = length}};
    require(perfdata_writer_record(making->writer, &sample));
    if (making->samples % ROUND == 0)
        require(perfdata_writer_round(making->writer));
}

static void write_file(const char *path, const uint8_t *data, size_t length)
{
    FILE *file = fopen(path, "w");
    require(file && fwrite(data, 1, length, file) == length && fclose(file) == 0 ? 0 : -EIO);
}

static void write_end(const struct making *making)
{
    struct python_image_bytes bytes;
    struct perfdata_images_maker images = {0};
    struct perfdata_build_id build_id = {.pid = -1,
                                         .misc = PERF_RECORD_MISC_USER,
                                         .id_length = sizeof making->build_id,
                                         .path = making->image_path};
    memcpy(build_id.id, making->build_id, sizeof making->build_id);
    require(python_image_finish(&making->image, making->build_id, &bytes));
    write_file(making->image_path, bytes.data, bytes.length);
    if (!making->is_bare)
        require(perfdata_images_add(&images, making->image_path, making->build_id,
                                    sizeof making->build_id, bytes.data, bytes.length));
    struct perfdata_info info = {.arch = "x86_64",
                                 .cpus_available = 2,
                                 .cpus_online = 2,
                                 .build_ids = &build_id,
                                 .build_id_count = 1,
                                 .private_data = images.bytes.items,
                                 .private_length = images.bytes.count};
    require(perfdata_writer_finish(making->writer, &info));
    perfdata_images_maker_done(&images);
    free(bytes.data);
}

static void write_recording(struct making *making, const char *path)
{
    struct perfdata_event event = {
        .attr = {.type = PERF_TYPE_SOFTWARE,
                 .config = PERF_COUNT_SW_CPU_CLOCK,
                 .sample_period = 1000,
                 .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD,
                 .mmap = 1,
                 .comm = 1,
                 .task = 1,
                 .sample_id_all = 1,
                 .mmap2 = 1,
                 .comm_exec = 1,
                 .exclude_kernel = 1},
        .name = "cpu-clock"};
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    require(fd);
    require(perfdata_writer_open(fd, &event, 1, &making->writer));
    write_process(making);
    for (size_t i = 0; i < making->functions.count; i++)
        for (size_t n = 0; n < making->functions.items[i].lines.count; n++)
            write_sample(making, i, making->functions.items[i].lines.items[n]);
    write_end(making);
    perfdata_writer_close(making->writer);
    close(fd);
}

int main(int argc, char **argv)
{
    struct making making = {0};
    char path[PATH_MAX];
    char *text = NULL;
    size_t capacity = 0;
    if (argc < 2 || argc > 3 || strlen(argv[1]) > PATH_MAX - 16) {
        fprintf(stderr, "usage: python_image_make FOLDER [bare]\n");
        return 2;
    }
    making.is_bare = argc == 3;
    snprintf(path, sizeof path, "%s/perf.data", argv[1]);
    snprintf(making.image_path, sizeof making.image_path, "%s/image.so", argv[1]);
    require(getrandom(making.build_id, sizeof making.build_id, 0) > 0 ? 0 : -EIO);
    require(python_image_init(&making.image));
    while (getline(&text, &capacity, stdin) > 0)
        read_function(&making, text);
    free(text);
    write_recording(&making, path);
    for (size_t i = 0; i < making.functions.count; i++)
        vector_done(&making.functions.items[i].lines);
    vector_done(&making.functions);
    python_image_done(&making.image);
    return 0;
}
