/* The way of a recording:
 *
 *     inject_scan       one pass: who wrote dumps, where code memory was mapped
 *     inject_dump       each dump: its functions, divided into images; its clock
 *     elf_image         each image, written beside the output
 *     inject_mappings   the records that map them
 *     perfdata_splice   the copy, with these records in it
 *
 * The images come first, so that the new recording never names one that is not there. The recording
 * appears under its name when it is whole; when that can't be, new images go again. A dump that
 * can't be used costs its names only. */
#include "record/inject.h"

#include "base/cleanup.h"
#include "base/hashtable.h"
#include "base/mapping.h"
#include "base/new_file.h"
#include "formats/perfdata_splice.h"
#include "record/inject_dump.h"
#include "record/inject_mappings.h"
#include "record/inject_scan.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct job {
    const struct inject_request *request;
    struct inject_result *result;
    const struct perfdata_info *info;
    struct inject_mappings mappings;
    char folder[PATH_MAX];    /* of the images */
    uint64_t rooms_end_avma;  /* of the places that find_room gave to this dump */
    VECTOR(char *) images;    /* paths of those that were not there before; owned */
    struct hashtable indices; /* by process and index of a function: how often it was there */
    bool is_out_of_room;      /* no image could be written: don't try again and again */
};

static int note(struct inject_result *result, const char *path, const char *problem, int error,
                size_t count)
{
    struct inject_note entry = {
        .path = strdup(path), .problem = problem, .error = error, .count = count};
    if (!entry.path || vector_push(&result->notes, entry) < 0) {
        free(entry.path);
        return -ENOMEM;
    }
    return 0;
}

static int fail(struct inject_result *result, const char *path, const char *problem, int error)
{
    result->failed_path = path;
    result->problem = problem;
    return error;
}

/* perf 7.2 finds no callers of code in "/tmp/jitted-PID-N.so", but it does in "/tmp/./jitted-...".
 * It looks as if it takes the former for images of perf inject's own, in which the code begins
 * where the mapping does. */
static int find_folder(struct job *job)
{
    char path[PATH_MAX] = ".";
    const char *output = job->request->output;
    const char *slash = strrchr(output, '/');
    if (slash && (size_t)(slash - output) + 2 > sizeof path)
        return -ENAMETOOLONG;
    if (slash)
        snprintf(path, sizeof path, "%.*s", (int)(slash - output + 1), output);
    if (!realpath(path, job->folder))
        return -errno;
    if (strcmp(job->folder, "/tmp") == 0)
        strcpy(job->folder, "/tmp/.");
    return 0;
}

/* jitted-PID-N.so, and -2, -3 ... behind N when it comes again: code that was moved, and functions
 * of a forked child that counts on where its parent was. */
static int name_function(struct job *job, int pid, uint64_t code_index, char ret_path[PATH_MAX])
{
    uint64_t times = 0, key = hash_u64(hash_u64(code_index) + (uint64_t)pid);
    char again[24] = "";
    if (hashtable_get(&job->indices, key, &times))
        snprintf(again, sizeof again, "-%" PRIu64, times + 1);
    int error = hashtable_set(&job->indices, key, times + 1);
    int length = snprintf(ret_path, PATH_MAX, "%s/jitted-%d-%" PRIu64 "%s.so", job->folder, pid,
                          code_index, again);
    return error || (length >= 0 && length < PATH_MAX) ? error : -ENAMETOOLONG;
}

/* Images of many functions are named by their content, so that two recordings of processes with the
 * same number can lie in one folder. */
static int image_path(struct job *job, const struct inject_dump *dump, size_t number,
                      const struct elf_image *image, char ret_path[PATH_MAX])
{
    int pid = dump->marker->pid;
    if (job->request->per_function) {
        const struct jitdump_image *part = &dump->images.images.items[number];
        const struct elf_image_function *f = &dump->images.functions.items[part->first_function];
        return name_function(job, pid, f->code->load.code_index, ret_path);
    }
    const uint8_t *id = image->build_id;
    int length = snprintf(ret_path, PATH_MAX, "%s/jitted-%d-%02x%02x%02x%02x%02x%02x.so",
                          job->folder, pid, id[0], id[1], id[2], id[3], id[4], id[5]);
    return length >= 0 && length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int write_image(const char *path, const struct elf_image *image)
{
    CLEANUP(new_file_done) struct new_file file;
    int error = new_file_open(&file, path, 0644);
    if (!error)
        error = new_file_write(&file, image->data,
                               image->hole_bytes ? image->hole_offset : image->length);
    if (!error && image->hole_bytes)
        error = new_file_skip(&file, (off_t)image->hole_bytes);
    if (!error && image->hole_bytes)
        error = new_file_write(&file, image->data + image->hole_offset,
                               image->length - image->hole_offset);
    return error ? error : new_file_commit(&file);
}

/* For the case that the recording can't be written: then nothing stays behind. */
static int remember_image(struct job *job, const char *path)
{
    char *copy = strdup(path);
    if (copy && vector_push(&job->images, copy) == 0)
        return 0;
    unlink(path);
    free(copy);
    return -ENOMEM;
}

static void forget_images(struct job *job, bool remove)
{
    for (size_t i = 0; i < job->images.count; i++) {
        if (remove)
            unlink(job->images.items[i]);
        free(job->images.items[i]);
    }
    vector_done(&job->images);
}

/* Places are handed out once: what is behind the last one is free. */
static uint64_t find_room(void *context, uint64_t after_avma, uint64_t bytes)
{
    struct job *job = context;
    if (after_avma < job->rooms_end_avma)
        after_avma = job->rooms_end_avma;
    return inject_scan_room(job->mappings.scan, after_avma, bytes);
}

/* 0 or -ENOMEM; an image that can't be made or written is noted. */
static int add_image(struct job *job, const struct inject_dump *dump, size_t number)
{
    const struct jitdump_image *part = &dump->images.images.items[number];
    struct elf_image_source source = {.functions =
                                          dump->images.functions.items + part->first_function,
                                      .count = part->function_count,
                                      .elf_machine = dump->elf_machine,
                                      .find_room = job->request->per_function ? NULL : find_room,
                                      .context = job,
                                      .title = dump->marker->path};
    CLEANUP(elf_image_done) struct elf_image image;
    char path[PATH_MAX];
    int error = elf_image_make(&source, &image);
    if (error == -ENOMEM)
        return error;
    if (!error)
        error = image_path(job, dump, number, &image, path);
    if (error == -ENOMEM)
        return error;
    if (error)
        return note(job->result, dump->marker->path, "can't be made into an image", error, 0);
    bool is_new = access(path, F_OK) < 0;
    error = write_image(path, &image);
    if (!error && is_new && remember_image(job, path) < 0)
        return -ENOMEM;
    if (error) {
        job->is_out_of_room = true;
        return note(job->result, path, "can't be written; its functions have no names", error, 0);
    }
    if (image.room_bytes)
        job->rooms_end_avma = image.room_avma + image.room_bytes;
    job->result->images++;
    job->result->functions += part->function_count;
    return inject_mappings_add(&job->mappings, dump, number, &image, path);
}

static int note_damage(struct job *job, const struct inject_dump *dump)
{
    const struct damage *damage = &dump->index.damage;
    size_t lost = dump->images.impossible + dump->index.lost_moves;
    const char *path = dump->marker->path;
    int error = 0;
    if (damage->count)
        error = note(job->result, path, "is damaged; functions in these places have no names", 0,
                     damage->count);
    else if (damage->truncated)
        error = note(job->result, path,
                     "ends inside its last entry: its writer still runs, or was "
                     "killed; everything before that is used",
                     0, 0);
    if (!error && lost)
        error = note(job->result, path, "has functions that can't be: left out", 0, lost);
    return error;
}

static int add_dump(struct job *job, const struct inject_marker *marker)
{
    struct inject_dump dump;
    const char *problem;
    int error = inject_dump_open(&dump, marker, job->mappings.scan, job->info,
                                 job->request->per_function, &problem);
    if (error == -ENOMEM)
        return error;
    if (error)
        return note(job->result, marker->path, problem,
                    error == -EBADMSG || error == -ENODATA || error == -ENOTSUP ? 0 : error, 0);
    job->result->dumps++;
    job->rooms_end_avma = 0;
    size_t untimed = job->mappings.untimed;
    error = note_damage(job, &dump);
    for (size_t i = 0; i < dump.images.images.count && !error && !job->is_out_of_room; i++)
        error = add_image(job, &dump, i);
    if (!error && job->mappings.untimed > untimed)
        error = note(job->result, marker->path,
                     "has functions in memory that was used before, and its clock can't be matched "
                     "with the recording's: they have the names of what was there first; record "
                     "with `perf record -k 1`",
                     0, job->mappings.untimed - untimed);
    inject_dump_close(&dump);
    return error;
}

static int write_piece(void *context, const void *bytes, size_t length)
{
    return new_file_write(context, bytes, length);
}

static int write_output(struct job *job, const struct perfdata_splice *splice)
{
    int error = inject_mappings_finish(&job->mappings);
    if (error)
        return error;
    CLEANUP(new_file_done) struct new_file file;
    error = new_file_open(&file, job->request->output, 0600);
    if (!error)
        error = perfdata_splice_write(splice, job->mappings.insertions.items,
                                      job->mappings.insertions.count,
                                      (struct perfdata_sink){write_piece, &file});
    if (!error)
        error = new_file_commit(&file);
    job->result->mappings = job->mappings.insertions.count;
    return error;
}

static int note_recording(struct job *job, const struct perfdata_reader *reader)
{
    const struct damage *damage = perfdata_damage(reader);
    const char *path = job->request->input;
    if (damage->count)
        return note(job->result, path, "is damaged; it is copied as it stands", 0, damage->count);
    if (damage->truncated || !job->info->is_finished)
        return note(job->result, path,
                    "was never finished: perf was killed, or still runs; "
                    "everything up to its last whole record is copied",
                    0, 0);
    return 0;
}

static int process(struct job *job, struct perfdata_reader *reader,
                   const struct perfdata_splice *splice)
{
    const struct inject_request *request = job->request;
    struct inject_scan scan;
    int error = inject_scan_init(&scan, reader, splice);
    if (error)
        return fail(job->result, request->input, "can't be read", error);
    job->result->markers = scan.markers.count;
    job->mappings.scan = &scan;
    job->mappings.splice = splice;
    job->mappings.event = job->info->events;
    error = note_recording(job, reader);
    if (!error && scan.markers.count && !job->info->event_count)
        error = note(job->result, request->input, "describes no event: nothing can be added", 0, 0);
    else
        for (size_t i = 0; i < scan.markers.count && !error; i++)
            error = add_dump(job, &scan.markers.items[i]);
    if (!error)
        error = write_output(job, splice);
    forget_images(job, error < 0);
    hashtable_done(&job->indices);
    inject_mappings_done(&job->mappings);
    inject_scan_done(&scan);
    if (error && !job->result->problem)
        return fail(job->result, request->output, "can't be written", error);
    return error;
}

int inject_run(const struct inject_request *request, struct inject_result *ret_result)
{
    *ret_result = (struct inject_result){0};
    struct job job = {.request = request, .result = ret_result};
    int error = find_folder(&job);
    if (error)
        return fail(ret_result, request->output, "can't be written", error);
    CLEANUP(mapping_done) struct mapping mapping = {0};
    error = mapping_open(request->input, &mapping);
    if (error)
        return fail(ret_result, request->input,
                    error == -EISDIR ? "is a folder; inject needs a recording in one file"
                                     : "can't be read",
                    error);
    struct perfdata_reader *reader;
    const char *problem;
    error = perfdata_open_memory(request->input, mapping.data, mapping.length, &problem, &reader);
    if (error)
        return fail(ret_result, request->input, problem, error);
    job.info = perfdata_info(reader);
    struct perfdata_splice splice;
    error = perfdata_splice_open(&splice, mapping.data, mapping.length);
    if (!error) {
        error = process(&job, reader, &splice);
        perfdata_splice_done(&splice);
    } else {
        fail(ret_result, request->input, "can't be read", error);
    }
    perfdata_close(reader);
    return error;
}

void inject_result_done(struct inject_result *result)
{
    for (size_t i = 0; i < result->notes.count; i++)
        free(result->notes.items[i].path);
    vector_done(&result->notes);
}
