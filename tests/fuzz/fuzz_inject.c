/* Any bytes as a recording and any bytes as the jitdump that it names: injecting ends, and from a
 * recording without damage comes one that has all that was in it, and the new mappings.
 *
 *     input: size of the recording (4 bytes), the recording, SCRATCH "/jit-1.dump" */
#include "formats/perfdata.h"
#include "record/inject.h"

#include "scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct reading {
    uint64_t samples, mappings, others;
    bool is_whole;
};

static bool read_recording(const char *path, struct reading *ret_reading)
{
    struct perfdata_reader *reader;
    struct perfdata_record record;
    const char *problem;
    int result;
    *ret_reading = (struct reading){0};
    if (perfdata_open(path, &problem, &reader) < 0)
        return false;
    while ((result = perfdata_next(reader, &record)) == 1) {
        if (record.type == PERF_RECORD_SAMPLE)
            ret_reading->samples++;
        else if (record.type == PERF_RECORD_MMAP2)
            ret_reading->mappings++;
        else
            ret_reading->others++;
    }
    REQUIRE(result == 0);
    const struct damage *damage = perfdata_damage(reader);
    ret_reading->is_whole = !damage->count && !damage->truncated;
    perfdata_close(reader);
    return true;
}

static void check_output(const struct inject_result *result)
{
    struct reading before, after;
    REQUIRE(read_recording(SCRATCH "/perf.data", &before));
    bool is_readable = read_recording(SCRATCH "/out.data", &after);
    if (!before.is_whole)
        return;
    REQUIRE(is_readable && after.is_whole && after.samples == before.samples &&
            after.others == before.others);
    REQUIRE(after.mappings == before.mappings + result->mappings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t recording_bytes;
    if (size < sizeof recording_bytes)
        return 0;
    if (!scratch_path[0])
        scratch_make();
    memcpy(&recording_bytes, data, sizeof recording_bytes);
    data += sizeof recording_bytes;
    size -= sizeof recording_bytes;
    if (recording_bytes > size)
        recording_bytes = (uint32_t)size;
    scratch_write("perf.data", data, recording_bytes);
    scratch_write("jit-1.dump", data + recording_bytes, size - recording_bytes);
    for (int per_function = 0; per_function < 2; per_function++) {
        struct inject_request request = {.input = SCRATCH "/perf.data",
                                         .output = SCRATCH "/out.data",
                                         .per_function = per_function};
        struct inject_result result;
        int error = inject_run(&request, &result);
        if (error == 0)
            check_output(&result);
        else
            REQUIRE(result.problem && result.failed_path);
        inject_result_done(&result);
        scratch_clear("jitted-");
        scratch_clear("out.data");
    }
    return 0;
}
