/* Any bytes as what a profiled process has put into its ring: the recorder survives, drains all of
 * it, and counts. The input is the data of the ring; its records get the seals that they need. */
#include "record/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

enum { RING_BYTES = 1 << 16, SEAL = 0x5ea1 };

/* Seals as many records as there are, one behind the other. Where they end. */
static uint64_t seal_records(struct sample_ring *ring)
{
    uint64_t position = 0;
    while (position + sizeof(struct sample_record) <= RING_BYTES) {
        struct sample_record *record = (void *)(ring->data + position);
        if (record->bytes < sizeof *record || record->bytes % 8 ||
            record->bytes > RING_BYTES - position)
            break;
        record->seal = sample_ring_seal(SEAL, position);
        position += record->bytes;
    }
    return position;
}

static struct sample_ring make_ring(const uint8_t *data, size_t size)
{
    struct sample_ring ring;
    char path[64];
    snprintf(path, sizeof path, "/tmp/pitviper-fuzz-%d", (int)getpid());
    REQUIRE(sample_ring_create(&ring, path, RING_BYTES) == 0);
    unlink(path);
    ring.header->seal = ring.seal = SEAL;
    memcpy(ring.data, data, size < RING_BYTES ? size : RING_BYTES);
    ring.header->head = seal_records(&ring);
    ring.header->python_minor = size ? 9 + data[0] % 7 : 0;
    return ring;
}

static void make_recording(struct recording *recording)
{
    struct perfdata_event event = {
        .name = "fuzz",
        .attr = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
                                PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_PERIOD,
                 .sample_id_all = 1}};
    *recording = (struct recording){.file.fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
    REQUIRE(recording->file.fd >= 0);
    REQUIRE(perfdata_writer_open(recording->file.fd, &event, 1, &recording->writer) == 0);
    REQUIRE(python_functions_init(&recording->functions, NULL, "fuzz") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct recording recording;
    struct code_files files;
    struct process_context context = {
        .recording = &recording, .files = &files, .now_ns = UINT64_C(1) << 60};
    struct process *process;
    struct sample_ring ring = make_ring(data, size);
    uint64_t end = ring.header->head;
    make_recording(&recording);
    code_files_init(&files, NULL);
    REQUIRE(process_room_init(&context.room) == 0);
    REQUIRE(process_open(&context, &ring, &process) == 0);
    process->has_successor = true; /* no process is to be asked */
    process_drain(process);
    REQUIRE(process->ring.header->tail == end);
    REQUIRE(process_has_ended(process));
    const struct process_counts *counts = &context.counts;
    REQUIRE(counts->complete + counts->truncated + counts->broken == counts->samples);
    /* A record is a sample, or as many as it has chains of the kernel: of three words or more. */
    REQUIRE(counts->damaged <= end / sizeof(struct sample_record));
    REQUIRE(counts->samples <= end / (3 * sizeof(uint64_t)));
    process_close(process);
    process_room_done(&context.room);
    programs_done(&context.programs);
    code_files_done(&files);
    python_functions_done(&recording.functions);
    perfdata_writer_close(recording.writer);
    close(recording.file.fd);
    return 0;
}
