/* Writes perf.data files that perf 6.1, perf 7.x and samply read without a warning.
 *
 *     struct perfdata_event event = {.name = "python", .attr = {...}};
 *     perfdata_writer_open(fd, &event, 1, &writer);
 *     perfdata_writer_record(writer, &record);            as often as needed
 *     perfdata_writer_round(writer);                      now and then
 *     perfdata_writer_finish(writer, &info);
 *     perfdata_writer_close(writer);
 *
 * Records go through a buffer of fixed size, so memory is bounded whatever the size of the file. A
 * file that is never finished (the program was killed) is as it was at the last
 * perfdata_writer_checkpoint, or, with packed records, when a buffer was written last, without
 * features but that of packing. Without either it is like perf's own: readable by us, its size
 * field 0.
 *
 * What perf asks of records: a MMAP2 is not stamped later than the samples that need it; samples
 * have PERF_RECORD_MISC_USER or _KERNEL in `misc`; threads are announced by FORK or COMM. Without
 * attr.exclude_kernel or a mapping of the kernel (PERF_RECORD_MMAP, pid -1,
 * "[kernel.kallsyms]_text") perf warns about kptr_restrict. */
#ifndef PITVIPER_FORMATS_PERFDATA_WRITER_H
#define PITVIPER_FORMATS_PERFDATA_WRITER_H

#include "formats/perfdata.h"

struct perfdata_writer;

/* Starts a file at offset 0 of `fd`, which must be a regular file and stays the caller's. The
 * events are copied; their attr.size is set here, and a name that is NULL stays unsaid. With more
 * than one event each needs an id and PERF_SAMPLE_IDENTIFIER. 0; -EINVAL when there is no event or
 * the ids are missing; -ENOTSUP when a sample_type has bits that are not in
 * PERFDATA_ENCODED_SAMPLE_TYPE; -ENOMEM; the errno of pwrite. */
int perfdata_writer_open(int fd, const struct perfdata_event *events, size_t event_count,
                         struct perfdata_writer **ret_writer);

/* Appends a record of event number record->event; see perfdata_encode for its fields. 0; -EINVAL,
 * -EMSGSIZE (nothing is written, and others may follow); otherwise the errno of a failed write,
 * now and at all later calls. */
int perfdata_writer_record(struct perfdata_writer *writer, const struct perfdata_record *record);

/* Appends bytes that are whole records already, such as those of another file. 0 or an errno. */
int perfdata_writer_bytes(struct perfdata_writer *writer, const void *records, size_t length);

/* Says that no record will follow which is older than the newest one before the last such call.
 * Readers need less memory when that is said every few thousand records. */
int perfdata_writer_round(struct perfdata_writer *writer);

/* From now on records are compressed where samples are so many bytes long or longer on average, as
 * those with deep stacks are: they shrink to a twentieth. perf, samply and we read that; a perf
 * that was built without zstd does not. 0: none are, as at first. */
void perfdata_writer_pack(struct perfdata_writer *writer, uint32_t from_bytes);

/* Writes the rest: of `info` hostname, os_release, perf_version, arch, cpus, cpu_description,
 * cpu_id, memory, arguments, build_ids, clock (each where it is set) and private_data, which perf
 * ignores and perfdata_open finds again. perf warns without arch and cpus. The names of the events
 * and the times of the first and last sample are known here. 0 or the first errno. */
int perfdata_writer_finish(struct perfdata_writer *writer, const struct perfdata_info *info);

/* The same with records still to follow: if the program is killed, the file is whole as of now. */
int perfdata_writer_checkpoint(struct perfdata_writer *writer, const struct perfdata_info *info);

/* Releases the writer, finished or not; NULL is fine. */
void perfdata_writer_close(struct perfdata_writer *writer);

#endif
