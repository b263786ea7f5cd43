/* The jitdump that a marker in a recording leads to: its content, how it is divided into images,
 * and how its clock relates to the recording's. */
#ifndef PITVIPER_RECORD_INJECT_DUMP_H
#define PITVIPER_RECORD_INJECT_DUMP_H

#include "base/file.h"
#include "formats/jitdump_images.h"
#include "formats/jitdump_index.h"
#include "formats/perfdata.h"
#include "record/inject_scan.h"

struct inject_dump {
    const struct inject_marker *marker;
    struct file file; /* what the index borrows */
    struct jitdump_index index;
    struct jitdump_images images;
    uint32_t elf_machine;

    /* Time in the recording = time stamp of the dump + shift_ns, when the clocks could be matched.
     */
    bool has_clock;
    uint64_t shift_ns; /* may wrap: to be added modulo 2^64 */
};

/* 0; or with a static text in *ret_problem: -ENOENT when there is no such file, -EACCES, ... when
 * it can't be read, -EBADMSG when it is no jitdump or not the one of that process, -ENOTSUP when it
 * is of another kind of machine; -ENOMEM. On failure there is nothing to release. Damage inside of
 * the dump is no error: dump->index.damage has it. */
int inject_dump_open(struct inject_dump *dump, const struct inject_marker *marker,
                     const struct inject_scan *scan, const struct perfdata_info *info,
                     bool per_function, const char **ret_problem);
void inject_dump_close(struct inject_dump *dump);

#endif
