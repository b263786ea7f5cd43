/* What code a process has, and how to unwind it.
 *
 * Mappings. A process tells what it has mapped when it starts and when it ends. In between, code at
 * an address that is not in the list means that there is more (dlopen): /proc has it if the process
 * still runs, and if it has ended, the list of its end is farther on in the ring. A list that is
 * newer than the samples says all there is to say of them. Garbage can look like code, too: so the
 * wait for the next list is longer each time one brought nothing.
 *
 * Generated code has no table to unwind by, and is followed by its instructions (generated_code.c).
 * So is code of a file that needs the process's memory for it: what libffi calls back through are
 * pages of its file, mapped once more, beside pages with pointers.
 * It is noted where trampolines are, since merging leaves them out. */
#include "record/process_code.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "record/ring_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const uint64_t FIRST_WAIT_NS = 1000000, LONGEST_WAIT_NS = 128000000;

/* --- lists of mappings ------------------------------------------------------------------------ */

static void wait_longer(struct process *process)
{
    if (process->maps_wait_ns < FIRST_WAIT_NS)
        process->maps_wait_ns = FIRST_WAIT_NS;
    else if (process->maps_wait_ns < LONGEST_WAIT_NS)
        process->maps_wait_ns *= 2;
}

void process_code_list(struct process *process, uint64_t time_ns, struct maps_text text)
{
    struct process_context *context = process->context;
    struct recording_task task = {.pid = process->pid, .tid = process->pid, .time_ns = time_ns};
    int changed =
        process_maps_update(&process->maps, context->files, context->recording, task, text);
    if (changed > 0) {
        unwinder_forget(process->unwinder);
        code_rules_forget(&process->generated.rules);
        process->maps_wait_ns = FIRST_WAIT_NS;
    } else {
        wait_longer(process);
    }
    process->wants_maps = false;
}

/* The next list of mappings that is in the ring already. */
static bool take_maps_ahead(struct process *process)
{
    uint64_t position = atomic_load_explicit(&process->ring.header->tail, memory_order_relaxed);
    const struct sample_record *record;
    size_t seen = 0;
    while (seen < process->ring.data_bytes &&
           (record = sample_ring_peek_at(&process->ring, position)) != NULL) {
        uint32_t bytes = *(const volatile uint32_t *)&record->bytes;
        struct ring_record decoded;
        if (record->type == SAMPLE_RECORD_MAPS &&
            ring_record_decode(record, process->ring.data_bytes, &decoded) == 0) {
            process_code_list(process, decoded.time_ns,
                              maps_text_init(decoded.text.bytes, decoded.text.length));
            return true;
        }
        if (bytes < sizeof *record)
            break;
        position += bytes;
        seen += bytes;
    }
    return false;
}

/* Nothing is left to a process that is ending. */
static bool has_maps(const char *path)
{
    char first;
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 && read(fd, &first, 1) == 1;
}

static bool take_maps_of_proc(struct process *process, uint64_t time_ns)
{
    char path[64];
    struct file file;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)process->pid);
    if (process->has_successor || file_read(path, &file) < 0)
        return false;
    bool is_whole = has_maps(path); /* else it may have ended while it was read */
    if (is_whole)
        process_code_list(process, time_ns, maps_text_init((const char *)file.data, file.length));
    file_done(&file);
    return is_whole;
}

void process_code_refresh(struct process *process)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    if (process->newest_ns < process->maps.list_ns)
        return;
    if (process->maps.list_ns && now_ns < process->maps.list_ns + process->maps_wait_ns) {
        process->wants_maps = true;
        return;
    }
    if (!take_maps_of_proc(process, now_ns) && !take_maps_ahead(process)) {
        process->maps.list_ns = now_ns;
        wait_longer(process);
    }
}

/* --- code ------------------------------------------------------------------------------------- */

static void note_range(struct merge_range *ranges, size_t *count,
                       const struct process_mapping *mapping)
{
    struct merge_range range = {mapping->start_avma, mapping->end_avma};
    for (size_t i = 0; i < *count; i++)
        if (memcmp(&ranges[i], &range, sizeof range) == 0)
            return;
    if (*count < PROCESS_RANGES)
        ranges[(*count)++] = range;
}

/* greenlet/_greenlet.cpython-311-x86_64-linux-gnu.so; without the underscore before its 1.0. */
static bool starts_greenlets(const struct code_file *file)
{
    const char *slash = strrchr(file->path, '/'), *name = slash ? slash + 1 : file->path;
    name += *name == '_';
    return strncmp(name, "greenlet.", strlen("greenlet.")) == 0;
}

bool process_code_find(void *data, uint64_t avma, struct unwind_code *ret_code)
{
    struct process *process = data;
    const struct process_mapping *mapping = process_maps_find(&process->maps, avma);
    *ret_code = (struct unwind_code){0};
    if (!mapping) {
        process_code_refresh(process);
        mapping = process_maps_find(&process->maps, avma);
    }
    if (!mapping)
        return false;
    generated_code_refresh(&process->generated);
    if (mapping->has_bias) {
        ret_code->table = native_unwind_table(mapping->file->native);
        ret_code->code = native_code_rules(mapping->file->native);
        ret_code->bias = mapping->bias;
        if (starts_greenlets(mapping->file))
            note_range(process->starters, &process->starter_count, mapping);
        ret_code->live_code = &process->generated.rules;
    } else {
        ret_code->code = &process->generated.rules;
        ret_code->is_certain =
            !mapping->file && generated_code_is_trampoline(&process->generated, avma);
        if (ret_code->is_certain)
            note_range(process->trampolines, &process->trampoline_count, mapping);
    }
    return true;
}
